"""The synthetic sets hold what their recipe says."""

import numpy as np
import pytest

from heedful.corpora import encode, load_corpus, synthetic, with_rare_unknown
from heedful.corpora.vocabulary import UNKNOWN
from heedful.dynamics import token_classes
from heedful.errors import InputError

SMALL = {"instances": 600, "neutral": 60, "polar": 6}


def kinds(tokens: tuple[str, ...]) -> list[str]:
    return sorted(token.rstrip("0123456789") for token in tokens)


def test_data_one_has_two_clean_class_words_and_ten_neutral_ones() -> None:
    corpus = load_corpus("synthetic:data1", **SMALL)
    assert corpus.counts("train") == {"negative": 300, "positive": 300}
    for document in corpus.splits["train"]:
        name = corpus.classes[document.label]
        assert kinds(document.tokens) == sorted(["neutral"] * 10 + [name] * 2)
        assert len(set(document.tokens)) == 12
        assert document.evidence is not None
        assert document.evidence.sum() == 2
        first, last = document.spans[3]
        assert document.text[first:last] == document.tokens[3]
    again = synthetic("data1", **SMALL)
    assert again.fingerprint == corpus.fingerprint
    assert synthetic("data1", 1, **SMALL).fingerprint != corpus.fingerprint


def test_data_two_turns_both_words_of_a_tenth_of_each_class() -> None:
    corpus = synthetic("data2", **SMALL)
    turned = np.array([d.evidence.sum() == 0 for d in corpus.splits["train"]])  # type: ignore[union-attr]
    labels = np.array([d.label for d in corpus.splits["train"]])
    assert [int(turned[labels == k].sum()) for k in (0, 1)] == [30, 30]
    for document in np.array(corpus.splits["train"], dtype=object)[turned]:
        other = corpus.classes[1 - document.label]
        assert kinds(document.tokens).count(other) == 2


def test_ratios_and_three_classes() -> None:
    counts = synthetic("ratio-5-2", **SMALL).counts("train")
    assert counts == {"negative": 171, "positive": 429}
    three = synthetic("three", **SMALL)
    assert list(three.counts("train").values()) == [200, 200, 200]
    classes = token_classes(encode(three)).sizes
    assert classes == {"zero": 6, "one": 6, "two": 6, "neutral": classes["neutral"]}


@pytest.mark.parametrize(
    ("task", "options", "match"),
    [
        ("data3", {}, "task of synthetic"),
        ("ratio-0-1", {}, "task of synthetic"),
        ("data1", {"noise": 2.0}, "share from 0 to 1"),
        ("data1", {"neutral": 5}, "all distinct"),
        ("data1", {"instances": 1}, "at least 2"),
    ],
)
def test_impossible_sets_are_refused(task: str, options: dict[str, float], match: str) -> None:
    with pytest.raises(InputError, match=match):
        synthetic(task, **options)  # type: ignore[arg-type]


def test_vocabularies_may_hold_the_words_of_every_split() -> None:
    corpus = synthetic("data1", **(SMALL | {"instances": 60, "neutral": 400}))
    train, everything = encode(corpus), encode(corpus, words_of=("train", "dev", "test"))
    assert len(everything.vocabulary) > len(train.vocabulary)
    assert (train.splits["test"].ids == UNKNOWN).any()
    assert not (everything.splits["test"].ids == UNKNOWN).any()
    rare = with_rare_unknown(everything, 1)
    assert (rare.splits["test"].ids == UNKNOWN).sum() == (train.splits["test"].ids == UNKNOWN).sum()
    assert not (rare.splits["train"].ids == UNKNOWN).any()
    assert (with_rare_unknown(everything, 2).splits["train"].ids == UNKNOWN).any()
    assert with_rare_unknown(everything, 0) is everything
