"""Shares of a few trainings: exact intervals, and what follows from two of them."""

from __future__ import annotations

import math

from scipy.special import betaincinv

from heedful.statistics.estimates import Estimate
from heedful.statistics.level import tails

EXACT = "clopper-pearson"
"""The method of an exact interval of counts."""


def exact_share(hits: int, n: int) -> Estimate:
    """The share of hits with Clopper and Pearson's exact interval.

    Wider than Wilson's: with few trainings the coverage should never be less than said.
    """
    if not 0 <= hits <= n:
        raise ValueError(f"hits must lie between 0 and n = {n}, got {hits}")
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, "none")
    below, above = tails()
    low = float(betaincinv(hits, n - hits + 1, below)) if hits else 0.0
    high = float(betaincinv(hits + 1, n - hits, above)) if hits < n else 1.0
    return Estimate(hits / n, low, high, n, EXACT)


def apart(first: Estimate, second: Estimate) -> Estimate:
    """First minus second of two independent estimates, from their own intervals.

    d - √((a - a_low)² + (b_high - b)²) to d + √((a_high - a)² + (b - b_low)²): Newcombe's (1998)
    interval for two shares, which Zou and Donner (2008) extend to any two parameters.
    """
    difference = first.value - second.value
    below = math.hypot(first.value - first.low, second.high - second.value)
    above = math.hypot(first.high - first.value, second.value - second.low)
    n = min(first.n, second.n)
    return Estimate(difference, difference - below, difference + above, n, "newcombe")


def to_the_power(share: Estimate, times: int) -> Estimate:
    """The chance that something happens so many times in a row, if each time it has this share."""
    return Estimate(
        share.value**times, share.low**times, share.high**times, share.n, share.method
    )  # fmt: skip


def discordance(only_first: int, only_second: int, n: int) -> Estimate:
    """P(only first) - P(only second) of n pairs, with the interval of the exact paired test.

    Given the discordant pairs, the first kind is binomial: the exact interval of its share π, and
    2π - 1 of the discordant share. It leaves out 0 where the exact test rejects.
    """
    pairs = only_first + only_second
    if not n:
        return Estimate(math.nan, math.nan, math.nan, 0, "none")
    share = exact_share(only_first, pairs)
    ends = [(2 * end - 1) * pairs / n for end in (share.low, share.high)]
    if not pairs:  # nothing ever flips: how rare it is, is all that is known
        rare = exact_share(0, n).high
        ends = [-rare, rare]
    return Estimate((only_first - only_second) / n, ends[0], ends[1], n, EXACT)


DECIDED = "cases decided"
"""The method of `decided_share`."""


def decided_share(certain: int, likely: int, possible: int, n: int) -> Estimate:
    """The share of n cases that are all there are, each decided by an interval of its own.

    From the share of those that are certain to that of those not excluded; the value counts what
    each case's own value says. More cases cannot be had, so no n would narrow it.
    """
    low, high = min(certain, likely), max(likely, possible)
    return Estimate(likely / n, low / n, high / n, n, DECIDED)
