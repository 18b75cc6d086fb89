from collections import Counter

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from heedful.corpora.documents import Document
from heedful.corpora.planted import BOUNDS, CLASSES, LENGTHS, SIZES, planted, score
from heedful.corpora.planted_words import INTENSIFIERS, LEXICON, NEGATIONS
from heedful.corpora.sentences import sentence_numbers
from heedful.corpora.tokens import tokenise
from heedful.errors import InputError

KINDS = [(classes, length) for classes in CLASSES for length in LENGTHS]


def evidence_words(document: Document) -> list[str]:
    assert document.evidence is not None
    return [word for word, flag in zip(document.tokens, document.evidence, strict=True) if flag]


def test_score_by_hand() -> None:
    assert LEXICON["good"] == 1.5
    assert score(["good"]) == 1.5
    assert score(["not", "good"]) == -1.5
    assert score(["very", "good", "n't", "dull"]) == (1.5 * 1.5 + 1.0) / 2
    words = ("awful", "dull", "passable", "good", "perfect")
    assert [sum(score([word]) > bound for bound in BOUNDS[5]) for word in words] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("classes", "length"), KINDS)
def test_label_follows_from_the_evidence_words_alone(classes: int, length: str) -> None:
    corpus = planted(classes, length, sizes={"train": 500, "test": 100})
    for document in [*corpus.splits["train"], *corpus.splits["test"]]:
        words = evidence_words(document)
        assert set(words) <= set(LEXICON) | set(NEGATIONS) | set(INTENSIFIERS)
        mean = score(words)
        assert document.label == sum(mean > bound for bound in BOUNDS[classes])


@pytest.mark.slow
@pytest.mark.parametrize("length", LENGTHS)
def test_ten_thousand_documents_are_all_different(length: str) -> None:
    corpus = planted(2, length, sizes={"train": 8_000, "dev": 1_000, "test": 1_000})
    documents = [document for split in corpus.splits.values() for document in split]
    assert len({document.text for document in documents}) == 10_000
    assert len({document.id for document in documents}) == 10_000


@pytest.mark.parametrize("classes", CLASSES)
def test_classes_are_balanced_and_sizes_are_the_stated_ones(classes: int) -> None:
    corpus = planted(classes, "short")
    for split, size in SIZES.items():
        counts = corpus.counts(split).values()
        assert sum(counts) == size
        assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize(("classes", "length"), KINDS)
def test_tokens_spans_and_sentences_are_those_of_the_text(classes: int, length: str) -> None:
    for document in planted(classes, length, seed=3, sizes={"train": 300}).splits["train"]:
        tokens, spans = tokenise(document.text)
        assert tokens == document.tokens
        assert np.array_equal(spans, document.spans)
        assert np.array_equal(sentence_numbers(document.text, spans), document.sentence)


def test_short_has_one_sentence_and_long_has_several() -> None:
    short = planted(2, "short", sizes={"train": 100}).splits["train"]
    long = planted(2, sizes={"train": 100}).splits["train"]
    assert {int(document.sentence[-1]) for document in short} == {0}
    assert min(int(document.sentence[-1]) for document in long) >= 1
    assert np.mean([document.sentence[-1] + 1 for document in long]) > 4


def test_same_seed_same_corpus_other_seed_other_corpus() -> None:
    sizes = {"train": 50, "test": 20}
    first = planted(3, seed=5, sizes=sizes)
    assert first.fingerprint == planted(3, seed=5, sizes=sizes).fingerprint
    assert first.fingerprint != planted(3, seed=6, sizes=sizes).fingerprint


def test_negation_and_distractors_occur() -> None:
    documents = planted(2, sizes={"train": 1_000}).splits["train"]
    negated = sum(bool(set(evidence_words(d)) & set(NEGATIONS)) for d in documents)
    distracted = 0
    for document in documents:
        assert document.evidence is not None
        others = [w for w, flag in zip(document.tokens, document.evidence, strict=True) if not flag]
        distracted += bool(set(others) & set(LEXICON))
        # every negation in the text belongs to the evidence: scope is never in doubt
        assert not set(others) & set(NEGATIONS)
    assert 0.2 < negated / 1_000 < 0.6
    assert 0.5 < distracted / 1_000 < 0.9


def test_lexicon_is_large_graded_and_balanced() -> None:
    signs = Counter(np.sign(value) for value in LEXICON.values())
    assert signs[1] >= 60
    assert signs[-1] >= 60
    assert len(set(map(abs, LEXICON.values()))) >= 4
    assert planted(2, sizes={"train": 4}).lexicon == LEXICON


def bag_of_words_accuracy(classes: int) -> float:
    corpus = planted(classes)
    train, test = corpus.splits["train"], corpus.splits["test"]
    bags = CountVectorizer(analyzer=lambda document: document.tokens)
    model = LogisticRegression(C=0.3, max_iter=1_000)
    model.fit(bags.fit_transform(train), [document.label for document in train])
    return float(model.score(bags.transform(test), [document.label for document in test]))


@pytest.mark.slow
def test_a_bag_of_words_does_well_but_not_perfectly_on_two_classes() -> None:
    assert 0.85 <= bag_of_words_accuracy(2) <= 0.97


@pytest.mark.slow
def test_a_bag_of_words_beats_chance_on_five_classes() -> None:
    assert bag_of_words_accuracy(5) > 0.4


def test_bad_options_are_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match="2, 3 or 5 classes, got 4"):
        planted(4)
    with pytest.raises(InputError, match="Did you mean 'short'"):
        planted(2, "shrt")
