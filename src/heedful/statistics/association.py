"""How two quantities go together over instances: rank correlation and slope, with intervals."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import bootstrap


def spearman(x: ArrayLike, y: ArrayLike, names: Sequence[str], seed: int = 0) -> Estimate:
    """Spearman's rank correlation, ties at their mean rank, with a percentile interval.

    Ranks are those of the whole sample in every resample, which differs from ranking anew by terms
    that vanish with n. Instances where either is nan are left out.
    """
    first, second, kept = _defined(x, y, names)
    return _weighted(rankdata(first), rankdata(second), kept, seed, is_slope=False)


def slope(x: ArrayLike, y: ArrayLike, names: Sequence[str], seed: int = 0) -> Estimate:
    """The least-squares slope of y on x with a percentile interval."""
    return _weighted(*_defined(x, y, names), seed, is_slope=True)


def _defined(
    x: ArrayLike, y: ArrayLike, names: Sequence[str]
) -> tuple[Float64[np.ndarray, "instance"], Float64[np.ndarray, "instance"], list[str]]:
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    known = ~(np.isnan(first) | np.isnan(second))
    kept = [name for name, is_known in zip(names, known, strict=True) if is_known]
    return first[known], second[known], kept


def _weighted(
    x: Float64[np.ndarray, "instance"],
    y: Float64[np.ndarray, "instance"],
    names: list[str],
    seed: int,
    is_slope: bool,
) -> Estimate:
    """Covariance over the spread of x (a slope) or of both (a correlation); nan without spread."""
    x, y = x - x.mean(), y - y.mean()

    def statistic(
        weights: Float64[np.ndarray, "replicate instance"],
    ) -> Float64[np.ndarray, "replicate"]:
        with np.errstate(divide="ignore", invalid="ignore"):
            share = weights / weights.sum(1, keepdims=True)
            mean_x, mean_y = share @ x, share @ y
            together = share @ (x * y) - mean_x * mean_y
            spread_x = share @ x**2 - mean_x**2
            spread_y = share @ y**2 - mean_y**2
            below = spread_x if is_slope else np.sqrt(spread_x * spread_y)
            return np.where(below > 1e-15, together / below, np.nan)

    return bootstrap(statistic, names, seed)
