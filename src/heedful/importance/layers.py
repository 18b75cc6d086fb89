"""Importance by the attention of many layers and heads, from fused kernels and without a matrix.

What a summary needs of a layer with attention P is a product with a vector over the queries,
Pᵀr (`models/columns.py`): a row is Pᵀ of one query, the attention received is Pᵀ of all. Attention
to a word is the sum over its pieces.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.errors import UnsupportedModel
from heedful.importance.traced import stack_of
from heedful.models.followed import Followable
from heedful.models.reading import Reading
from heedful.models.tracing import Layer, LayerStack
from heedful.models.verbs import AttentiveModel, evaluating, positions
from heedful.runs.meter import passed


def is_followable(model: AttentiveModel) -> bool:
    """Whether the model shows the values of its layers."""
    return isinstance(model, Followable) and model.shows_values


def mean_attention(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """What the position that decides attends to, averaged over layers and heads."""
    stack = stack_of(model, reading)
    return _per_word(reading, stack, _rows(stack)).mean(1)


def max_attention(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """The most that the position that decides gives to a word in any head of any layer."""
    stack = stack_of(model, reading)
    return _per_word(reading, stack, _rows(stack)).amax(1)


def last_attention(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """The attention a word receives from all positions in the last layer, over its heads."""
    stack = stack_of(model, reading)
    return _per_word(reading, stack, received(stack, stack.layers[-1:])).mean(1)


def received_attention(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """The attention a word receives from all positions, averaged over layers and heads."""
    stack = stack_of(model, reading)
    return _per_word(reading, stack, received(stack, stack.layers)).mean(1)


def value_norm(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """Attention received times the length of what is handed on: ‖v_k‖ Σ_q P_qk, as a mean.

    A key that is much attended but hands on next to nothing counts little (Kobayashi et al. 2020).
    """
    passed(positions(model, reading.batch))
    with evaluating(model):
        found = _followable(model).followed(reading.batch)
    lengths = torch.cat([value.norm(dim=-1) for value in found.values], 1)
    weighed = received(found.stack, found.stack.layers) * lengths
    return _per_word(reading, found.stack, weighed).mean(1)


def attention_gradient(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """Attention times its gradient, Σ_q P_qk ∂p_y/∂P_qk, summed over layers and heads: signed.

    With O = P V this is ⟨v_k, ∂p_y/∂v_k⟩: one backward pass, and no matrix.
    """
    # Every layer is run once more on the way down.
    one = positions(model, reading.batch)
    passed(2 * one, backward=one)
    with evaluating(model):
        products = _followable(model).value_products(reading.batch, reading.target)
    return reading.per_unit(products.double().sum(1))


def head_rows(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch layer head unit"]:
    """What the position that decides gives to each word, by every head of every layer."""
    stack = stack_of(model, reading)
    rows = _per_word(reading, stack, _rows(stack))
    return rows.view(len(rows), len(stack.layers), -1, rows.shape[-1])


def head_pairs(
    model: AttentiveModel, reading: Reading, rows: Sequence[int]
) -> dict[int, Float[Tensor, "layer head unit unit"]]:
    """What each word (row) gives to each word in some texts: the mean over the pieces that attend.

    The only summary here that makes the matrices themselves; for short texts.
    """
    if not rows:
        return {}
    stack, found = stack_of(model, reading), {}
    units = reading.mask.shape[1]
    for row in rows:
        owner = torch.nn.functional.one_hot(reading.unit_of_token[row], units).double()
        owner = owner * reading.batch.mask[row, :, None]
        even = owner / owner.sum(0).clamp_min(1)
        place = slice(None) if stack.place is None else stack.place[row]
        matrices = torch.stack([layer.matrix()[row] for layer in stack.layers]).double()
        found[row] = even.T @ matrices[:, :, place][..., place] @ owner
    return found


def received(stack: LayerStack, layers: Sequence[Layer]) -> Float[Tensor, "batch layer*head key"]:
    """What each key gets from all positions alike, by every head of the layers: Pᵀ1/n."""
    start = stack.mask.to(stack.pooling)
    start = (start / start.sum(-1, keepdim=True))[:, None]
    return torch.cat([layer.columns(start.expand(-1, layer.heads, -1)) for layer in layers], 1)


def _rows(stack: LayerStack) -> Float[Tensor, "batch layer*head key"]:
    """The row of the position that decides, by every head of every layer."""
    start = stack.pooling[:, None]
    return torch.cat(
        [layer.columns(start.expand(-1, layer.heads, -1)) for layer in stack.layers], 1
    )


def _per_word(
    reading: Reading, stack: LayerStack, values: Float[Tensor, "batch row key"]
) -> Float[Tensor, "batch row unit"]:
    """The sum over the pieces of each word."""
    at_tokens = stack.of_batch(values.detach()).double()
    return torch.stack([reading.per_unit(row) for row in at_tokens.unbind(1)], 1)


def _followable(model: AttentiveModel) -> Followable:
    if not isinstance(model, Followable):
        raise UnsupportedModel(f"{type(model).__name__} does not show the values of its layers.")
    return model
