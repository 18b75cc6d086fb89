"""Mutual information between words and states."""

from math import log

import numpy as np
import pytest
import torch

from heedful.corpora import EncodedCorpus, encode, planted
from heedful.corpora.batches import collate
from heedful.errors import InputError
from heedful.models import build, parse, read
from heedful.studies.faithful import information
from heedful.studies.faithful.examination import Measuring, probed_words


@pytest.fixture(scope="module")
def corpus() -> EncodedCorpus:
    return encode(planted(2, "short", 1, {"train": 150, "dev": 20, "test": 20}))


def model_of(corpus: EncodedCorpus, recipe: str):
    return build(parse(recipe, embedding_dim=12, width=12).model, corpus.vocabulary, corpus.classes)


def test_equal_labels_share_all_their_entropy_and_independent_ones_none() -> None:
    u = np.repeat([0, 1, 2, 3], 25)
    assert information.mutual_information(u, u) == pytest.approx(log(4))
    assert information.mutual_information(u, np.tile(np.arange(5), 20)) == pytest.approx(
        0, abs=1e-12
    )


def test_the_plug_in_estimate_is_its_definition() -> None:
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, 5, 300), rng.integers(0, 7, 300)
    joint = np.zeros((5, 7))
    np.add.at(joint, (u, v), 1 / 300)
    outer = joint.sum(1, keepdims=True) * joint.sum(0)
    expected = (joint[joint > 0] * np.log(joint[joint > 0] / outer[joint > 0])).sum()
    assert information.mutual_information(u, v) == pytest.approx(expected, rel=1e-12)


def test_the_most_frequent_sample_is_all_occurrences_of_those_words(corpus: EncodedCorpus) -> None:
    train = corpus.splits["train"]
    chosen = information.sample(train, "MF", types=30)
    counts = np.bincount(train.ids)
    counts[:5] = 0
    top = set(np.argsort(-counts, kind="stable")[:30].tolist())
    assert set(chosen.words.tolist()) == top
    assert len(chosen.tokens) == sum(counts[word] for word in top)
    assert np.array_equal(train.ids[chosen.tokens], chosen.words)


def test_samples_depend_on_the_seed_and_corpus_alone_and_are_bounded(corpus: EncodedCorpus) -> None:
    train = corpus.splits["train"]
    one, two = (information.sample(train, "RS", 30, most=200, seed=3) for _ in range(2))
    assert np.array_equal(one.tokens, two.tokens)
    assert len(one.tokens) <= 200
    other = information.sample(train, "RS", 30, most=200, seed=4)
    assert not np.array_equal(one.tokens, other.tokens)
    assert (one.words >= 5).all()


def test_fewer_words_than_clusters_are_refused(corpus: EncodedCorpus) -> None:
    with pytest.raises(InputError, match="needs 100000 different words"):
        information.sample(corpus.splits["train"], "MF", types=100_000)
    with pytest.raises(InputError, match="50 clusters need at least as many pairs"):
        information.clusters(np.zeros((10, 3), dtype=np.float32), 50)


@pytest.mark.parametrize("recipe", ["bilstm+additive", "bilstm+additive+concat", "none+dot"])
def test_states_are_those_of_the_reading(corpus: EncodedCorpus, recipe: str) -> None:
    model, train = model_of(corpus, recipe), corpus.splits["train"]
    tokens = np.array([0, 3, int(train.starts[5]) + 2, len(train.ids) - 1])
    inputs, values = information.states_at(model, train, tokens)
    for place, token in enumerate(tokens):
        row = int(np.searchsorted(train.starts, token, side="right")) - 1
        reading = read(model, collate(train, [row]))
        at = int(token - train.starts[row])
        torch.testing.assert_close(
            torch.from_numpy(values[place]), reading.values[0, at], atol=1e-5, rtol=1e-4
        )
        torch.testing.assert_close(torch.from_numpy(inputs[place]), reading.inputs[0, at])


def test_without_an_encoder_states_tell_the_word_and_shuffled_pairs_tell_little(
    corpus: EncodedCorpus,
) -> None:
    model, train = model_of(corpus, "none+additive"), corpus.splits["train"]
    chosen = information.sample(train, "MF", types=20)
    found = information.measure(model, train, chosen, count=20)
    assert found.by_word > 0.85 * found.ceiling
    assert found.clustered <= min(found.ceiling, found.cluster_ceiling) + 1e-9
    assert found.shuffled < 0.3 * found.clustered
    assert found.pairs == len(chosen.tokens)
    assert found.types == 20


def test_a_hierarchical_model_is_refused(corpus: EncodedCorpus) -> None:
    model = model_of(corpus, "han:bigru+additive")
    with pytest.raises(InputError, match="flat recipe"):
        information.states_at(model, corpus.splits["train"], np.array([0]))


