"""Agreement of attention with what units tell, over ragged rows.

See docs/studies/dynamics.md, "Agreement".

Rows lie one after the other in a flat array, as in `Trajectory`; an array [checkpoint flat] is
measured checkpoint by checkpoint at once. `first` is the vector whose largest unit is taken,
`second` the one in which that unit must be among the top 5 %.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int

from heedful.statistics.agreement import kendall_tau_b

Vector = Float[np.ndarray, "*checkpoint flat"]

UNITS_AT_ONCE = 2**21
"""Padded units whose rank correlation is computed together."""
SORTED_AT_ONCE = 2**17
"""Padded units that are sorted together: few, since then rows of one group are alike in length."""


def admitted(lengths: Int[np.ndarray, " row"]) -> Int[np.ndarray, " row"]:
    """How many ranks are among the top 5 % of a row: ⌈L / 20⌉, in whole numbers."""
    return -(-lengths // 20)


def first_largest(vector: Vector, lengths: Int[np.ndarray, " row"]) -> Int[np.ndarray, "*c row"]:
    """The flat place of each row's largest entry, the first of equal ones."""
    starts = starts_of(lengths)
    largest = np.maximum.reduceat(vector, starts, axis=-1)
    is_largest = vector == np.repeat(largest, lengths, axis=-1)
    place = np.where(is_largest, np.arange(vector.shape[-1]), vector.shape[-1])
    return np.asarray(np.minimum.reduceat(place, starts, axis=-1))


def agrees(
    first: Vector, second: Vector, lengths: Int[np.ndarray, " row"]
) -> Bool[np.ndarray, "*checkpoint row"]:
    """Whether fewer than 5 % of the units lie above the first's largest unit in the second.

    |{j : vⱼ > v[i*]}| < 0.05 L. Ties in the second count in favour, so that one that is the same
    everywhere always agrees; the first of tied units is the first's largest.
    """
    largest = first_largest(first, lengths)  # once, where the first has no checkpoints
    second, _ = np.broadcast_arrays(second, first)
    largest = np.broadcast_to(largest, (*second.shape[:-1], len(lengths)))
    chosen = np.take_along_axis(second, largest, -1)
    above = second > np.repeat(chosen, lengths, axis=-1)
    counted = np.add.reduceat(above, starts_of(lengths), axis=-1, dtype=np.int64)
    return np.asarray(counted < admitted(lengths))


def chance(second: Vector, lengths: Int[np.ndarray, " row"]) -> Float64[np.ndarray, "*c row"]:
    """The probability that a unit drawn at random would agree: what shuffling estimates.

    1/L #{i : |{j : vⱼ > vᵢ}| < 0.05 L}, which is ⌈0.05 L⌉ / L without ties. A unit qualifies when
    it reaches the ⌈0.05 L⌉-th largest value of its row.
    """
    flat = second.reshape(-1, second.shape[-1])
    least = np.empty((len(flat), len(lengths)), dtype=second.dtype)
    for group in _groups(lengths, SORTED_AT_ONCE):
        # Padding sorts first, so that ranks count from the right.
        rank = group.mask.shape[1] - admitted(lengths[group.rows])
        for number, values in enumerate(flat):
            ordered = np.sort(np.where(group.mask, values[group.place], -np.inf), axis=1)
            least[number, group.rows] = ordered[np.arange(len(rank)), rank]
    reached = flat >= np.repeat(least, lengths, axis=-1)
    found = np.add.reduceat(reached, starts_of(lengths), axis=-1, dtype=np.int64) / lengths
    return np.asarray(found.reshape(*second.shape[:-1], len(lengths)))


def agrees_split(
    first: Vector, second: Vector, lengths: Int[np.ndarray, " row"]
) -> Float64[np.ndarray, "*checkpoint row"]:
    """Agreement when every tie is broken at random: its probability.

    The largest unit is drawn among equal ones; with g units above it in the second and e equal to
    it (itself included), its rank is uniform from g to g + e - 1. By chance this is ⌈0.05 L⌉ / L.
    """
    if first.ndim > 1:
        several = zip(*np.broadcast_arrays(first, second), strict=True)
        return np.stack([agrees_split(one, other, lengths) for one, other in several])
    starts, admits = starts_of(lengths), admitted(lengths)
    is_largest = first == np.repeat(np.maximum.reduceat(first, starts), lengths)
    ties = np.add.reduceat(is_largest, starts, dtype=np.int64)
    tied = np.flatnonzero(is_largest)
    total = np.zeros((*second.shape[:-1], len(lengths)))
    for turn in range(int(ties.max())):  # the first of the equal ones of each row, the second, ...
        rows = np.flatnonzero(ties > turn)
        here = lengths[rows]
        units = np.arange(int(here.sum())) + np.repeat(starts[rows] - starts_of(here), here)
        place = tied[(np.cumsum(ties) - ties)[rows] + turn]
        values, own = second[..., units], np.repeat(second[..., place], here, axis=-1)
        above, equal = (
            np.add.reduceat(is_so, starts_of(here), axis=-1, dtype=np.int64)
            for is_so in (values > own, values == own)
        )
        total[..., rows] += np.clip((admits[rows] - above) / equal, 0, 1)
    return np.asarray(total / ties)


