"""LIME and KernelSHAP: exact on a linear model, Shapley values on another, keyed by document."""

import sys
from itertools import combinations
from math import comb

import numpy as np
import pytest
import torch

from heedful.errors import InputError
from heedful.importance import asked_for, explain, methods_of, surrogates
from heedful.models import AttentionClassifier, Reading, read
from heedful.models.log_odds import log_odds
from heedful.models.rereading import read_again
from tests.tiny import batch_of, chosen, classifier, padded

BOTH = ["lime", "kernel-shap"]
BATCH = batch_of(((5,), (3, 4), (1,)))


def bag_of_words() -> tuple[AttentionClassifier, Reading]:
    """The mean of word vectors, and two classes: its log-odds are linear in the words."""
    model = classifier("none+uniform", classes=2)
    return model, read(model, BATCH)


@pytest.mark.slow
def test_both_recover_the_weights_of_a_bag_of_words() -> None:
    model, reading = bag_of_words()
    found = explain(model, reading, BOTH)
    for row, length in enumerate(BATCH.lengths.tolist()):
        alone = chosen(BATCH, [row])
        with torch.no_grad():
            whole = model(alone).attended.values[0]
            nothing = model(alone.replacing(alone.mask, alone.unknown)).attended.values[0]
            said = model.with_zero(model.head(whole - nothing)) - model.with_zero(
                model.head(torch.zeros_like(whole))
            )
        target = int(reading.target[row])
        exact = (said[:, target] - said[:, 1 - target]) / length
        assert float(exact.abs().max()) > 0.1  # there is something to recover
        for name in BOTH:
            ours = found[name][row]
            torch.testing.assert_close(ours[:length], exact, rtol=1e-4, atol=1e-4)
            assert not ours[length:].any()


@pytest.mark.slow
def test_kernel_shap_tends_to_shapley_values_and_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surrogates, "SAMPLES", 8_000)
    model = classifier("bilstm+additive", classes=3)
    batch = chosen(BATCH, [0])
    reading = read(model, batch)
    n = int(batch.lengths[0])
    subsets = torch.tensor([[bool(code >> u & 1) for u in range(n)] for code in range(2**n)])
    logits = read_again(model, batch, subsets[None], "replaced")[0]
    worth = log_odds(logits, reading.target.expand(len(logits))).numpy()
    exact = np.zeros(n)
    for unit in range(n):
        others = [u for u in range(n) if u != unit]
        for size in range(n):
            for some in combinations(others, size):
                code = sum(1 << u for u in some)
                gain = worth[code | 1 << unit] - worth[code]
                exact[unit] += gain / (n * comb(n - 1, size))
    found = explain(model, reading, "kernel-shap")["kernel-shap"][0].numpy()
    assert found.sum() == pytest.approx(worth[-1] - worth[0], abs=1e-3)
    np.testing.assert_allclose(found, exact, atol=0.05 * np.abs(exact).max())


@pytest.mark.slow
def test_draws_belong_to_the_document_and_leave_the_global_ones_alone() -> None:
    model = classifier("bilstm+additive")
    state = torch.get_rng_state()
    together = explain(model, read(model, padded(BATCH, 2)), BOTH, seed=3)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(1)
    alone = explain(model, read(model, chosen(BATCH, [1])), BOTH, seed=3)
    other = explain(model, read(model, chosen(BATCH, [1])), BOTH, seed=4)
    for name in BOTH:
        torch.testing.assert_close(together[name][1, :7], alone[name][0], rtol=1e-4, atol=1e-5)
        assert not torch.allclose(alone[name], other[name], rtol=1e-3)


def test_units_are_those_of_the_model() -> None:
    model = classifier("han:gru+additive")
    reading = read(model, BATCH)
    found = explain(model, reading, BOTH)
    gone = explain(model, reading, "occlusion")["occlusion"]
    for name in BOTH:
        assert found[name].shape == reading.mask.shape
        # One sentence: nothing to fit, what its words cost in log-odds.
        assert float(found[name][0, 0]) * float(gone[0, 0]) > 0


def test_they_are_used_where_named_and_beside_what_they_are_compared_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = classifier("none+additive")
    usual = methods_of(model)
    assert not set(BOTH) & {*usual, *methods_of(model, costly=True)}
    assert asked_for(model, None) == usual
    assert asked_for(model, ["gradient"]) == ("gradient",)
    assert asked_for(model, ["lime"]) == (*usual, "lime")
    assert asked_for(model, ["lime", "gradient"]) == ("random", "attention", "gradient", "lime")
    monkeypatch.setitem(sys.modules, "captum", None)
    monkeypatch.setattr(surrogates, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'heedful\[surrogates\]'"):
        asked_for(model, ["kernel-shap"])