def test_clusters_find_well_separated_groups() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 400)
    points = (np.eye(4)[labels] * 20 + rng.normal(size=(400, 4))).astype(np.float32)
    found = information.clusters(points, 4)
    assert information.mutual_information(labels, found) == pytest.approx(
        information.label_entropy(labels), rel=1e-9
    )


def test_clusters_fitted_on_some_vectors_hold_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(1)
    centres = 20 * generator.normal(size=(5, 3))
    group = generator.integers(0, 5, 900)
    vectors = (centres[group] + generator.normal(size=(900, 3))).astype(np.float32)
    monkeypatch.setattr(information, "FITTED", 150)
    found = information.clusters(vectors, 5)
    assert len(found) == 900
    entropy = information.label_entropy(group)
    assert information.mutual_information(group, found) == pytest.approx(entropy)
    assert np.array_equal(found, information.clusters(vectors, 5))


@pytest.fixture(scope="module")
def probed_corpus() -> EncodedCorpus:
    return encode(planted(2, "short", 1, {"train": 150, "dev": 20, "test": 60}))


def test_the_probe_is_linear_discriminant_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    rng = np.random.default_rng(0)
    words = rng.choice([3, 8, 11, 12], 400, p=[0.5, 0.3, 0.15, 0.05])
    values = (rng.normal(size=(13, 6))[words] + rng.normal(size=(400, 6))).astype(np.float32)
    other = rng.normal(size=(200, 6)).astype(np.float32)
    monkeypatch.setattr(information, "SHRINKAGE", 0.0)
    ours = information.fitted(values, words)
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(values.astype(np.float64), words)
    assert np.array_equal(ours(other), theirs.predict(other.astype(np.float64)))
    assert ours.commonest == 3


def test_a_state_that_is_its_word_is_always_named() -> None:
    rng = np.random.default_rng(1)
    table = rng.normal(size=(20, 5)).astype(np.float32)
    words = rng.integers(0, 20, 300)
    found = information.probed(
        information.fitted(table[words], words),
        table[words],
        words,
        [str(i // 5) for i in range(300)],
    )
    assert found.accuracy.value == 1
    assert found.gain.value == pytest.approx(1 - found.baseline.value)
    assert (found.places, found.types, found.accuracy.n) == (300, 20, 60)


def test_states_without_a_word_do_no_better_than_the_commonest_word() -> None:
    rng = np.random.default_rng(2)
    words = rng.choice(4, 4_000, p=[0.55, 0.15, 0.15, 0.15])
    values = rng.normal(size=(4_000, 3)).astype(np.float32)
    documents = [str(i // 20) for i in range(2_000)]
    found = information.probed(
        information.fitted(values[:2_000], words[:2_000]), values[2_000:], words[2_000:], documents
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
    found = information.probed(information.fitted(table[words], words), values, words, names)
    assert found.accuracy.value == 0.5
    assert found.accuracy.high - found.accuracy.low > 0.4


def test_what_cannot_be_probed_is_said(probed_corpus: EncodedCorpus) -> None:
    with pytest.raises(InputError, match="at least two"):
        information.fitted(np.zeros((3, 2), np.float32), np.array([1, 1, 1]))
    fitted = information.fitted(np.eye(2, dtype=np.float32), np.array([0, 1]))
    with pytest.raises(InputError, match="None of the probed words"):
        information.probed(fitted, np.zeros((0, 2), np.float32), np.zeros(0, int), [])


def test_occurrences_are_bounded_and_hold_the_words_asked_for(probed_corpus: EncodedCorpus) -> None:
    test = probed_corpus.splits["test"]
    words = np.unique(test.ids)[:10]
    every = information.occurrences(test, words, 10**6)
    assert np.array_equal(every.tokens, np.flatnonzero(np.isin(test.ids, words)))
    few = information.occurrences(test, words, 7)
    assert len(few.tokens) == 7
    assert np.isin(few.tokens, every.tokens).all()


def test_models_without_an_encoder_keep_the_word_and_encoders_lose_some(
    probed_corpus: EncodedCorpus,
) -> None:
    def accuracy(recipe: str) -> tuple[float, float]:
        sizes = parse(recipe, embedding_dim=12, width=12).model
        model = build(sizes, probed_corpus.vocabulary, probed_corpus.classes)
        table = probed_words(model, probed_corpus, Measuring(types=40, pairs=2_000))
        found = table.set_index(["source", "measure"])["value"]
        return float(found["state", "accuracy"]), float(found["embedding", "accuracy"])

    assert accuracy("none+additive") == (1.0, 1.0)
    state, embedding = accuracy("bilstm*3+additive")
    assert embedding == 1
    assert state < 0.95
