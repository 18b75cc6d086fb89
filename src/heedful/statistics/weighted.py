"""Statistics as functions of resampling weights: what intervals and draws are made from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Float64
from numpy.typing import ArrayLike

Weights = Float64[np.ndarray, "replicate instance"]
Values = Float[np.ndarray, "replicate"]
Weighted = Callable[[Weights], Values]
"""A statistic row by row over weights; row of ones: the statistic of the data itself."""


def quantile_of(values: ArrayLike, q: float) -> Weighted:
    """The smallest value with a share of at least q of the weight at or below it.

    Where the share is exactly q it lies halfway to the next one drawn, so that the median is the
    usual one. Undefined where nothing has weight.
    """
    given = np.asarray(values, dtype=np.float64)
    order = np.argsort(given, kind="stable")
    ordered, last = given[order], len(given) - 1

    def statistic(weights: Weights) -> Values:
        if last < 0:
            return np.full(len(weights), np.nan)
        reached = np.cumsum(weights[:, order], axis=1)
        goal = q * reached[:, -1:]
        at_least = np.minimum((reached < goal).sum(1), last)
        above = np.minimum((reached <= goal).sum(1), last)
        return np.where(reached[:, -1] > 0, (ordered[at_least] + ordered[above]) / 2, np.nan)

    return statistic


def ratio_of(above: ArrayLike, below: ArrayLike) -> Weighted:
    """The sum of one column over that of another; undefined where the latter is 0."""
    top, bottom = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)

    def statistic(weights: Weights) -> Values:
        under = weights @ bottom
        empty = np.full(len(under), np.nan)
        return np.asarray(np.divide(weights @ top, under, out=empty, where=under != 0))

    return statistic


def weight_below(values: ArrayLike) -> Callable[[Weights], Weights]:
    """The weight that lies below each value, what is tied with it (itself too) counting half.

    With equal weights that is the value's rank, ties at their mean, less a half.
    """
    given = np.asarray(values, dtype=np.float64)
    order = np.argsort(given, kind="stable")
    ordered = given[order]
    starts = np.searchsorted(ordered, given, side="left")
    stops = np.searchsorted(ordered, given, side="right")

    def below(weights: Weights) -> Weights:
        reached = np.zeros((len(weights), len(given) + 1))
        np.cumsum(weights[:, order], axis=1, out=reached[:, 1:])
        return np.asarray((reached[:, starts] + reached[:, stops]) / 2)

    return below


def rank_correlation(x: ArrayLike, y: ArrayLike) -> Weighted:
    """Spearman's correlation, ranked anew in every resample; undefined without spread."""
    ranked = [weight_below(values) for values in (x, y)]

    def statistic(weights: Weights) -> Values:
        with np.errstate(divide="ignore", invalid="ignore"):
            share = weights / weights.sum(1, keepdims=True)
            one, two = (below(share) - 0.5 for below in ranked)  # the mean rank is the middle
            together = (share * one * two).sum(1)
            spread = np.sqrt((share * one**2).sum(1) * (share * two**2).sum(1))
            return np.where(spread > 1e-12, together / spread, np.nan)

    return statistic
