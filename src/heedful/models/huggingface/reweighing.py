"""Edits of words carried out on the attention to their pieces.

An edit speaks of words; attention rows speak of keys: the pieces of words, and special tokens,
which belong to no word. Three rules, for every row that is edited:

* `Scale` acts before the softmax, as a mask does: what is left of the row, special tokens included,
  is renormalised. Erasing a word is what masking its pieces would have been.
* `Replace` and `Permute` divide anew what the row gives to words; special tokens keep their share.
  How much a model rests on `[CLS]` and `[SEP]` is its own affair: moving that share onto words
  would make every replaced row far from anything the model ever computes.
* The pieces of a word keep their proportions. A row that sees only some of the words (a causal
  model, a local window) is edited over those.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.models.edits import Edit, Permute, Replace, Scale
from heedful.models.huggingface.calls import HIDDEN, softmax


@dataclass(frozen=True, eq=False)
class Shift:
    """Add to what each head gives to a word: the derivative at zero is that of the attention."""

    added: Float[Tensor, "batch head unit"]


def reweighed(
    scores: Float[Tensor, "row head query key"],
    edit: Edit | Shift,
    unit_of_key: Int[Tensor, "row key"],
) -> Float[Tensor, "row head query key"]:
    """The edited attention of each row; one edit per row, [row 1 unit].

    `unit_of_key` is -1 at special tokens and padding. A row with nothing left is 0 everywhere.
    """
    if isinstance(edit, Scale):
        return _scaled(scores, _of_keys(edit.weights[:, 0], unit_of_key, 1.0))
    weights = softmax(scores)
    units = {Replace: "attention", Permute: "order", Shift: "added"}[type(edit)]
    words = _Words.of(weights, scores > HIDDEN, unit_of_key, getattr(edit, units).shape[-1])
    match edit:
        case Replace(attention):
            wanted = attention[:, 0, None, None].to(weights) * words.is_seen
            seen = wanted.sum(-1, keepdim=True)
            total = attention[:, 0, None, None].to(weights).sum(-1, keepdim=True)
            # Only where a row cannot see all words is there something to renormalise.
            wanted = torch.where(words.sees_all, wanted, wanted * total / seen.clamp_min(1e-30))
            wanted = wanted * words.share
        case Permute(order):
            index = order[:, 0, None, None].expand(words.held.shape)
            wanted = words.held.gather(-1, index) * words.is_seen
            left = wanted.sum(-1, keepdim=True)
            kept = torch.where(left > 0, words.share / left.clamp_min(1e-30), 0.0)
            wanted = torch.where(words.sees_all, wanted, wanted * kept)
        case Shift(added):
            wanted = words.held + added[:, :, None].to(weights)
    return words.spread(weights, wanted)


def _scaled(
    scores: Float[Tensor, "row head query key"], factor: Float[Tensor, "row key"]
) -> Float[Tensor, "row head query key"]:
    """softmax(scores + log factor): in the scores, so that nothing left ever underflows."""
    factor = factor[:, None, None]
    left = ((scores > HIDDEN) & (factor > 0)).any(-1, keepdim=True)
    moved = scores + factor.log().to(scores.dtype)
    return softmax(moved.masked_fill(~left, 0.0)).masked_fill(~left, 0.0)


def _of_keys(
    of_units: Float[Tensor, "row unit"], unit_of_key: Int[Tensor, "row key"], special: float
) -> Float[Tensor, "row key"]:
    """What belongs to the unit of each key; `special` where it has none."""
    values = of_units.gather(1, unit_of_key.clamp_min(0))
    return values.masked_fill(unit_of_key < 0, special)


@dataclass(frozen=True, eq=False)
class _Words:
    """What the rows of an attention give to words."""

    unit_of_key: Int[Tensor, "row 1 1 key"]
    held: Float[Tensor, "row head query unit"]
    """The attention to each word: the sum over its pieces."""
    pieces: Float[Tensor, "row 1|head 1|query unit"]
    """How many pieces of each word the row sees."""
    visible: Bool[Tensor, "row 1|head query key"]

    @classmethod
    def of(cls, weights: Tensor, visible: Tensor, unit_of_key: Tensor, units: int) -> _Words:
        index = unit_of_key[:, None, None]
        index = torch.where(index < 0, units, index)
        visible = visible & (unit_of_key >= 0)[:, None, None]
        shape = (*weights.shape[:3], units + 1)
        wide = index.expand(weights.shape)
        held = weights.new_zeros(shape).scatter_add(-1, wide, weights * visible)
        seen = weights.new_zeros(shape).scatter_add(-1, wide, visible.to(weights))
        return cls(index, held[..., :units], seen[..., :units], visible)

    @property
    def is_seen(self) -> Tensor:
        return self.pieces > 0

    @property
    def sees_all(self) -> Tensor:
        """Whether the row sees every word of its text."""
        units = self.held.shape[-1]
        there = torch.zeros(
            len(self.held), 1, 1, units + 1, dtype=torch.bool, device=self.held.device
        )
        there = there.scatter(-1, self.unit_of_key, True)[..., :units]
        return (self.is_seen == there).all(-1, keepdim=True)

    @property
    def share(self) -> Tensor:
        """What the row gives to words together."""
        return self.held.sum(-1, keepdim=True)

    def spread(self, weights: Tensor, wanted: Tensor) -> Tensor:
        """The weights with each word's attention as wanted, its pieces in their proportions."""
        wide = self.unit_of_key.expand(weights.shape)

        def at_keys(of_units: Tensor) -> Tensor:
            padded = torch.cat([of_units, torch.zeros_like(of_units[..., :1])], -1)
            return padded.expand(*weights.shape[:3], -1).gather(-1, wide)

        held = at_keys(self.held)
        even = 1 / at_keys(self.pieces).clamp_min(1)
        # A word with less than this has lost its pieces' proportions to rounding.
        share = torch.where(held > 1e-30, weights / held.clamp_min(1e-30), even)
        moved = at_keys(wanted) * share
        return torch.where(self.visible, moved, weights)
