"""Importance methods against automatic differentiation, differences and captum."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients
from torch import Tensor, nn

from heedful.errors import InputError, UnsupportedModel
from heedful.importance import explain, methods, methods_of
from heedful.importance.inputs import integrated_gradients
from heedful.models import Reading, Scale, decide, read
from tests.tiny import NonLinear, batch_of, chosen, classifier, padded

BATCH = batch_of()
RECIPES = ["none+dot", "conv+additive+concat", "bilstm+additive", "han:gru+scaled-dot"]


def probability(reading: Reading, logits: Tensor) -> Tensor:
    """Probability of the decided class, `[batch edit class]` to `[batch edit]`."""
    index = reading.decision[:, None, None].expand(*logits.shape[:2], 1)
    return logits.softmax(-1).gather(2, index)[..., 0]


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("recipe", RECIPES)
def test_the_closed_form_gradient_is_the_automatic_one(recipe: str, classes: int) -> None:
    model = classifier(recipe, classes)
    reading = read(model, BATCH)
    ours = methods.gradient(model, reading)
    torch.testing.assert_close(
        ours, methods.gradient_by_autograd(model, reading), rtol=1e-12, atol=1e-12
    )
    assert float(ours[~reading.mask].abs().sum()) == 0


def test_a_head_that_is_not_linear_has_its_gradient_by_automatic_differentiation() -> None:
    inner = classifier("conv+additive")
    straight, exact = NonLinear(inner, nn.Identity()), read(inner, BATCH)
    torch.testing.assert_close(
        methods.gradient(straight, read(straight, BATCH)),
        methods.gradient(inner, exact),
        rtol=1e-12,
        atol=1e-12,
    )
    bent = NonLinear(inner, nn.Sequential(nn.Tanh(), nn.Dropout(0.5)).double()).train()
    reading = read(bent, BATCH)
    slope = methods.gradient(bent, reading)
    assert bent.training
    assert torch.equal(slope, methods.gradient(bent, reading))  # dropout is off
    step = 1e-6 * torch.eye(reading.mask.shape[1], dtype=torch.float64)
    with torch.no_grad():
        bent.eval()
        up = bent._head(reading, reading.attention[:, None] + step)
        down = bent._head(reading, reading.attention[:, None] - step)
    difference = (probability(reading, up) - probability(reading, down)) / 2e-6
    torch.testing.assert_close(
        slope, difference.masked_fill(~reading.mask, 0), rtol=1e-7, atol=1e-8
    )


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_centred_product_is_the_slope_of_shrinking_a_weight(recipe: str) -> None:
    model = classifier(recipe)
    reading = read(model, BATCH)
    eye = torch.eye(reading.mask.shape[1], dtype=torch.float64)
    eye = eye.expand(len(BATCH), -1, -1)
    shrunk = probability(reading, decide(model, reading, Scale(1 - 1e-5 * eye)))
    grown = probability(reading, decide(model, reading, Scale(1 + 1e-5 * eye)))
    difference = ((grown - shrunk) / 2e-5).masked_fill(~reading.mask, 0)
    torch.testing.assert_close(
        methods.centred_product(model, reading), difference, rtol=1e-6, atol=1e-8
    )


def test_products_are_attention_times_gradient() -> None:
    model = classifier("bilstm+additive")
    reading = read(model, BATCH)
    slope = methods.gradient(model, reading)
    assert torch.equal(methods.product(model, reading), reading.attention * slope)
    centred = methods.centred_product(model, reading)
    torch.testing.assert_close(centred.sum(-1), torch.zeros(len(BATCH)).double())


def test_single_unit_and_leave_one_out_run_the_model_with_that_attention() -> None:
    model = classifier("gru+dot")
    reading = read(model, BATCH)
    eye = torch.eye(reading.mask.shape[1], dtype=torch.float64).expand(len(BATCH), -1, -1)
    alone = probability(reading, decide(model, reading, Scale(eye)))
    without = probability(reading, decide(model, reading, Scale(1 - eye)))
    before = probability(reading, reading.logits[:, None])
    for ours, expected in (
        (methods.single_unit(model, reading), alone),
        (methods.leave_one_out(model, reading), before - without),
    ):
        torch.testing.assert_close(ours, expected.masked_fill(~reading.mask, 0))


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_integrated_gradients_are_those_of_captum_and_complete(recipe: str) -> None:
    model = classifier(recipe, sharpness=1.5)
    bend = 5e-3 if "conv" in recipe else 1e-6  # a rectifier's kinks are hard on quadrature
    reading = read(model, BATCH)
    ours = integrated_gradients(model, reading, error=1e-9)

    # One document at a time: captum repeats its input, the batch beside it stays as it is.
    for document in range(len(BATCH)):
        alone = chosen(BATCH, [document])

        def top(inputs: Tensor, alone: object = alone, document: int = document) -> Tensor:
            rows = [model.from_inputs(row[None], alone).logits for row in inputs]
            return torch.cat(rows).softmax(-1)[:, reading.decision[document]]

        inputs = model.embed(alone).detach()
        expected = IntegratedGradients(top).attribute(
            inputs, n_steps=200, method="gausslegendre", internal_batch_size=None
        )
        by_token = expected.sum(-1)[0]
        units = reading.unit_of_token[document, : len(by_token)]
        by_unit = torch.zeros(reading.mask.shape[1]).double().scatter_add(0, units, by_token)
        # captum keeps its quadrature weights in float32.
        torch.testing.assert_close(ours[document], by_unit, rtol=1e-6, atol=max(bend / 10, 1e-7))
        with torch.no_grad():
            risen = (top(inputs) - top(torch.zeros_like(inputs)))[0]
        assert float(ours[document].sum()) == pytest.approx(float(risen), abs=bend)


def test_integrated_gradients_leave_the_model_as_it_was() -> None:
    model = classifier("bilstm+additive", dropout=0.5).train()
    reading = read(model, BATCH)
    first = integrated_gradients(model, reading)
    assert torch.equal(first, integrated_gradients(model, reading))
    assert model.training
    assert all(weight.grad is None for weight in model.parameters())
    with pytest.raises(UnsupportedModel):
        integrated_gradients(NonLinear(model, nn.Identity()), reading)


@pytest.mark.parametrize("name", methods_of(classifier("none+dot"), costly=True))
@pytest.mark.parametrize("recipe", ["bilstm+additive", "han:conv+dot"])
def test_padding_and_batch_order_change_no_importance(name: str, recipe: str) -> None:
    model = classifier(recipe)
    whole = explain(model, read(model, BATCH), [name])[name]
    for rows in ([2, 0, 3, 1], [0], [1], [2]):
        reading = read(model, padded(chosen(BATCH, rows), 2))
        ours = explain(model, reading, [name])[name]
        for here, there in enumerate(rows):
            units = int(reading.units[here])
            np.testing.assert_allclose(ours[here, :units], whole[there, :units], atol=1e-11)


def test_random_importance_belongs_to_seed_and_instance() -> None:
    model = classifier("none+dot")
    reading = read(model, BATCH)
    first, again, other = (
        explain(model, reading, ["random"], seed=seed)["random"] for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert len(first.flatten().unique()) == first.numel()


def test_an_unknown_method_is_refused_with_the_nearest_name() -> None:
    model = classifier("none+dot")
    with pytest.raises(InputError, match="Did you mean 'attention'"):
        explain(model, read(model, BATCH), ["atention"])
