"""Who claims what matters: functions from a reading to one number per unit, higher = more."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.errors import UnsupportedModel
from heedful.models.classifier import AttentionClassifier
from heedful.models.edits import Replace
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel, alone, evaluating, without_each
from heedful.runs.randomness import keys, uniform_noise

PATH_TOKENS = 32_768
"""Tokens that go through the model side by side when gradients are integrated."""


def random(model: AttentiveModel, reading: Reading, seed: int = 0) -> Float[Tensor, "batch unit"]:
    """Uniform noise keyed by (seed, instance): the row every other method is compared with."""
    noise_keys = keys(seed, reading.names, "random importance")
    return uniform_noise(noise_keys, reading.mask.shape[1]).to(reading.attention)


def attention(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """The attention weights themselves."""
    return reading.attention


def gradient(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """∂p_y / ∂α_i: the decided class's probability against each weight as a free variable.

    Signed, at the original weights, not through the softmax (erasure.md §3.5). With a linear head
    p_y (z_iy - Σ_k p_k z_ik), otherwise by automatic differentiation.
    """
    if reading.unit_logits is None:
        return gradient_by_autograd(model, reading)
    probability = reading.logits.softmax(-1)
    said = _of_class(reading.unit_logits, reading.decision)
    expected = (reading.unit_logits * probability[:, None]).sum(-1)
    slope = probability.gather(1, reading.decision[:, None]) * (said - expected)
    return slope.masked_fill(~reading.mask, 0)


def gradient_by_autograd(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """The same derivative by automatic differentiation, for heads that are not linear."""
    with evaluating(model), torch.enable_grad():
        weights = reading.attention.detach().clone().requires_grad_()
        if reading.unit_logits is not None and reading.offset is not None:
            logits = torch.einsum("bu,buc->bc", weights, reading.unit_logits) + reading.offset
        else:
            logits = model.answer(reading, Replace(weights[:, None]))[:, 0]
        top = logits.softmax(-1).gather(1, reading.decision[:, None]).sum()
        (slope,) = torch.autograd.grad(top, weights)
    return slope.masked_fill(~reading.mask, 0)


def product(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """α_i g_i, signed."""
    return reading.attention * gradient(model, reading)


def centred_product(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """α_i (g_i - Σ_j α_j g_j): the first-order effect of shrinking a weight and renormalising.

    Ours, not in the paper: α g alone still holds the shrinkage that renormalisation undoes
    (erasure.md §6.5).
    """
    slope = gradient(model, reading)
    mean = (reading.attention * slope).sum(-1, keepdim=True)
    return reading.attention * (slope - mean)


def single_unit(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """Probability of the decision if all attention lay on this unit."""
    probability = alone(model, reading).softmax(-1)
    return _of_class(probability, reading.decision).masked_fill(~reading.mask, 0)


def leave_one_out(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """How much the decision's probability falls when this unit's attention is erased."""
    before = reading.logits.softmax(-1).gather(1, reading.decision[:, None])
    after = _of_class(without_each(model, reading).softmax(-1), reading.decision)
    return (before - after).masked_fill(~reading.mask, 0)


def integrated_gradients(
    model: AttentiveModel, reading: Reading, steps: int = 16
) -> Float[Tensor, "batch unit"]:
    """Integrated gradients of the decision's probability from zero vectors to the word vectors.

    Gauss-Legendre quadrature; summed over dimensions, then over the tokens of a unit. Several
    points of the path go through the model side by side: recurrent cells are slow on few rows.
    """
    if not isinstance(model, AttentionClassifier):
        raise UnsupportedModel("integrated gradients need a model that starts from word vectors.")
    inputs = reading.inputs.detach()
    points, weights = (
        torch.from_numpy(x).to(inputs) for x in np.polynomial.legendre.leggauss(steps)
    )
    together = max(PATH_TOKENS // reading.batch.ids.numel(), 1)
    total = torch.zeros_like(inputs)
    # cuDNN has no backward pass for recurrent cells in evaluation mode.
    with evaluating(model), torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        for start in range(0, steps, together):
            point, weight = (x[start : start + together] for x in (points, weights))
            scaled = inputs * ((point + 1) / 2).view(-1, 1, 1, 1)
            scaled = scaled.flatten(0, 1).requires_grad_()
            logits = model.from_inputs(scaled, reading.batch.repeated(len(point))).logits
            decision = reading.decision.repeat(len(point))
            top = logits.softmax(-1).gather(1, decision[:, None]).sum()
            (slope,) = torch.autograd.grad(top, scaled)
            slopes = slope.view(len(point), *inputs.shape)
            total += torch.einsum("p,pbtd->btd", weight / 2, slopes)
    return reading.per_unit((total * inputs).sum(-1).double())


def _of_class(
    x: Float[Tensor, "batch unit class"], chosen: Int[Tensor, "batch"]
) -> Float[Tensor, "batch unit"]:
    """The entry of one class for each document."""
    index = chosen[:, None, None].expand(-1, x.shape[1], 1)
    return x.gather(2, index)[..., 0]
