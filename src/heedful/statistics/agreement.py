"""How far two importances agree, one with known evidence, and one series with another (`ccc`).

Of importances everything is per instance, over unpadded units, in float64. A row in which an
unpadded importance is nan, or in which the measure has no meaning, is nan.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int, Int64, Shaped
from numpy.typing import ArrayLike
from torch import Tensor


def kendall_tau_b(
    first: Float[Tensor, "batch unit"],
    second: Float[Tensor, "batch unit"],
    mask: Bool[Tensor, "batch unit"],
) -> Float64[Tensor, " batch"]:
    """Kendall's τ-b of two importances: (C − D) / √((n₀ − n₁)(n₀ − n₂)), nan if one is constant.

    C and D are concordant and discordant pairs, n₀ all pairs, n₁ and n₂ pairs tied in the first
    and in the second. In O(n log n) time and O(n) memory, after Knight (1966): of the units ordered
    by the first, ties by the second, the discordant pairs are the inversions of the second.
    """
    count = mask.sum(-1)
    last = mask.shape[-1]
    # Padding is nan, which sorts last; a real nan makes the whole row nan in the end.
    by_first = first.masked_fill(~mask, torch.nan).sort(dim=-1, stable=True)
    rank = _runs(by_first.values).cumsum(-1).masked_fill(~mask.gather(1, by_first.indices), last)
    other = second.masked_fill(~mask, torch.nan).gather(1, by_first.indices)
    by_second = other.sort(dim=-1, stable=True)  # ties by the first, from the order it came in
    rank = rank.gather(1, by_second.indices)
    pairs = count * (count - 1) // 2
    tied_first = _tied_pairs(_runs(by_first.values), count)
    # The places in the second's order, taken in the first's order, ties by the second. Without ties
    # they are the inverse of what the sort gave, and a permutation has its inverse's inversions.
    is_tied = bool((tied_first > 0).any())
    places = rank.argsort(dim=-1, stable=True) if is_tied else by_second.indices
    ends = _runs(by_second.values)
    tied_second, tied_both = _tied_pairs(ends, count), _tied_pairs(ends | _runs(rank), count)
    # C + D + tied in either = all pairs; pairs tied in both are among the tied of both kinds.
    difference = pairs - tied_first - tied_second + tied_both - 2 * _inversions(places)
    scale = (pairs - tied_first).double().sqrt() * (pairs - tied_second).double().sqrt()
    return _undefined(difference / scale, mask, first, second).clamp(-1, 1)


def top_units(
    importance: Float[Tensor, "batch unit"],
    mask: Bool[Tensor, "batch unit"],
    k: int | Int[Tensor, " batch"],
) -> Bool[Tensor, "batch unit"]:
    """Marks the k most important units of each row (all, where there are fewer).

    Of tied units the earlier comes first.
    """
    order = _descending(importance, mask)
    limit = torch.as_tensor(k, device=mask.device).expand(len(mask))[:, None]
    chosen = torch.arange(mask.shape[-1], device=mask.device) < limit
    return torch.zeros_like(mask).scatter_(1, order, chosen) & mask


def average_precision(
    importance: Float[Tensor, "batch unit"],
    evidence: Bool[Tensor, "batch unit"],
    mask: Bool[Tensor, "batch unit"],
) -> Float64[Tensor, " batch"]:
    """Area under the precision-recall curve (average precision); nan where there is no evidence.

    Σ (Rₜ − Rₜ₋₁) Pₜ over the distinct values t of importance: tied units are retrieved together.
    """
    order = _descending(importance, mask)
    ordered = importance.gather(1, order)
    found = (evidence & mask).gather(1, order)
    position = torch.arange(mask.shape[-1], device=mask.device).expand_as(mask)
    ends = position == mask.sum(-1, keepdim=True) - 1  # padding must not join the last real tie
    ends[:, :-1] |= ordered[:, 1:] != ordered[:, :-1]
    # The end of each unit's tie is the nearest end at or after it.
    end = position.masked_fill(~ends, mask.shape[-1] - 1).flip(-1).cummin(-1).values.flip(-1)
    precision = found.cumsum(-1).gather(1, end) / (end + 1).double()
    average = (precision * found).sum(-1) / found.sum(-1)
    return _undefined(average, mask, importance)


def token_f1(
    importance: Float[Tensor, "batch unit"],
    evidence: Bool[Tensor, "batch unit"],
    mask: Bool[Tensor, "batch unit"],
) -> Float64[Tensor, " batch"]:
    """F1 of the top units against the evidence, taking as many as there are evidence units.

    With equal numbers precision, recall and F1 are one and the same; nan without evidence.
    """
    evidence = evidence & mask
    size = evidence.sum(-1)
    hits = (top_units(importance, mask, size) & evidence).sum(-1)
    return _undefined(hits / size.double(), mask, importance)


def mass_on(
    attention: Float[Tensor, "batch unit"],
    evidence: Bool[Tensor, "batch unit"],
    mask: Bool[Tensor, "batch unit"],
) -> Float64[Tensor, " batch"]:
    """Attention that falls on evidence units; nan where there is no evidence."""
    evidence = evidence & mask
    mass = attention.double().masked_fill(~evidence, 0).sum(-1)
    return mass.masked_fill(~evidence.any(-1), torch.nan)


def _undefined(
    measure: Float64[Tensor, " batch"],
    mask: Bool[Tensor, "batch unit"],
    *importances: Float[Tensor, "batch unit"],
) -> Float64[Tensor, " batch"]:
    """The measure with nan in every row that has an unpadded nan."""
    for importance in importances:
        measure = measure.masked_fill((importance.isnan() & mask).any(-1), torch.nan)
    return measure


def _descending(
    importance: Float[Tensor, "batch unit"], mask: Bool[Tensor, "batch unit"]
) -> Int64[Tensor, "batch unit"]:
    """Units from the most important to the least, ties by position, padding last."""
    order = importance.argsort(dim=-1, descending=True, stable=True)
    return order.gather(1, (~mask).gather(1, order).int().argsort(dim=-1, stable=True))


def _runs(ordered: Shaped[Tensor, "batch unit"]) -> Bool[Tensor, "batch unit"]:
    """True where an entry of a sorted row differs from the one before it."""
    starts = torch.zeros_like(ordered, dtype=torch.bool)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return starts


def _tied_pairs(
    starts: Bool[Tensor, "batch unit"], count: Int64[Tensor, " batch"]
) -> Int64[Tensor, " batch"]:
    """Pairs within a run of equal entries, among the first `count` of each row."""
    is_real = torch.arange(starts.shape[-1], device=starts.device) < count[:, None]
    sizes = torch.zeros_like(starts, dtype=torch.int64)
    sizes.scatter_add_(1, starts.cumsum(-1), is_real.long())
    return (sizes * (sizes - 1)).sum(-1) // 2


def _inversions(places: Int64[Tensor, "batch unit"]) -> Int64[Tensor, " batch"]:
    """Pairs i < j with places[i] > places[j], in rows that are permutations of 0, 1, …, n - 1.

    Bit by bit from the highest: in a block of places that agree so far, the pairs of a one before a
    zero are counted, then the zeros are moved before the ones, in order, which makes two blocks of
    equal size. O(n) for each of log₂ n bits, without another sort.
    """
    batch, units = places.shape
    size = 1 << max(units - 1, 0).bit_length()
    # Filling up at the end with the places that follow adds no inversion.
    position = torch.arange(size, device=places.device)
    blocks = torch.cat([places, position[units:].expand(batch, -1)], -1)
    found = torch.zeros(batch, dtype=torch.int64, device=places.device)
    half = size // 2
    while half:
        blocks = blocks.view(batch, -1, 2 * half)
        is_one = (blocks & half) != 0
        ones = is_one.cumsum(-1)
        found += (ones * ~is_one).sum((1, 2))
        target = torch.where(is_one, ones + (half - 1), position[: 2 * half] - ones)
        blocks = torch.empty_like(blocks).scatter_(-1, target, blocks)
        half //= 2
    return found


def ccc(x: ArrayLike, y: ArrayLike) -> float:
    """Lin's concordance correlation coefficient, with population moments.

        2 cov(x, y) / (σ²_x + σ²_y + (μ_x - μ_y)²)

    1 only where both are equal everywhere; 0 where one of two different series is constant; nan
    where both are the same constant, or there is nothing.

    >>> ccc([1, 2, 3], [1, 2, 3]), ccc([1, 2, 3], [3, 2, 1])
    (1.0, -1.0)
    """
    first, second = (np.asarray(series, dtype=np.float64) for series in (x, y))
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(
            f"two series of one length are compared, got {first.shape}, {second.shape}"
        )
    if not len(first):
        return float("nan")
    a, b = first - first.mean(), second - second.mean()
    apart = float((a * a).mean() + (b * b).mean() + (first.mean() - second.mean()) ** 2)
    return 2 * float((a * b).mean()) / apart if apart > 0 else float("nan")
