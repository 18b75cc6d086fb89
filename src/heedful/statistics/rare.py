"""Means of values that are nearly all the same: what differs are rare events."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float64
from scipy.special import chdtri

from heedful.statistics.estimates import Estimate
from heedful.statistics.level import tails
from heedful.statistics.shares import apart

MOST_EVENTS = 10
"""With more of them a bootstrap sees enough."""


def rare_mean(few: Float64[np.ndarray, "number 2"], least: float, most: float) -> Estimate | None:
    """The mean where at most ten values (and fewer than half) differ from the usual one, else None.

    `few` are the different numbers, in order and up to rounding, with how often each occurs.

    A few events show neither how rare nor how large they can be, and a resampling of them shows
    less. So what they add is a sum of Poisson counts with weights, whose gamma interval reckons
    with one more event of the largest weight (Fay & Feuer 1997); up and down are put together by
    `apart`. The largest weight is the way to `least` or `most`; where these are infinite, twice
    the largest that was seen.
    """
    values, counts = few.T
    n = int(counts.sum())
    middle = int(np.searchsorted(np.cumsum(counts), n // 2, side="right"))
    usual, events = float(values[middle]), n - int(counts[middle])
    if not events or events > MOST_EVENTS or 2 * events >= n:
        return None
    is_event = np.arange(len(values)) != middle
    away = np.repeat(values[is_event] - usual, counts[is_event].astype(int))
    room = [most - usual, usual - least]
    up, down = (
        _expected(part[part > 0], far if math.isfinite(far) else 2 * float(np.abs(away).max()))
        for part, far in zip((away, -away), room, strict=True)
    )
    sum_of_all = apart(up, down)
    value, low, high = (
        usual + part / n for part in (sum_of_all.value, sum_of_all.low, sum_of_all.high)
    )
    return Estimate(value, low, high, n, "gamma")


def _expected(events: Float64[np.ndarray, " event"], largest: float) -> Estimate:
    """The expected sum of such events: χ² quantiles with the sum's own mean and variance."""
    below, above = tails()
    total, squares = float(events.sum()), float(np.square(events).sum())
    low = squares / (2 * total) * chdtri(2 * total**2 / squares, above) if total else 0.0
    total_more, more = total + largest, squares + largest**2
    high = more / (2 * total_more) * chdtri(2 * total_more**2 / more, below) if more else 0.0
    return Estimate(total, float(low), float(high), len(events), "gamma")
