"""Importance by the audited attention: one number per unit of a reading, higher = more."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.models.edits import Replace
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel, alone, evaluating, without_each
from heedful.runs.randomness import keys, uniform_noise


@runtime_checkable
class ByHead(Protocol):
    """A model whose audited attention has heads, each with a gradient of its own."""

    def slopes(self, reading: Reading) -> Float[Tensor, "batch head unit"]:
        """∂p_y / ∂α of each head's weight on a unit."""


def has_one_row(model: AttentiveModel) -> bool:
    """Whether one row of attention, over units alone, is all that a unit's weight is."""
    return not isinstance(model, ByHead)


def random(model: AttentiveModel, reading: Reading, seed: int = 0) -> Float[Tensor, "batch unit"]:
    """Uniform noise keyed by (seed, instance): the row every other method is compared with."""
    noise_keys = keys(seed, reading.names, "random importance")
    return uniform_noise(noise_keys, reading.mask.shape[1]).to(reading.attention)


def attention(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """The attention weights themselves."""
    return reading.attention


def gradient(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """∂p_y / ∂α_i: the target class's probability against each weight as a free variable.

    Signed, at the original weights, not through the softmax (docs/studies/erasure.md, "Rankings").
    With a linear head p_y (z_iy - Σ_k p_k z_ik), otherwise by automatic differentiation. Where
    there are heads, their sum: all of them move together.
    """
    if isinstance(model, ByHead):
        return _slopes(model, reading).sum(1)
    if reading.unit_logits is None:
        return gradient_by_autograd(model, reading)
    probability = reading.logits.softmax(-1)
    said = _of_class(reading.unit_logits, reading.target)
    expected = (reading.unit_logits * probability[:, None]).sum(-1)
    slope = probability.gather(1, reading.target[:, None]) * (said - expected)
    return slope.masked_fill(~reading.mask, 0)


def gradient_by_autograd(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """The same derivative by automatic differentiation, for heads that are not linear."""
    with evaluating(model), torch.enable_grad():
        weights = reading.attention.detach().clone().requires_grad_()
        if reading.unit_logits is not None and reading.offset is not None:
            logits = torch.einsum("bu,buc->bc", weights, reading.unit_logits) + reading.offset
        else:
            logits = model.answer(reading, Replace(weights[:, None]))[:, 0]
        top = logits.softmax(-1).gather(1, reading.target[:, None]).sum()
        (slope,) = torch.autograd.grad(top, weights)
    return slope.masked_fill(~reading.mask, 0)


def product(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """α_i g_i, signed; summed over heads where there are several."""
    if isinstance(model, ByHead) and reading.heads is not None:
        return (reading.heads * _slopes(model, reading)).sum(1)
    return reading.attention * gradient(model, reading)


def centred_product(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """α_i (g_i - Σ_j α_j g_j): the first-order effect of shrinking a weight and renormalising.

    Ours, not in the paper: α g alone still holds the shrinkage that renormalisation undoes
    (docs/studies/erasure.md, "Rankings of our own").
    """
    slope = gradient(model, reading)
    mean = (reading.attention * slope).sum(-1, keepdim=True)
    return reading.attention * (slope - mean)


def single_unit(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """Probability of the decision if all attention lay on this unit."""
    probability = alone(model, reading).softmax(-1)
    return _of_class(probability, reading.target).masked_fill(~reading.mask, 0)


def leave_one_out(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """How much the decision's probability falls when this unit's attention is erased."""
    before = reading.logits.softmax(-1).gather(1, reading.target[:, None])
    after = _of_class(without_each(model, reading).softmax(-1), reading.target)
    return (before - after).masked_fill(~reading.mask, 0)


def _slopes(model: ByHead, reading: Reading) -> Float[Tensor, "batch head unit"]:
    with evaluating(model):
        return reading.once("slopes", lambda: model.slopes(reading))


def _of_class(
    x: Float[Tensor, "batch unit class"], chosen: Int[Tensor, " batch"]
) -> Float[Tensor, "batch unit"]:
    """The entry of one class for each document."""
    index = chosen[:, None, None].expand(-1, x.shape[1], 1)
    return x.gather(2, index)[..., 0]
