"""The bag-of-words proxy, its convex form and its first move."""

import math

import numpy as np
import pytest
import torch

from heedful.dynamics.cooccurrence import cooccurrence, side
from heedful.dynamics.proxy import (
    Proxy,
    ProxyConfig,
    Regression,
    _answers,
    initial_rates,
    logistic_sweep,
    shares,
    train_proxy,
)


def _toy(pairs=40, words=12, answers=10, seed=0):
    generator = np.random.default_rng(seed)
    sources = [
        generator.integers(0, words, generator.integers(2, 7)).tolist() for _ in range(pairs)
    ]
    targets = [generator.integers(0, answers, generator.integers(2, 7)) for _ in range(pairs)]
    return side(sources, words), side(targets, answers)


def _classes(count, seed):
    """Word 0 says class 0, word 1 says class 1, the rest say nothing."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, count)
    rows = [[int(y), *generator.integers(2, 12, 5).tolist()] for y in labels]
    return side(rows, 12), labels


def test_the_first_move_goes_to_the_centred_counts_as_the_root_of_the_width():
    sources, answers = _toy()
    errors = []
    for dim in (256, 4_096, 65_536):
        rates = initial_rates(sources, answers, dim)
        errors.append(np.abs(rates.logits - rates.limit).max() / np.abs(rates.limit).max())
    assert errors[-1] <= 0.02
    slope = np.polyfit(np.log([256, 4_096, 65_536]), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.15)


def test_the_probability_moves_by_the_counts_over_the_number_of_answers():
    sources, answers = _toy()
    rates = initial_rates(sources, answers, 65_536)
    size = np.abs(rates.limit).max()
    assert np.abs(10 * rates.probabilities - rates.limit).max() / size <= 0.02
    # Without the factor, as printed, it is far off.
    assert np.abs(rates.probabilities - rates.limit).max() / size > 0.8


def test_the_limit_is_the_centred_count_table_of_model_1():
    sources, answers = _toy(seed=3)
    counts = cooccurrence(sources, answers).toarray()
    centred = 2 * (counts - counts.mean(1, keepdims=True))
    np.testing.assert_allclose(initial_rates(sources, answers, 16).limit, centred, atol=1e-12)


def test_the_first_move_is_the_gradient_of_the_summed_loss():
    sources, answers = _toy(pairs=8, seed=5)
    rates = initial_rates(sources, answers, 32, seed=7)
    from heedful.runs.randomness import numpy_generator

    generator = numpy_generator(7, "initial rates", 32)
    e = torch.tensor(generator.standard_normal((12, 32)) / np.sqrt(32), requires_grad=True)
    w = torch.tensor(generator.standard_normal((10, 32)) / np.sqrt(32), requires_grad=True)
    bags, wanted = shares(sources).toarray(), answers.counts().toarray()
    logp = (torch.tensor(bags) @ e @ w.T).log_softmax(-1)
    de, dw = torch.autograd.grad((torch.tensor(wanted) * logp).sum(), [e, w])
    moved = (de @ w.T + e @ dw.T).detach().numpy()
    np.testing.assert_allclose(rates.logits, moved, atol=1e-10)


def test_permutations_of_one_set_pull_all_word_vectors_alike():
    generator = np.random.default_rng(0)
    rows = [generator.permutation(8).tolist() for _ in range(20)]
    data = side(rows, 8)
    proxy = train_proxy(data, data, (data, data), ProxyConfig(dim=8, epochs=3))
    start = train_proxy(data, data, (data, data), ProxyConfig(dim=8, epochs=0, learning_rate=1))
    moved = (proxy.vectors - start.vectors).numpy()
    np.testing.assert_allclose(moved, np.tile(moved[:1], (8, 1)), atol=1e-6)
    assert proxy.losses[-1] >= np.log(8) - 1e-6


def test_the_proxy_learns_which_words_tell_the_class():
    data, labels = _classes(300, 0)
    other, other_labels = _classes(100, 1)
    config = ProxyConfig(dim=16, epochs=15, batch_size=32, learning_rate=1e-2)
    proxy = train_proxy(
        data, side(labels[:, None], 2), (other, side(other_labels[:, None], 2)), config
    )
    words = np.arange(12)
    said = proxy.probe(words, np.ones(12, dtype=int))
    assert said.argmax() == 1
    assert said.argmin() == 0
    assert proxy.losses[proxy.epoch] == min(proxy.losses)


def test_the_regression_ranks_words_as_its_weights_and_keeps_the_first_best():
    data, labels = _classes(300, 0)
    other, other_labels = _classes(100, 1)
    found = logistic_sweep(data, labels, other, other_labels, penalties=(1e-5, 1.0, 100.0))
    assert found.accuracies[-1] == 1.0
    assert found.penalty == (1e-5, 1.0, 100.0)[int(np.argmax(found.accuracies))]
    words = np.arange(12)
    said = found.probe(words, np.ones(12, dtype=int))
    np.testing.assert_allclose(said, found.weights[:, 1])
    np.testing.assert_allclose(found.probe(words, np.zeros(12, dtype=int)), -said)


@pytest.mark.parametrize("answers", [2, 7])
def test_what_words_say_is_told_apart_however_sure_they_are(answers):
    """Exact log-odds, up to weights whose probabilities are 1 in 64 bits."""
    draw = np.random.default_rng(0)
    vectors = torch.tensor(draw.normal(size=(40, 3)) * np.geomspace(0.1, 200, 40)[:, None])
    weight = torch.tensor(draw.normal(size=(answers, 3)))
    words, asked = (one.ravel() for one in np.mgrid[:40, :answers])
    said = (vectors @ weight.T).tolist()
    expected = []
    for word, answer in zip(words, asked, strict=True):
        others = [value for k, value in enumerate(said[word]) if k != answer]
        highest = max(others)
        rest = highest + math.log(math.fsum(math.exp(value - highest) for value in others))
        expected.append(said[word][answer] - rest)
    proxy = Proxy(vectors, weight, torch.zeros(answers), (0.0,), (0.0,))
    np.testing.assert_allclose(proxy.probe(words, asked), expected, rtol=1e-9, atol=1e-12)
    table = Regression((vectors @ weight.T).numpy(), 1.0, ())
    np.testing.assert_allclose(table.probe(words, asked), expected, rtol=1e-9, atol=1e-12)


def test_padding_and_the_start_symbol_count_only_when_asked_for():
    answers = side([[3, 4, 4], [5]], 6)
    rows = np.arange(2)
    plain = _answers(answers, rows, ProxyConfig(), "cpu")
    released = _answers(answers, rows, ProxyConfig(counts_padding=True), "cpu")
    assert plain.tolist() == [[0, 0, 0, 1, 2, 0], [0, 0, 0, 0, 0, 1]]
    assert (released - plain).tolist() == [[0, 1, 0, 0, 0, 0], [2, 1, 0, 0, 0, 0]]
