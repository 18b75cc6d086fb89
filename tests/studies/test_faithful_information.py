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
