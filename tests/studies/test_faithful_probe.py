"""The probe of word identity against an oracle, at its ceiling and at chance."""

import numpy as np
import pytest

from heedful.corpora import EncodedCorpus, encode, planted
from heedful.errors import InputError
from heedful.models import build, parse
from heedful.studies.faithful import probe
from heedful.studies.faithful.examination import Measuring, probed_words


@pytest.fixture(scope="module")
def corpus() -> EncodedCorpus:
    return encode(planted(2, "short", 1, {"train": 150, "dev": 20, "test": 60}))


def test_the_probe_is_linear_discriminant_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    rng = np.random.default_rng(0)
    words = rng.choice([3, 8, 11, 12], 400, p=[0.5, 0.3, 0.15, 0.05])
    values = (rng.normal(size=(13, 6))[words] + rng.normal(size=(400, 6))).astype(np.float32)
    other = rng.normal(size=(200, 6)).astype(np.float32)
    monkeypatch.setattr(probe, "SHRINKAGE", 0.0)
    ours = probe.fitted(values, words)
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(values.astype(np.float64), words)
    assert np.array_equal(ours(other), theirs.predict(other.astype(np.float64)))
    assert ours.commonest == 3


def test_a_state_that_is_its_word_is_always_named() -> None:
    rng = np.random.default_rng(1)
    table = rng.normal(size=(20, 5)).astype(np.float32)
    words = rng.integers(0, 20, 300)
    found = probe.probed(
        probe.fitted(table[words], words), table[words], words, [str(i // 5) for i in range(300)]
    )
    assert found.accuracy.value == 1
    assert found.gain.value == pytest.approx(1 - found.baseline.value)
    assert (found.places, found.types, found.accuracy.n) == (300, 20, 60)


def test_states_without_a_word_do_no_better_than_the_commonest_word() -> None:
    rng = np.random.default_rng(2)
    words = rng.choice(4, 4_000, p=[0.55, 0.15, 0.15, 0.15])
    values = rng.normal(size=(4_000, 3)).astype(np.float32)
    documents = [str(i // 20) for i in range(2_000)]
    found = probe.probed(
        probe.fitted(values[:2_000], words[:2_000]), values[2_000:], words[2_000:], documents
    )
    assert found.baseline.value == pytest.approx(0.55, abs=0.03)
    assert found.baseline.low < 0.55 < found.baseline.high
    assert found.gain.value == pytest.approx(0, abs=0.01)


def test_an_interval_is_over_documents() -> None:
    """Ten documents, each all right or all wrong: the places in one are not independent."""
    words = np.tile([0, 1], 500)
    table = np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    values = table[np.where(np.arange(1_000) < 500, words, 1 - words)]
    names = [str(i // 100) for i in range(1_000)]
    found = probe.probed(probe.fitted(table[words], words), values, words, names)
    assert found.accuracy.value == 0.5
    assert found.accuracy.high - found.accuracy.low > 0.4


def test_what_cannot_be_probed_is_said(corpus: EncodedCorpus) -> None:
    with pytest.raises(InputError, match="at least two"):
        probe.fitted(np.zeros((3, 2), np.float32), np.array([1, 1, 1]))
    fitted = probe.fitted(np.eye(2, dtype=np.float32), np.array([0, 1]))
    with pytest.raises(InputError, match="None of the probed words"):
        probe.probed(fitted, np.zeros((0, 2), np.float32), np.zeros(0, int), [])


def test_occurrences_are_bounded_and_hold_the_words_asked_for(corpus: EncodedCorpus) -> None:
    test = corpus.splits["test"]
    words = np.unique(test.ids)[:10]
    every = probe.occurrences(test, words, 10**6)
    assert np.array_equal(every.tokens, np.flatnonzero(np.isin(test.ids, words)))
    few = probe.occurrences(test, words, 7)
    assert len(few.tokens) == 7
    assert np.isin(few.tokens, every.tokens).all()


def test_models_without_an_encoder_keep_the_word_and_encoders_lose_some(
    corpus: EncodedCorpus,
) -> None:
    def accuracy(recipe: str) -> tuple[float, float]:
        sizes = parse(recipe, embedding_dim=12, width=12).model
        model = build(sizes, corpus.vocabulary, corpus.classes)
        table = probed_words(model, corpus, Measuring(types=40, pairs=2_000))
        found = table.set_index(["source", "measure"])["value"]
        return float(found["state", "accuracy"]), float(found["embedding", "accuracy"])

    assert accuracy("none+additive") == (1.0, 1.0)
    state, embedding = accuracy("bilstm*3+additive")
    assert embedding == 1
    assert state < 0.95
