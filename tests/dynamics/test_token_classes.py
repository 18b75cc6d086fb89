"""Words are classed as the paper's released code classes them, and scores are those of words."""

import numpy as np
import pytest
import torch

from heedful.corpora import encode, load_corpus
from heedful.corpora.encoded import Encoded
from heedful.corpora.vocabulary import SPECIALS
from heedful.dynamics import (
    TokenRule,
    classify,
    occurrence_scores,
    read_flat,
    token_classes,
    word_counts,
    word_scores,
)
from heedful.errors import InputError, UnsupportedModel
from heedful.models import alone, read
from tests.tiny import WORDS, batch_of, classifier

NAMES = ("negative", "positive")


def of_counts(*counts: tuple[int, ...], **rule: object) -> list[int]:
    """The kinds of words with the given counts."""
    table = np.concatenate([np.zeros((len(SPECIALS), len(counts[0])), int), np.array(counts)])
    names = [str(k) for k in range(len(counts[0]))]
    return classify(table, names, TokenRule(**rule)).kind[len(SPECIALS) :].tolist()  # type: ignore[arg-type]


def split_of(batch: object) -> Encoded:
    """A batch as a split."""
    lengths = batch.lengths.numpy()  # type: ignore[attr-defined]
    ids = batch.ids[batch.mask].numpy()  # type: ignore[attr-defined]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    sentence = np.zeros(len(ids), np.int32)
    return Encoded(ids, starts, batch.labels.numpy(), sentence, batch.names)  # type: ignore[attr-defined]


def test_two_classes_by_gamma_with_both_ends_included() -> None:
    #            γ = 1       f too small  γ = 0.5   neutral   apart     unseen  γ = −1
    counts = [(0, 6), (0, 5), (2, 6), (1, 1), (50, 56), (0, 0), (6, 0)]
    assert of_counts(*counts) == [1, -1, -1, 2, -1, -1, 0]
    assert of_counts(*counts, with_ends=False) == [-1, -1, -1, 2, -1, -1, -1]
    assert of_counts((10, 14), strong=0.1, weak=0.05) == [1]


def test_several_classes_by_their_largest_share() -> None:
    counts = [(30, 5, 5), (20, 0, 0), (11, 10, 10), (20, 15, 5), (0, 0, 0)]
    assert of_counts(*counts) == [0, -1, 3, -1, -1]
    assert of_counts(*counts, floor=10) == [0, 0, 3, -1, -1]


def test_documents_and_occurrences_are_counted_apart() -> None:
    ids = np.array([5, 5, 6, 5, 7], dtype=np.int32)
    texts = Encoded(ids, np.array([0, 3, 5]), np.array([1, 0]), np.zeros(5, np.int32), ("a", "b"))
    assert word_counts(texts, 2, 8)[5:].tolist() == [[1, 2], [0, 1], [1, 0]]
    assert word_counts(texts, 2, 8, "documents")[5:].tolist() == [[1, 1], [0, 1], [1, 0]]
    texts.labels[0] = -1
    assert word_counts(texts, 2, 8)[5:].tolist() == [[1, 0], [0, 0], [1, 0]]


def test_a_class_without_words_is_reported_and_strange_labels_are_refused() -> None:
    table = np.zeros((8, 2), int)
    table[6] = 0, 9
    found = classify(table, NAMES)
    assert found.sizes == {"negative": 0, "positive": 1, "neutral": 0}
    assert found.empty == ("negative", "neutral")
    texts = Encoded(
        np.array([5], np.int32), np.array([0, 1]), np.array([2]), np.zeros(1, np.int32), ("a",)
    )
    with pytest.raises(InputError, match="class numbers from 0 to 1"):
        word_counts(texts, 2, 8)
    with pytest.raises(InputError, match="neutral and of a class"):
        TokenRule(weak=0.6)
    with pytest.raises(InputError, match="unit to count"):
        TokenRule(unit="sentences")


@pytest.mark.corpora
def test_the_published_classes_of_sst() -> None:
    corpus = encode(load_corpus("sst:2/polarity"), words_of=("train", "dev", "test"))
    # 16,174 entries in the paper, among them three symbols; ours has five.
    assert len(corpus.vocabulary) == 16_174 - 3 + 5
    assert token_classes(corpus).sizes == {"negative": 265, "positive": 412, "neutral": 1384}
    strict = token_classes(corpus, TokenRule(with_ends=False)).sizes
    assert (strict["positive"], strict["negative"]) == (302, 197)
    documents = token_classes(corpus, TokenRule(unit="documents")).sizes
    assert list(documents.values()) == [259, 407, 1385]


@pytest.mark.parametrize(
    "recipe", ["none+scaled-dot@3", "affine+dot", "none+additive", "bilstm+dot"]
)
@pytest.mark.parametrize("one_logit", [True, False])
def test_global_scores_are_those_of_the_word_alone(recipe: str, one_logit: bool) -> None:
    model = classifier(recipe, 2, one_logit=one_logit)
    scores = word_scores(model)
    batch = batch_of(((1,), (1,), (1,)))
    reading = read(model, batch)
    torch.testing.assert_close(scores.scores[batch.ids[:, 0]], reading.scores[:, 0])
    said = alone(model, reading)[:, 0] - reading.offset
    torch.testing.assert_close(scores.logits[batch.ids[:, 0]], said)
    torch.testing.assert_close(
        scores.polarity[batch.ids[:, 0]], said[:, 1] - said[:, 0], rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("recipe", ["none+scaled-dot@3", "affine+dot", "none+additive"])
def test_reading_from_the_table_equals_reading_texts(recipe: str) -> None:
    model, batch = classifier(recipe, 3), batch_of()
    reading, flat = read(model, batch), read_flat(model, split_of(batch_of()))
    torch.testing.assert_close(flat.logits, reading.logits)
    torch.testing.assert_close(flat.attention, reading.attention[batch.mask])
    assert flat.lengths.tolist() == batch.lengths.tolist()
    assert flat.is_right.tolist() == (reading.decision == batch.labels).tolist()
    with pytest.raises(UnsupportedModel, match="in context"):
        read_flat(classifier("bilstm+dot"), split_of(batch))


def test_local_scores_are_means_over_occurrences() -> None:
    model, batch = classifier("bilstm+dot", 2), batch_of(seed=4)
    found = occurrence_scores(model, split_of(batch))
    reading = read(model, batch)
    word = int(batch.ids[2, 3])
    here = batch.ids == word
    assert reading.unit_logits is not None
    assert float(found.times[word]) == int(here.sum())
    torch.testing.assert_close(found.scores[word], reading.scores[here].mean())
    torch.testing.assert_close(found.weight[word], reading.attention[here].mean())
    torch.testing.assert_close(found.logits[word], reading.unit_logits[here].mean(0))
    absent = next(i for i in range(len(WORDS)) if not (batch.ids == i).any())
    assert bool(found.scores[absent].isnan())
    free = classifier("none+dot", 2)
    both = word_scores(free), occurrence_scores(free, split_of(batch))
    torch.testing.assert_close(both[0].scores[word], both[1].scores[word])


def test_polarity_is_of_flat_models_with_two_classes() -> None:
    with pytest.raises(InputError, match="two classes"):
        _ = word_scores(classifier("none+dot", 3)).polarity
    with pytest.raises(InputError, match="flat model"):
        word_scores(classifier("han:none+dot"))
