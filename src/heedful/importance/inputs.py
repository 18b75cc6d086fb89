"""Importance of what a model reads: gradients on the word vectors, and words taken away.

All of it is per unit. What a model reads in several tokens (the pieces of a word, the words of a
sentence) is summed into its unit, so that a word counts the same however it is cut.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.corpora.batches import Batch
from heedful.errors import UnsupportedModel
from heedful.models.reading import Reading
from heedful.models.rereading import chosen, probability, read_again
from heedful.models.verbs import AttentiveModel, evaluating, frozen

PATH_TOKENS = 32_768
"""Tokens that go through a model side by side when gradients are taken, unless it says itself how
many fit (`gradient_tokens`)."""
OCCLUDED = 64
"""Units of a document that are taken away in one go."""


@runtime_checkable
class FromInputs(Protocol):
    """A model that starts from word vectors, so that gradients on them can be taken."""

    def from_inputs(self, inputs: Float[Tensor, "batch token dim"], batch: Batch) -> Any:
        """Something with `logits` [batch class]."""


def starts_from_inputs(model: AttentiveModel) -> bool:
    """Whether gradients on word vectors can be taken."""
    return isinstance(model, FromInputs)


def input_gradient(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """‖∂p_y / ∂x_t‖ of the word vectors x_t, summed over the tokens of a unit."""
    return reading.per_unit(_slopes(model, reading).norm(dim=-1))


def gradient_input(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """⟨x_t, ∂p_y / ∂x_t⟩, summed over the tokens of a unit: signed."""
    return reading.per_unit((_slopes(model, reading) * reading.inputs.double()).sum(-1))


def integrated_gradients(
    model: AttentiveModel, reading: Reading, steps: int = 16
) -> Float[Tensor, "batch unit"]:
    """Integrated gradients of the target's probability from zero vectors to the word vectors.

    Gauss-Legendre quadrature; summed over dimensions, then over the tokens of a unit. Several
    points of the path go through the model side by side: recurrent cells are slow on few rows.
    """
    inputs = reading.inputs.detach()
    points, weights = (
        torch.from_numpy(x).to(inputs) for x in np.polynomial.legendre.leggauss(steps)
    )
    total = _mean_slopes(model, reading, (points + 1) / 2, weights / 2)
    return reading.per_unit((total * inputs).sum(-1).double())


def occlusion(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """How much the target's probability falls when the unit's tokens are replaced by `<unk>`."""
    after = probability(occluded(model, reading), reading.target)
    before = probability(reading.logits[:, None], reading.target)
    return (before - after).masked_fill(~reading.mask, 0)


def occluded(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit class"]:
    """Logits with each unit's tokens replaced by `<unk>`, read again."""
    parts = []
    every = torch.arange(reading.mask.shape[1], device=reading.mask.device)
    for units in torch.split(every, OCCLUDED):
        kept = reading.unit_of_token[:, None] != units[:, None]
        parts.append(read_again(model, reading.batch, kept, "replaced"))
    return torch.cat(parts, 1)


def _slopes(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch token dim"]:
    """∂p_y / ∂x at the word vectors themselves."""
    one = torch.ones(1).to(reading.inputs)
    return _mean_slopes(model, reading, one, one).double()


def _mean_slopes(
    model: AttentiveModel,
    reading: Reading,
    points: Float[Tensor, "point"],
    weights: Float[Tensor, "point"],
) -> Float[Tensor, "batch token dim"]:
    """Σ_s w_s ∂p_y / ∂x at s·x, in passes of bounded size: some texts, or some points of all."""
    tokens, texts = reading.batch.ids.numel(), len(reading.batch)
    most = max(getattr(model, "gradient_tokens", PATH_TOKENS) // max(tokens // texts, 1), 1)
    inputs, batch, target = reading.inputs.detach(), reading.batch, reading.target
    total = torch.zeros_like(inputs)
    if most < texts:
        for some in torch.split(torch.arange(texts, device=inputs.device), most):
            part = replace(
                reading, batch=chosen(batch, some, batch.ids.shape[1]),
                inputs=inputs[some], explained=target[some],
            )  # fmt: skip
            total[some] = _mean_slopes(model, part, points, weights)
        return total
    parts = (torch.split(x, most // texts) for x in (points, weights))
    for point, weight in zip(*parts, strict=True):
        scaled = inputs * point.view(-1, 1, 1, 1)
        slopes = _slopes_at(model, batch, target, scaled)
        total += torch.einsum("p,pbtd->btd", weight, slopes)
    return total


def _slopes_at(
    model: AttentiveModel,
    batch: Batch,
    target: Int[Tensor, "batch"],
    points: Float[Tensor, "point batch token dim"],
) -> Float[Tensor, "point batch token dim"]:
    """∂p_y / ∂x at several points, all in one pass."""
    if not isinstance(model, FromInputs):
        raise UnsupportedModel("gradients on inputs need a model that starts from word vectors.")
    # cuDNN has no backward pass for recurrent cells in evaluation mode.
    with (
        evaluating(model),
        frozen(model),
        torch.enable_grad(),
        torch.backends.cudnn.flags(enabled=False),
    ):
        inputs = points.flatten(0, 1).requires_grad_()
        batch = batch if len(points) == 1 else batch.repeated(len(points))
        logits: Tensor = model.from_inputs(inputs, batch).logits
        # In 64 bits: the slope of a sure model's probability rounds to 0 in fewer.
        top = logits.double().softmax(-1).gather(1, target.repeat(len(points))[:, None]).sum()
        (slope,) = torch.autograd.grad(top, inputs)
    return slope.view(points.shape)
