"""Gradients on word vectors, and words taken away: captum as the oracle."""

from __future__ import annotations

import pytest
import torch
from captum.attr import FeatureAblation, InputXGradient, Saliency
from torch import Tensor

from heedful.importance import explain, inputs
from heedful.models import AttentionClassifier, Reading, read
from tests.tiny import batch_of, chosen, classifier

BATCH = batch_of(((3,), (2, 4), (1, 3, 2)))


@pytest.mark.slow
def test_gradients_are_the_same_in_passes_of_any_size_and_weights_are_left_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = classifier("bilstm+additive").double()
    reading = read(model, BATCH)
    at_once = [m(model, reading) for m in (inputs.gradient_input, inputs.integrated_gradients)]
    longest = int(BATCH.lengths.max())
    for tokens in (1, longest, 2 * longest, 7 * longest):  # a text, some texts, some points
        monkeypatch.setattr(inputs, "PATH_TOKENS", tokens)
        methods = (inputs.gradient_input, inputs.integrated_gradients)
        for before, method in zip(at_once, methods, strict=True):
            torch.testing.assert_close(method(model, reading), before)
    assert all(w.requires_grad and w.grad is None for w in model.parameters())


def test_gradients_of_a_sure_model_of_32_bits_keep_their_order() -> None:
    """With log-odds of 30 the probability is 1 to the bit; the words still differ."""
    model = classifier("bilstm+additive").float()
    with torch.no_grad():
        reading = read(model, BATCH)
        apart = reading.logits.topk(2).values.diff().abs().max()
        model.head.weight *= 30 / apart
        model.head.bias *= 30 / apart
    sure = inputs.input_gradient(model, read(model, BATCH))
    exact = inputs.input_gradient(model.double(), read(model, BATCH))
    assert float(exact.sum(1).min()) < 1e-9
    shares = [found.double() / found.sum(1, keepdim=True) for found in (sure, exact)]
    torch.testing.assert_close(*shares, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("recipe", ["bilstm+additive", "conv+dot", "han:gru+additive"])
def test_gradients_and_occlusion_are_those_of_captum(recipe: str) -> None:
    model = classifier(recipe)
    reading = read(model, BATCH)
    ours = explain(model, reading, ["input-gradient", "gradient-input", "occlusion"])
    for document in range(len(BATCH)):
        alone = chosen(BATCH, [document])
        units = reading.unit_of_token[document, : alone.mask.shape[1]]

        def top(inputs: Tensor, alone: object = alone, document: int = document) -> Tensor:
            rows = [model.from_inputs(row[None], alone).logits for row in inputs]
            return torch.cat(rows).softmax(-1)[:, reading.decision[document]]

        def per_unit(tokens: Tensor, units: Tensor = units) -> Tensor:
            zero = torch.zeros(reading.mask.shape[1], dtype=tokens.dtype)
            return zero.scatter_add(0, units, tokens)

        inputs = model.embed(alone).detach()
        slope = Saliency(top).attribute(inputs.clone().requires_grad_(), abs=False)[0]
        expected = {
            "input-gradient": per_unit(slope.norm(dim=-1)),
            "gradient-input": per_unit(
                InputXGradient(top).attribute(inputs.clone().requires_grad_()).sum(-1)[0]
            ),
        }
        unknown = model.embedding.weight[BATCH.unknown].detach().expand(inputs.shape)
        groups = units[None, :, None].expand(inputs.shape)
        ablated = FeatureAblation(top).attribute(inputs, baselines=unknown, feature_mask=groups)
        first = torch.tensor([int((units == u).nonzero()[0]) for u in units.unique()])
        expected["occlusion"] = torch.zeros(reading.mask.shape[1]).double()
        expected["occlusion"][: len(first)] = ablated[0, first, 0]
        for name, wanted in expected.items():
            torch.testing.assert_close(ours[name][document], wanted, rtol=1e-9, atol=1e-11)


def sure() -> tuple[AttentionClassifier, Reading]:
    """A model that turns from one class to the other within a short part of the path."""
    model = classifier("bilstm+additive")
    with torch.no_grad():
        model.head.weight *= 40
    return model, read(model, BATCH)


def test_integrated_gradients_take_points_until_they_add_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, reading = sure()
    few = inputs.missing(model, reading, inputs.integrated_gradients(model, reading, most=7))
    assert float(few.max()) > 0.1
    asked: list[int] = []
    run = model.from_inputs
    monkeypatch.setattr(
        model, "from_inputs", lambda x, batch: asked.append(len(x)) or run(x, batch)
    )
    found = inputs.integrated_gradients(model, reading)
    # One pass without words; then 7 points of all documents, and 8, 16, 32 more of some.
    assert asked[:2] == [3, 21]
    documents = [rows / points for rows, points in zip(asked[2:5], (8, 16, 32), strict=True)]
    assert documents == sorted(documents, reverse=True)
    assert documents[0] >= int((few > inputs.STATED_ERROR).sum())
    assert sum(asked[5:]) < 3 * (inputs.MOST_POINTS - 63)  # then where the path is steep
    assert float(inputs.missing(model, reading, found).max()) <= inputs.STATED_ERROR


def test_they_add_up_on_a_model_that_turns_within_a_thousandth_of_the_path() -> None:
    model, reading = sure()
    with torch.no_grad():
        model.head.weight *= 100
    reading = read(model, BATCH)
    whole = inputs.integrated_gradients(model, reading, most=63)
    assert float(inputs.missing(model, reading, whole).max()) > 0.1
    found = inputs.integrated_gradients(model, reading)
    assert float(inputs.missing(model, reading, found).max()) <= inputs.STATED_ERROR
    single = chosen(BATCH, [1])  # the same whatever is read beside it
    alone = inputs.integrated_gradients(model, read(model, single))
    torch.testing.assert_close(alone[0], found[1, : alone.shape[1]], rtol=0, atol=1e-9)


def test_integrated_gradients_are_the_integral_by_brute_force() -> None:
    model, reading = sure()
    found = inputs.integrated_gradients(model, reading, error=1e-9, most=2047)
    steps, total = 20_000, torch.zeros(reading.batch.ids.shape, dtype=torch.float64)
    for point in ((torch.arange(steps) + 0.5) / steps).split(2_000):
        scaled = (reading.inputs.detach() * point.double().view(-1, 1, 1, 1)).flatten(0, 1)
        scaled.requires_grad_()
        logits = model.from_inputs(scaled, reading.batch.repeated(len(point))).logits
        top = logits.softmax(-1).gather(1, reading.target.repeat(len(point))[:, None]).sum()
        (slope,) = torch.autograd.grad(top, scaled)
        slope = slope.view(len(point), *reading.inputs.shape).sum(0)
        total += (slope * reading.inputs.detach()).sum(-1) / steps
    torch.testing.assert_close(found, reading.per_unit(total), rtol=0, atol=1e-5)
    # Points until they add up are enough for single words too.
    quick = inputs.integrated_gradients(model, reading)
    torch.testing.assert_close(quick, found, rtol=0, atol=2 * inputs.STATED_ERROR)


def test_a_cap_on_points_is_kept_and_what_is_missing_is_told() -> None:
    model, reading = sure()
    found = inputs.integrated_gradients(model, reading, error=0.0, most=15)
    assert float(inputs.missing(model, reading, found).max()) > 0


def test_methods_that_need_the_same_share_it_within_one_explanation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = classifier("bilstm+additive")
    reading = read(model, BATCH)
    calls: list[int] = []
    run = model.from_inputs
    monkeypatch.setattr(model, "from_inputs", lambda x, batch: calls.append(1) or run(x, batch))
    names = ["input-gradient", "gradient-input"]
    both = explain(model, reading, names)
    assert len(calls) == 1
    with torch.no_grad():
        model.head.weight *= 2  # nothing is kept from one explanation to the next
    again = explain(model, reading, names)
    assert len(calls) == 2
    assert not torch.equal(both["input-gradient"], again["input-gradient"])
