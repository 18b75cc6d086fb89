"""Gradients on word vectors, and words taken away: captum as the oracle."""

from __future__ import annotations

import pytest
import torch
from captum.attr import FeatureAblation, InputXGradient, Saliency
from torch import Tensor

from heedful.importance import explain, inputs
from heedful.models import read
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
