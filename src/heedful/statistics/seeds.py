"""One number per training: how far new seeds would differ, and where one more would lie."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtri, stdtrit

from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import NAN, constant, student
from heedful.statistics.level import tails


def over_seeds(values: ArrayLike, least: float = -np.inf, most: float = np.inf) -> Estimate:
    """The mean of one number per seed with Student's interval: how far new seeds would differ.

    Fewer than 30 seeds that all give the same number have no interval. `least` and `most` are what
    the number can be at all, where the interval is cut.
    """
    values = np.asarray(values, dtype=np.float64)
    defined = values[~np.isnan(values)]
    n, undefined = len(defined), len(values) - len(defined)
    if n < 2:
        value = float(defined[0]) if n else NAN
        return Estimate(value, NAN, NAN, n, "none", undefined)
    if defined.min() == defined.max():
        return replace(constant(float(defined[0]), n), undefined=undefined)
    error = float(defined.std(ddof=1) / np.sqrt(n))
    found = student(float(defined.mean()), error, n)
    low, high = max(found.low, least), min(found.high, most)
    return replace(found, low=low, high=high, undefined=undefined)


def widened(
    found: Estimate, per_seed: ArrayLike, least: float = -np.inf, most: float = np.inf
) -> Estimate:
    """An estimate over documents, its interval widened by how far trainings differ.

    Documents and seeds err independently, so half-widths add as squares; that of the seeds is
    Student's. Seeds without an interval of their own, as a single one, add nothing. `least` and
    `most` are what the number can be at all.
    """
    seeds = over_seeds(per_seed)
    half = seeds.high - seeds.value
    if np.isnan([half, found.low, found.high]).any():
        return found
    low, high = found.value - found.low, found.high - found.value
    low, high = found.value - float(np.hypot(low, half)), found.value + float(np.hypot(high, half))
    low, high = max(low, least), min(high, most)
    return replace(found, low=low, high=high, method=f"{found.method}, student-t")


def deviation(values: ArrayLike, together: int = 1) -> Estimate:
    """The standard deviation of one number per seed, with the interval of a normal sample's (χ²).

    Fewer than two defined values have none. Intervals of several deviations, so many `together`,
    are wider and hold all at once (Bonferroni), so that the largest may be picked.
    """
    given = np.asarray(values, dtype=np.float64)
    defined = given[~np.isnan(given)]
    n, undefined = len(defined), len(given) - len(defined)
    if n < 2:
        return Estimate(NAN, NAN, NAN, n, "none", undefined)
    found = float(defined.std(ddof=1))
    outside = tails()[0] / together
    low, high = (found * np.sqrt((n - 1) / chdtri(n - 1, tail)) for tail in (outside, 1 - outside))
    return Estimate(found, float(low), float(high), n, "chi-squared", undefined)


def extent(values: ArrayLike) -> Estimate:
    """The largest of one number per seed, with the smallest and the largest as its ends.

    For what must hold in every training: no seed lies outside, whatever new ones would do.
    """
    given = np.asarray(values, dtype=np.float64)
    least, most = float(np.nanmin(given)), float(np.nanmax(given))
    return Estimate(most, least, most, len(given), "range of seeds")


def new_draw(values: ArrayLike) -> Estimate:
    """The mean of a few draws, with the interval in which one more lies with a chance of 95 %.

    mean ± t s √(1 + 1/n), for normal draws; fewer than two, or draws without spread, have none.
    """
    given = np.asarray(values, dtype=np.float64)
    defined = given[~np.isnan(given)]
    n, undefined = len(defined), len(given) - len(defined)
    value = float(defined.mean()) if n else NAN
    spread = float(defined.std(ddof=1)) if n > 1 else 0.0
    if not spread > 0:
        return Estimate(value, NAN, NAN, n, "none", undefined)
    half = float(stdtrit(n - 1, 0.975)) * spread * float(np.sqrt(1 + 1 / n))
    return Estimate(value, value - half, value + half, n, "prediction", undefined)
