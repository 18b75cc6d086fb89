"""Importance by following attention through layers, for models that have them."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.corpora.batches import Batch
from heedful.errors import UnsupportedModel
from heedful.models import tracing
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel, evaluating, positions
from heedful.runs.meter import passed


@runtime_checkable
class Differentiable(Protocol):
    """A model whose outputs can be differentiated by its word vectors."""

    def embed(self, batch: Batch) -> Float[Tensor, "batch token dim"]:
        """Word vectors of the batch."""

    def from_inputs(self, inputs: Float[Tensor, "batch token dim"], batch: Batch) -> Any:
        """A forward pass from word vectors, with `logits`."""

    def outputs(self, logits: Float[Tensor, "batch class"]) -> Float[Tensor, "batch class"]:
        """What the model gives out."""


def is_traceable(model: AttentiveModel) -> bool:
    """Whether the model has layers that attention can be followed through."""
    return isinstance(model, tracing.Traceable) and getattr(model, "is_traceable", True)


def has_outputs(model: AttentiveModel) -> bool:
    """Whether the model says what it gives out besides its logits."""
    return isinstance(model, Differentiable)


def stack_of(model: AttentiveModel, reading: Reading) -> tracing.LayerStack:
    """What the layers did with the reading's batch."""

    def compute() -> tracing.LayerStack:
        passed(positions(model, reading.batch))
        return tracing.layers_of(model, reading.batch)

    return reading.once("layers", compute)


def trace(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """Layer-wise attention tracing, summed over heads: adds up to their number."""
    stack = stack_of(model, reading)
    return reading.per_unit(stack.of_batch(tracing.lat(stack).total).double())


def rollout(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """Attention rollout from where the decision is read; adds up to one."""
    stack = stack_of(model, reading)
    return reading.per_unit(stack.of_batch(tracing.rollout(stack).total).double())


def squared_gradient(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """Σ_d (∂o / ∂x_d)² with o the sum of all outputs.

    See docs/studies/tracing.md, "Gradient score".
    """
    return reading.per_unit(squared_slopes(model, reading.batch).double())


def squared_slopes(
    model: object, batch: Batch, classes: Int[Tensor, " batch"] | None = None
) -> Float[Tensor, "batch token"]:
    """Σ_d (∂o / ∂x_d)² of every token, for a whole batch in one backward pass.

    o is the sum of all outputs, or with `classes` the logit of one class of each document.
    Documents do not meet in evaluation mode, so their sum has the gradient of each.
    """
    if not isinstance(model, Differentiable):
        raise UnsupportedModel(
            f"the squared gradient needs a model of word vectors and outputs; "
            f"{type(model).__name__} has none."
        )
    passed(positions(model, batch), backward=positions(model, batch))
    with evaluating(model), torch.enable_grad():
        inputs = model.embed(batch).detach().requires_grad_()
        logits = model.from_inputs(inputs, batch).logits
        if classes is None:
            summed = model.outputs(logits).sum()
        else:
            summed = logits.gather(1, classes[:, None]).sum()
        (slope,) = torch.autograd.grad(summed, inputs)
    return slope.square().sum(-1).masked_fill(~batch.mask, 0)