def rank_correlation(
    first: Vector,
    second: Vector,
    lengths: Int[np.ndarray, " row"],
    device: torch.device | str = "cpu",
) -> Float64[np.ndarray, "*checkpoint row"]:
    """Kendall's τ-b of each row, nan where one of the two is constant."""
    first, second = np.broadcast_arrays(first, second)
    flat = [np.reshape(one, (-1, first.shape[-1])) for one in (first, second)]
    found = np.empty((len(flat[0]), len(lengths)))
    for group in _groups(lengths, UNITS_AT_ONCE):
        inside = torch.from_numpy(group.mask).to(device)
        for number, (one, two) in enumerate(zip(*flat, strict=True)):
            x, y = (torch.from_numpy(values[group.place]).to(device) for values in (one, two))
            found[number, group.rows] = kendall_tau_b(x, y, inside).cpu().numpy()
    return found.reshape(*first.shape[:-1], len(lengths))


def concentration(
    attention: Vector, lengths: Int[np.ndarray, " row"]
) -> Float64[np.ndarray, "*checkpoint row"]:
    """Entropy of each row over its maximum log L; 0 for a row of one unit."""
    weights = attention.astype(np.float64)
    terms = -weights * np.log(np.where(weights > 0, weights, 1.0))
    total = np.add.reduceat(terms, starts_of(lengths), axis=-1)
    return np.asarray(total / np.log(np.maximum(lengths, 2)))


class Trimmed(NamedTuple):
    """Rows without some of their units."""

    is_kept: Bool[np.ndarray, " flat"]
    lengths: Int[np.ndarray, " left"]
    rows: Int[np.ndarray, " left"]
    """Which rows are left; those without any other unit are gone."""


def without(is_left_out: Bool[np.ndarray, " flat"], lengths: Int[np.ndarray, " row"]) -> Trimmed:
    """What is left of rows when units are left out: index vectors by `is_kept`."""
    left = np.add.reduceat(~is_left_out, starts_of(lengths), dtype=np.int64)
    return Trimmed(~is_left_out, left[left > 0], np.flatnonzero(left > 0))


class Contextualised(NamedTuple):
    """An agreement as a performance: how good models are when they agree as much."""

    performance: float
    checkpoint: int
    """The first one that agrees more; -1 where none does."""

    @property
    def is_never(self) -> bool:
        """Whether no checkpoint passes, so that the best performance stands in (an asterisk)."""
        return self.checkpoint < 0


def contextualised(
    agreement: float,
    curve: Float[np.ndarray, " checkpoint"],
    performance: Float[np.ndarray, " checkpoint"],
    best: float,
) -> Contextualised:
    """ξ: the comparison runs' performance when they first agree more with the reference.

    `curve` is their mean agreement with the reference's attention, `performance` their mean
    performance, `best` that of the reference at its best checkpoint (ξ*).
    """
    passed = np.flatnonzero(curve > agreement)
    if not len(passed):
        return Contextualised(best, -1)
    return Contextualised(float(performance[passed[0]]), int(passed[0]))


def starts_of(lengths: Int[np.ndarray, " row"]) -> Int[np.ndarray, " row"]:
    """Where each row begins."""
    return np.asarray(np.cumsum(lengths) - lengths)


class _Group(NamedTuple):
    """Some rows of similar length, laid side by side."""

    rows: Int[np.ndarray, " chosen"]
    place: Int[np.ndarray, "chosen unit"]
    """Where each unit lies in the flat array; at padding any place."""
    mask: Bool[np.ndarray, "chosen unit"]


def _groups(lengths: Int[np.ndarray, " row"], most: int) -> Iterator[_Group]:
    """All rows once, by length, so many padded units at a time."""
    order, starts = np.argsort(lengths, kind="stable"), starts_of(lengths)
    begin = 0
    while begin < len(order):
        longest = lengths[order[begin:]]
        fits = longest * np.arange(1, len(longest) + 1) <= most
        rows = order[begin : begin + max(int(fits.sum()), 1)]
        position = np.arange(int(lengths[rows].max()))
        mask = position < lengths[rows][:, None]
        place = np.minimum(starts[rows][:, None] + position, int(lengths.sum()) - 1)
        yield _Group(rows, place, mask)
        begin += len(rows)
