"""Alternatives to an attention row, as data: scale, replace, permute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.models.reading import Reading

SMALLEST_MASS = 1e-290
"""Below this, what is left of a row has underflowed and is computed from the scores instead."""


@dataclass(frozen=True, eq=False)
class Scale:
    """Multiply each weight and renormalise: 0 erases a unit, 1 keeps it."""

    weights: Float[Tensor, "batch edit unit"]


@dataclass(frozen=True, eq=False)
class Replace:
    """Set the row: uniform, one-hot, an adversary's, the best one."""

    attention: Float[Tensor, "batch edit unit"]


@dataclass(frozen=True, eq=False)
class Permute:
    """Give unit i the weight that unit `order[i]` had; padding maps to itself."""

    order: Int[Tensor, "batch edit unit"]


Edit = Scale | Replace | Permute


class Rows(NamedTuple):
    """The attention rows an edit makes."""

    attention: Float[Tensor, "batch edit unit"]
    """Non-negative, zero at padding; sums to 1, or to 0 where nothing is left."""
    unchanged: Bool[Tensor, "batch edit"]
    """True where the edit leaves the row as it was, to the bit."""


def rows(reading: Reading, edit: Edit) -> Rows:
    """The attention rows that the edit asks for."""
    match edit:
        case Scale(weights):
            return _scaled(reading, weights.to(reading.attention))
        case Replace(attention):
            attention = attention.to(reading.attention).masked_fill(~reading.mask[:, None], 0)
            is_same = (attention == reading.attention[:, None]).all(-1)
            # Several heads given the mean of their rows no longer attend as they did.
            return Rows(attention, is_same if reading.heads is None else is_same & False)
        case Permute(order):
            attention = reading.attention[:, None].expand(order.shape).gather(2, order)
            is_same = (attention == reading.attention[:, None]).all(-1)
            if reading.heads is not None:
                place = torch.arange(order.shape[-1], device=order.device)
                is_same = ((order == place) | ~reading.mask[:, None]).all(-1)
            return Rows(attention, is_same)


def _scaled(reading: Reading, weights: Float[Tensor, "batch edit unit"]) -> Rows:
    mask = reading.mask[:, None]
    weights = weights.masked_fill(~mask, 0)
    scaled = weights * reading.attention[:, None]
    mass = scaled.sum(-1, keepdim=True)
    attention = torch.where(mass > 0, scaled / mass.clamp_min(SMALLEST_MASS), 0.0)
    lost = (mass < SMALLEST_MASS)[..., 0] & (weights > 0).any(-1)
    if bool(lost.any()):  # what is left has underflowed: softmax over the remaining scores
        document, position = lost.nonzero(as_tuple=True)
        scores = reading.scores[document] + weights[document, position].log()
        attention[document, position] = scores.softmax(-1)
    return Rows(attention, ((weights == 1) | ~mask).all(-1))


def erase(erased: Bool[Tensor, "batch edit unit"]) -> Scale:
    """Take the marked units away and renormalise what is left."""
    return Scale((~erased).double())


def keep(kept: Bool[Tensor, "batch edit unit"]) -> Scale:
    """Keep only the marked units and renormalise."""
    return Scale(kept.double())


def identity(reading: Reading) -> Scale:
    """Change nothing."""
    return Scale(torch.ones_like(reading.attention)[:, None])


def uniform(reading: Reading) -> Replace:
    """The same weight on every unit."""
    mask = reading.mask[:, None].to(reading.attention)
    return Replace(mask / mask.sum(-1, keepdim=True))
