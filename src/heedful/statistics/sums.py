"""What adds up: the sums behind an estimate, so that shards together tell what the whole would.

Resampling weights belong to an instance (`resampling`), so each replicate of the whole is the sum
of what it is in the shards. Inside `adding_up` every estimate that sums suffice for carries them:

    with adding_up():
        parts = [mean(shard.values, shard.names) for shard in shards]
    whole = added(parts[0], [one.additive.sums for one in parts])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float64

if TYPE_CHECKING:
    from heedful.statistics.estimates import Estimate

FEW = 12
"""Values that take at most so many different numbers are kept as numbers with counts."""
_is_adding: ContextVar[bool] = ContextVar("is_adding", default=False)


class Sums(NamedTuple):
    """Sums over instances, which add up over shards."""

    totals: Float64[np.ndarray, "row column"]
    """One row for the data itself, then one for every resampling of it."""
    n: int
    undefined: int = 0
    few: Float64[np.ndarray, "number 2"] = np.zeros((0, 2))
    """The different numbers and how often each occurs; more than `FEW` rows stand for many."""

    def plus(self, other: Sums) -> Sums:
        """Those of both together; a column that one of them lacks is 0 there."""
        width = max(self.totals.shape[1], other.totals.shape[1])
        totals = _wider(self.totals, width) + _wider(other.totals, width)
        few = np.concatenate([self.few, other.few])
        if max(len(self.few), len(other.few)) <= FEW:
            few = few_of(few[:, 0], few[:, 1])
        counts = self.n + other.n, self.undefined + other.undefined
        return Sums(totals, *counts, few[: FEW + 1])


class Additive(NamedTuple):
    """The sums behind an estimate, and the way from sums to an estimate."""

    sums: Sums
    estimate: Callable[[Sums], Estimate]


@dataclass(frozen=True, eq=False)
class OfSums:
    """A statistic of weighted sums: `finish(weights @ values)`."""

    values: Float64[np.ndarray, "instance column"]
    finish: Callable[
        [Float64[np.ndarray, "replicate column"]], Float64[np.ndarray, "replicate ..."]
    ]

    def __call__(
        self, weights: Float64[np.ndarray, "replicate instance"]
    ) -> Float64[np.ndarray, "replicate ..."]:
        """The statistic under weights, as any other."""
        return self.finish(weights @ self.values)


@contextmanager
def adding_up() -> Iterator[None]:
    """Lets estimates carry their sums inside the block."""
    token = _is_adding.set(True)
    try:
        yield
    finally:
        _is_adding.reset(token)


def is_adding() -> bool:
    """Whether estimates are to carry their sums."""
    return _is_adding.get()


def added(one: Estimate, parts: Iterable[Sums]) -> Estimate:
    """The estimate of all parts together, made as `one` was; they are added in the order given."""
    assert one.additive is not None
    return one.additive.estimate(reduce(Sums.plus, parts))


def few_of(
    values: Float64[np.ndarray, " instance"], counts: Float64[np.ndarray, " instance"] | None = None
) -> Float64[np.ndarray, "number 2"]:
    """Different numbers, up to rounding, with how often each occurs; no more than `FEW` and one."""
    if not len(values):
        return np.zeros((0, 2))
    grid = 1e-12 * float(np.abs(values).max()) or 1.0
    _, place = np.unique(np.round(values / grid), return_inverse=True)
    often = np.bincount(place, counts)
    if len(often) > FEW:
        return np.zeros((FEW + 1, 2))
    # The mean of equal numbers need not be that number.
    groups = [values[place == group] for group in range(len(often))]
    means = [one[0] if one.min() == one.max() else one.mean() for one in groups]
    return np.stack([np.array(means), often], 1)


def _wider(
    totals: Float64[np.ndarray, "row column"], width: int
) -> Float64[np.ndarray, "row wider"]:
    return np.pad(totals, ((0, 0), (0, width - totals.shape[1])))
