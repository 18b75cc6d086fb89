"""Orders in which units are taken away, and when the decision gives in."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.models.edits import SMALLEST_MASS
from heedful.models.reading import Reading

GREEDY_UNITS = 256
"""The greedy order costs n² per document; longer documents go without it."""


class Flip(NamedTuple):
    """When the decision changes as the units of each ranking are removed one by one."""

    removed: Int[Tensor, "batch ranking"]
    """Units removed when the decision first differs; -1 where it never does."""
    mass: Float[Tensor, "batch ranking"]
    """Original attention of the removed units; nan where the decision never changes."""
    underflow: Bool[Tensor, "batch ranking"]
    """Whether what was left underflowed before nothing was left, so that scores had to be used."""


def first_flip(
    reading: Reading,
    order: Int[Tensor, "batch ranking unit"],
    logits: Float[Tensor, "batch ranking step class"],
) -> Flip:
    """The first step k ≥ 1 of each `curve` whose decision differs from that of step 0.

    The mass is a prefix sum of the original weights, never one minus what is left: the latter is
    only rounding when little was removed.
    """
    differs = logits.argmax(-1) != reading.decision[:, None, None]
    removed = torch.where(differs.any(-1), differs.int().argmax(-1), -1)
    attention = reading.attention[:, None].expand(order.shape).gather(2, order)
    last = (removed - 1).clamp_min(0)[..., None]
    mass = attention.cumsum(-1).gather(2, last)[..., 0].clamp_max(1.0)
    left = attention.flip(-1).cumsum(-1).flip(-1)
    real = torch.arange(order.shape[-1], device=order.device) < reading.units[:, None, None]
    underflow = ((left < SMALLEST_MASS) & real).any(-1)
    return Flip(removed, mass.masked_fill(removed < 0, torch.nan), underflow)


def area(
    probability: Float[Tensor, "batch ranking step"], units: Int[Tensor, " batch"]
) -> Float[Tensor, "batch ranking"]:
    """Mean probability of the decision while a ranking is removed from 0 to all n units.

    Trapezoids over the fraction removed; lower means that the ranking undoes the decision sooner.
    """
    step = torch.arange(probability.shape[-1], device=units.device)
    inside = (step <= units[:, None])[:, None]
    ends = probability[..., 0] + probability.gather(
        2, units[:, None, None].expand(-1, probability.shape[1], 1)
    ).squeeze(-1)
    return ((probability * inside).sum(-1) - ends / 2) / units[:, None]


def greedy_order(reading: Reading, limit: int = GREEDY_UNITS) -> Int[Tensor, "batch unit"]:
    """The order that removes, at each step, the unit whose loss hurts the decision most.

    Each step asks exactly what the decided class's probability would be without each unit that is
    left (docs/studies/erasure.md, "Rankings of our own") and takes the worst, first position on
    ties. Not the smallest flipping set, which is exponential to find, but close to it: a bound that
    the other rankings are held against. O(n² classes) per document; needs a linear head. Padding
    comes last. Documents of more than `limit` units keep their reading order, and callers leave
    them out.
    """
    if reading.unit_logits is None or reading.offset is None:
        raise ValueError("a greedy order needs unit logits, which only a linear head has.")
    said, scores = reading.unit_logits, reading.scores.masked_fill(~reading.mask, -torch.inf)
    decided = reading.decision[:, None, None].expand(-1, scores.shape[1], 1)
    position = torch.arange(scores.shape[1], device=scores.device)
    left = reading.mask & (reading.units <= limit)[:, None]
    place = torch.where(reading.mask, position, position + len(position))
    for step in range(int(left.sum(-1).max())):
        logits = _without_each_left(scores, said) + reading.offset[:, None]
        probability = logits.softmax(-1).gather(2, decided)[..., 0]
        # Probabilities end at 1: what cannot be computed goes after them, what is gone never.
        worst = probability.nan_to_num(nan=2.0).masked_fill(~left, 3.0).argmin(-1, keepdim=True)
        taken = (position == worst) & left
        place = torch.where(taken, step, place)
        left, scores = left & ~taken, scores.masked_fill(taken, -torch.inf)
    return place.argsort(-1)


def _without_each_left(
    scores: Float[Tensor, "batch unit"], said: Float[Tensor, "batch unit class"]
) -> Float[Tensor, "batch unit class"]:
    """What the units left would say without each one of them; units already gone score -inf.

    A unit that is not the heaviest holds at most half of the mass, so (total - own) / (1 - α) does
    not cancel; only the heaviest needs the softmax of the rest, which no underflow can hurt.
    """
    attention = scores.softmax(-1).nan_to_num(0.0)[..., None]
    weighted = attention * said
    without = (weighted.sum(1, keepdim=True) - weighted) / (1 - attention).clamp_min(0.25)
    heaviest = attention.argmax(1)
    rest = scores.scatter(1, heaviest, -torch.inf).softmax(-1).nan_to_num(0.0)
    index = heaviest[..., None].expand(-1, 1, said.shape[-1])
    return without.scatter(1, index, torch.bmm(rest[:, None], said))
