"""Every corpus of the data root with the counts of its README; needs HEEDFUL_DATA."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.corpora import (
    Corpus,
    Vocabulary,
    available,
    load_corpus,
    load_lexicon,
    load_parallel,
    load_prepared,
    load_vectors,
    prepare,
)
from heedful.corpora.imdb import read_imdb
from heedful.corpora.recipes import RECIPES, Wanted
from heedful.corpora.root import root_of

pytestmark = pytest.mark.corpora


def sizes(corpus: Corpus) -> dict[str, int]:
    return {split: len(documents) for split, documents in corpus.splits.items()}


def test_the_corpora_of_the_readme_are_all_present() -> None:
    present = {row.name for row in available() if row.is_present}
    assert present >= {
        "planted", "sst", "imdb", "ag_news", "20newsgroups", "sms", "amazon", "eraser_movies",
        "multi30k", "warriner",
    }  # fmt: skip


def test_sst_counts() -> None:
    two = load_corpus("sst:2")
    assert list(two.counts("train").values()) == [3310, 3610]
    assert list(two.counts("dev").values()) == [428, 444]
    assert list(two.counts("test").values()) == [912, 909]
    five = load_corpus("sst:5")
    assert list(five.counts("train").values()) == [1092, 2218, 1624, 2322, 1288]
    assert list(five.counts("dev").values()) == [139, 289, 229, 279, 165]
    assert list(five.counts("test").values()) == [279, 633, 389, 510, 399]
    document = five.splits["train"][0]
    assert document.word_labels is not None
    assert dict(zip(document.tokens, document.word_labels.tolist(), strict=True))["splash"] == 3


def test_the_polarity_rule_gives_412_265_1384_token_classes_on_sst() -> None:
    corpus = load_corpus("sst:2/polarity")
    assert sizes(corpus) == {"train": 6920, "dev": 872, "test": 1821}
    negative, positive = Counter[str](), Counter[str]()
    for document in corpus.splits["train"]:
        (positive if document.label else negative).update(document.tokens)
    found: Counter[str] = Counter()
    types = set(positive) | set(negative)
    for word in types:
        up, down = positive[word], negative[word]
        gamma = (up - down) / (up + down)
        found["positive"] += gamma > 0.5 and up > 5
        found["negative"] += gamma < -0.5 and down > 5
        found["neutral"] += abs(gamma) < 0.1 and abs(up - down) < 5
    assert dict(found) == {"positive": 412, "negative": 265, "neutral": 1384}
    assert len(types) == 13_822
    lengths = [len(document.tokens) for document in corpus.splits["train"]]
    assert min(lengths) == 1
    assert sum(lengths) / len(lengths) == pytest.approx(17.5, abs=0.05)


def test_jain_and_wallace_counts_on_sst() -> None:
    corpus = load_corpus("sst:2/jw")
    assert list(corpus.counts("train").values()) == [3034, 3321]
    assert list(corpus.counts("test").values()) == [863, 862]


def test_ag_news_counts() -> None:
    corpus = load_corpus("ag_news")
    both = Counter(corpus.counts("train")) + Counter(corpus.counts("dev"))
    assert [both[name] for name in corpus.classes] == [7_099, 7_093, 7_062, 7_010]
    assert set(corpus.counts("test").values()) == {1_900}
    pair = load_corpus("ag_news:world-business/jw")
    assert len(pair.splits["test"]) == 3_798
    assert len(load_corpus("ag_news:world-business").splits["test"]) == 3_800


def test_newsgroup_counts() -> None:
    groups = "baseball,hockey,motorcycles,med,guns"
    corpus = load_corpus(f"20newsgroups:{groups}")
    both = Counter(corpus.counts("train")) + Counter(corpus.counts("dev"))
    assert [both[name] for name in corpus.classes] == [597, 600, 598, 594, 546]
    assert list(corpus.counts("test").values()) == [397, 399, 398, 396, 364]
    polarity = load_corpus("20newsgroups:baseball,hockey/polarity")
    for split, published in {"train": 1236, "dev": 310, "test": 387}.items():
        assert len(polarity.splits[split]) == pytest.approx(published, rel=0.02)


def test_sms_and_amazon_counts() -> None:
    sms = load_corpus("sms")
    total = sum((Counter(sms.counts(split)) for split in sms.splits), Counter[str]())
    assert total == {"ham": 4_827, "spam": 747}
    amazon = load_corpus("amazon:stars")
    assert sum(sizes(amazon).values()) == 8_000
    assert amazon.stand_in_for is not None


def test_eraser_counts_and_rationales() -> None:
    corpus = load_corpus("eraser_movies")
    assert sizes(corpus) == {"train": 1_600, "dev": 200, "test": 199}
    assert list(corpus.counts("test").values()) == [100, 99]
    for document in corpus.splits["test"]:
        assert document.evidence is not None
        assert document.evidence.any()
        assert int(document.sentence[-1]) > 0


def test_multi30k_warriner_and_glove() -> None:
    pairs = load_parallel()
    assert [len(split) for split in pairs.splits.values()] == [29_000, 1_014, 1_000, 1_000, 461]
    valence = load_lexicon()
    assert len(valence) == 13_915
    assert (min(valence.values()), max(valence.values())) == (1.26, 8.53)
    vocabulary = Vocabulary.of(load_corpus("sst:2").splits["train"])
    matrix, found = load_vectors(root_of() / "glove" / "glove.6B.100d.subset.txt.gz", vocabulary)
    assert matrix.shape == (len(vocabulary), 100)
    assert found / len(vocabulary) > 0.9


@pytest.mark.slow
def test_imdb_counts_and_compact_files(tmp_path_factory: pytest.TempPathFactory) -> None:
    corpus = load_corpus("imdb:stars")
    both = Counter(corpus.counts("train")) + Counter(corpus.counts("dev"))
    expected = [5100, 2284, 2420, 2696, 2496, 3009, 2263, 4732]
    assert [both[name] for name in corpus.classes] == expected
    expected = [5022, 2302, 2541, 2635, 2307, 2850, 2344, 4999]
    assert list(corpus.counts("test").values()) == expected
    out = tmp_path_factory.mktemp("imdb") / "prepared"
    glove = root_of() / "glove" / "glove.6B.100d.subset.txt.gz"
    encoded = prepare(corpus, out, vectors=glove, min_count=5)
    megabytes = {file.name: file.stat().st_size / 1e6 for file in out.iterdir()}
    assert megabytes["tokens.safetensors.gz"] < 25
    assert sum(megabytes.values()) < 40
    loaded = load_prepared(out)
    assert (loaded.splits["test"].ids == encoded.splits["test"].ids).all()


@pytest.mark.slow
def test_imdb_polarity_sizes() -> None:
    corpus = load_corpus("imdb:2/polarity")
    for split, published in {"train": 17_212, "dev": 4_304, "test": 4_363}.items():
        assert len(corpus.splits[split]) == pytest.approx(published, rel=0.005)


@pytest.mark.parametrize(
    ("name", "settings", "medians", "documents"),
    [
        ("imdb:2/dynamics", {}, (181, 180), (25_000, 4_000)),
        (
            "20newsgroups:rec.sport.baseball,rec.sport.hockey/dynamics",
            {"keep": ("headers", "footers", "quotes")}, (183, 207), (1_197, 796),
        ),
        ("ag_news:world-business/dynamics", {}, (39, 39), (14_161, 3_800)),
        ("sst:2/dynamics", {}, (17, 17), (6_920, 1_821)),
        ("sms/dynamics", {}, (13, 13), (4_738, 836)),
    ],
)  # fmt: skip
def test_texts_of_the_dynamics_study_are_as_long_as_the_papers(
    name: str, settings: dict[str, Any], medians: tuple[int, int], documents: tuple[int, int]
) -> None:
    """Its T9 has 181 / 178, 183 / 207, 40 / 40, 16 / 17 and 13 words; start and end are no words.

    IMDB's 4,000 dev reviews are drawn: all 25,000 have the paper's 178.
    """
    corpus = load_corpus(name, **settings)
    for split, median, count in zip(("train", "dev"), medians, documents, strict=True):
        lengths = [len(document.tokens) - 2 for document in corpus.splits[split]]
        assert len(lengths) == count
        assert np.median(lengths) == median


def test_all_test_reviews_of_imdb_have_the_median_length_of_the_dynamics_paper() -> None:
    whole = replace(RECIPES["imdb"]["dynamics"], checked_on=None, dev_share=0.0)
    corpus = read_imdb(Wanted(root_of(None), "2", whole, 0, "imdb:2"))
    assert np.median([len(document.tokens) - 2 for document in corpus.splits["test"]]) == 178


def test_the_dynamics_paper_knows_rare_words_that_have_a_vector(tmp_path: Path) -> None:
    """13,654 of 20 Newsgroups by our subset of the vectors; 12,488 are the paper's."""
    name = "20newsgroups:rec.sport.baseball,rec.sport.hockey/dynamics"
    corpus = load_corpus(name, keep=("headers", "footers", "quotes"))
    vectors = root_of(None) / "glove/glove.6B.100d.subset.txt.gz"
    found = prepare(corpus, tmp_path / "with", vectors, min_count=3, knows_vectors=True)
    assert len(found.vocabulary) == 13_654
    assert len(prepare(corpus, tmp_path / "without", min_count=3).vocabulary) < 9_000
