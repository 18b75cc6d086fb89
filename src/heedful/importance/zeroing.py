"""Value zeroing: how much of a word reaches the decision when its values are what is taken away.

In every layer a word's value vectors are set to zero and the states that leave the layer are
compared with those that did before; the rows of that matrix, made to sum to one, are followed from
where the decision is read down to the words (Mohebbi et al. 2023). Unlike attention it counts the
whole of a layer: values, residual stream, feed-forward part.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.corpora.batches import Batch
from heedful.errors import UnsupportedModel
from heedful.models.followed import Mixed
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel, evaluating


@runtime_checkable
class Zeroable(Protocol):
    """A model whose layers can be run again without a word's values."""

    @property
    def shows_values(self) -> bool:
        """Whether this one's can, with the architecture it has."""

    def mixed(self, batch: Batch) -> Mixed:
        """The matrices of each text; its words come first."""


def is_zeroable(model: AttentiveModel) -> bool:
    """Whether values can be taken away."""
    return isinstance(model, Zeroable) and model.shows_values


def value_zeroing(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """The share of the decision's state that each word makes up, followed through all layers."""
    if not isinstance(model, Zeroable):
        raise UnsupportedModel(f"{type(model).__name__} cannot be run without a word's values.")
    with evaluating(model):
        mixed = model.mixed(reading.batch)
    here = mixed.pooling[:, None]
    for layer in mixed.layers.flip(0):
        # A group that nothing turns (a causal model's first) keeps what it holds.
        total = layer.sum(-1, keepdim=True)
        eye = torch.eye(layer.shape[-1], dtype=layer.dtype, device=layer.device)
        here = here @ torch.where(total > 0, layer / total.clamp_min(1e-30), eye)
    return here[:, 0, : reading.mask.shape[1]].masked_fill(~reading.mask, 0)
