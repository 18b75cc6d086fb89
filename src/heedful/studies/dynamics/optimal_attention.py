"""Optimal attention: the weights that would serve the loss best.

See docs/studies/dynamics.md, "Optimal attention".

With a linear head the loss of one instance is convex in its attention,

    f(α) = log Σₒ exp(αᵀΓ + γ)ₒ - (αᵀΓ + γ)_y   over the simplex,

Γ [unit class] what each unit says, γ [class] what is said besides. It is minimised by pairwise
Frank-Wolfe steps (Lacoste-Julien & Jaggi 2015): weight goes from the attended unit with the largest
gradient to the unit with the smallest, as far as a line search says. The gap gᵀα - minₗ gₗ bounds
how far f lies above its minimum, so every answer comes with its proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

TOLERANCE = 1e-4
"""Largest gap of a certified optimum."""
_SEARCH = 12
"""Safeguarded Newton steps of a line search."""


class Optimum(NamedTuple):
    """The best attention of each row, and the proof."""

    attention: Float64[Tensor, "row unit"]
    loss: Float64[Tensor, " row"]
    gap: Float64[Tensor, " row"]
    """At least the distance of the loss from its minimum."""
    stayed: Bool[Tensor, " row"]
    """Whether the first gap was the proof: the search never left its start."""
    steps: int


def optimal_attention(
    unit_logits: Float[Tensor, "source unit class"],
    mask: Bool[Tensor, "source unit"],
    offset: Float[Tensor, "row class"],
    target: Int[Tensor, " row"],
    source: Int[Tensor, " row"] | None = None,
    tolerance: float = TOLERANCE,
    most: int = 5_000,
    is_even: bool = False,
) -> Optimum:
    """The attention with the smallest loss for the target class, row by row.

    The search begins at the best single unit, or at even attention. `source` says which unit logits
    a row has (the words of one sentence share them); by default row r has those of place r. Rows
    stop as soon as their gap is small enough; after `most` steps the rest are given back as they
    are, with the gap they reached.
    """
    said, offset = unit_logits.double(), offset.double()
    rows = len(target)
    source = torch.arange(rows, device=target.device) if source is None else source
    inside = mask[source]
    every = torch.arange(rows, device=target.device)
    attention = inside.double() / inside.sum(-1, keepdim=True)
    if not is_even:
        # The best single unit: where the answer is one unit, the first gap already proves it.
        single = _losses_alone(said, offset, target, source).masked_fill(~inside, torch.inf)
        attention = torch.zeros_like(attention)
        attention[every, single.argmin(-1)] = 1.0
    stayed = torch.zeros_like(target, dtype=torch.bool)
    loss, gap = torch.empty(rows).to(attention), torch.empty(rows).to(attention)
    left, step = every, 0
    while True:
        gradient, loss[left] = _gradient(said, offset, target, source, attention, left)
        here = attention[left]
        towards = gradient.masked_fill(~inside[left], torch.inf).argmin(-1)
        away = gradient.masked_fill(here <= 0, -torch.inf).argmax(-1)
        place = torch.arange(len(left), device=left.device)
        gap[left] = (gradient * here).sum(-1) - gradient[place, towards]
        is_open = gap[left] > tolerance
        if step == 0:
            stayed = ~is_open
        if step == most or not bool(is_open.any()):
            return Optimum(attention, loss, gap, stayed, step)
        left, towards, away = left[is_open], towards[is_open], away[is_open]
        moved = _line_search(said, offset, target, source, attention, left, towards, away)
        attention[left, away] -= moved
        attention[left, towards] += moved
        step += 1


def descended(
    unit_logits: Float[Tensor, "source unit class"],
    mask: Bool[Tensor, "source unit"],
    offset: Float[Tensor, "row class"],
    target: Int[Tensor, " row"],
    source: Int[Tensor, " row"],
    after: Sequence[int],
    rate: float = 1.0,
) -> list[Float64[Tensor, "row unit"]]:
    """Attention after so many plain gradient steps on its scores, from even attention.

    What a search finds that is no search for the optimum: α = softmax(a), a ← a - rate ∂f/∂a. Rows
    of one source stand together.
    """
    said = unit_logits.double()
    first = torch.searchsorted(source, torch.arange(len(said), device=source.device))
    place = torch.arange(len(source), device=source.device) - first[source]
    shape = len(said), int(place.max()) + 1
    base = said.new_zeros(*shape, said.shape[-1])
    base[source, place] = offset.double()
    right = torch.zeros(shape, dtype=torch.long, device=source.device)
    right[source, place] = target
    scores = said.new_zeros(*shape, said.shape[1]).masked_fill(~mask[:, None], -torch.inf)
    found = []
    for step in range(1, max(after) + 1):
        attention = scores.softmax(-1)
        residual = torch.baddbmm(base, attention, said).softmax(-1)
        residual.scatter_add_(-1, right[..., None], residual.new_full((*shape, 1), -1.0))
        gradient = residual @ said.transpose(1, 2)
        mean = (attention * gradient).sum(-1, keepdim=True)
        scores = scores - rate * attention * (gradient - mean)
        if step in after:
            found.append(scores.softmax(-1)[source, place])
    return found


def _gradient(
    said: Tensor, offset: Tensor, target: Tensor, source: Tensor, attention: Tensor, left: Tensor
) -> tuple[Float64[Tensor, "left unit"], Float64[Tensor, " left"]]:
    """Γ(p - 1_y) and the loss of the rows that are left."""
    mine = said[source[left]]
    logits = torch.einsum("ru,ruc->rc", attention[left], mine) + offset[left]
    logp = logits.log_softmax(-1)
    right = target[left][:, None]
    residual = logp.exp()
    residual.scatter_add_(1, right, residual.new_full(right.shape, -1.0))
    return torch.einsum("ruc,rc->ru", mine, residual), -logp.gather(1, right)[:, 0]


def _losses_alone(
    said: Tensor, offset: Tensor, target: Tensor, source: Tensor
) -> Float64[Tensor, "row unit"]:
    """The loss with all attention on one unit, unit by unit to spare memory."""
    found = []
    for unit in range(said.shape[1]):
        logp = (said[source, unit] + offset).log_softmax(-1)
        found.append(-logp.gather(1, target[:, None])[:, 0])
    return torch.stack(found, -1)


def _line_search(
    said: Tensor,
    offset: Tensor,
    target: Tensor,
    source: Tensor,
    attention: Tensor,
    left: Tensor,
    towards: Tensor,
    away: Tensor,
) -> Float64[Tensor, " left"]:
    """How much weight to move from one unit to the other: Newton on the slope, kept in brackets."""
    mine, right = said[source[left]], target[left][:, None]
    place = torch.arange(len(left), device=left.device)
    start = torch.einsum("ru,ruc->rc", attention[left], mine) + offset[left]
    direction = mine[place, towards] - mine[place, away]
    gained = direction.gather(1, right)[:, 0]
    low = torch.zeros(len(left)).to(start)
    high = attention[left, away].clone()
    most, size = high.clone(), high.clone()
    for _ in range(_SEARCH):
        p = (start + size[:, None] * direction).softmax(-1)
        mean = (p * direction).sum(-1)
        slope = mean - gained
        curvature = (p * direction**2).sum(-1) - mean**2
        low = torch.where(slope < 0, size, low)
        high = torch.where(slope < 0, high, size)
        tried = size - slope / curvature.clamp_min(1e-300)
        is_inside = (tried > low) & (tried < high)
        size = torch.where(is_inside, tried, (low + high) / 2)
        # Where the loss still falls at the far end all of the weight goes.
        size = torch.where(low >= most, most, size)
    return size
