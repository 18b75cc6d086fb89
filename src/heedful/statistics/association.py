"""How two quantities go together over instances: correlations and slope, with intervals."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import bootstrap
from heedful.statistics.level import deviations
from heedful.statistics.weighted import Values, Weighted, Weights, rank_correlation


def spearman(x: ArrayLike, y: ArrayLike, names: Sequence[str], seed: int = 0) -> Estimate:
    """Spearman's rank correlation, ties at their mean rank, with a percentile interval.

    Instances where either is nan are left out.
    """
    first, second, kept = _defined(x, y, names)
    return bootstrap(rank_correlation(first, second), kept, seed)


def spearman_of_few(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Spearman's rank correlation of a few points, too few to draw from, with Fisher's interval.

    On the scale of its inverse hyperbolic tangent its variance is about (1 + r²/2) / (n - 3)
    (Bonett & Wright, 2000): three points have no interval, and four tell next to nothing. Ranks
    that agree wholly, where that scale ends, have the inner end of the next smaller correlation,
    1 - 12 / (n³ - n): two neighbours changed places.
    """
    n = len(np.asarray(x))
    r = float(rank_correlation(x, y)(np.ones((1, n)))[0])
    if n < 4 or np.isnan(r):
        return Estimate(r, float("nan"), float("nan"), n, "none")
    is_whole = abs(r) > 1 - 6 / (n**3 - n)  # up to rounding
    near = float(np.sign(r)) * (1 - 12 / (n**3 - n)) if is_whole else r
    half = deviations() * np.sqrt((1 + near * near / 2) / (n - 3))
    low, high = np.tanh(np.arctanh(near) + np.array([-half, half])).tolist()
    if is_whole:
        r = float(np.sign(r))
        low, high = (low, 1.0) if r > 0 else (-1.0, high)
    return Estimate(r, low, high, n, "fisher z")


def correlation(x: ArrayLike, y: ArrayLike, given: ArrayLike | None = None) -> Weighted:
    """Pearson's correlation as a function of resampling weights, for `draws`.

    With `given` it is the partial one: what is left when both are rid of their line on `given`.
    """
    columns = (x, y) if given is None else (x, y, given)
    return correlated(products(*columns))


def products(*columns: ArrayLike) -> Float64[np.ndarray, "instance product"]:
    """Every product of two among 1 and the centred columns: what correlations are made of.

    Sums of them over groups (the tokens of a text) serve `correlated` with weights of groups.
    """
    values = [np.asarray(column, dtype=np.float64) for column in columns]
    whole = np.column_stack([np.ones(len(values[0])), *(v - v.mean() for v in values)])
    return np.asarray((whole[:, :, None] * whole[:, None, :]).reshape(len(whole), -1))


def correlated(sums: Float64[np.ndarray, "instance product"]) -> Weighted:
    """The correlation of the first two columns of `products`, rid of the third if there is one."""
    size = round(np.sqrt(sums.shape[1]))
    is_partial = size == 4

    def statistic(weights: Weights) -> Values:
        moments = (weights @ sums).reshape(-1, size, size)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = moments[:, 0, 1:] / moments[:, 0, :1]
            squares = moments[:, 1:, 1:] / moments[:, :1, :1]
            spread = squares - means[:, :, None] * means[:, None]
            length = np.sqrt(np.einsum("rii->ri", spread))
            flat = ~(length > 1e-7 * np.sqrt(np.einsum("rii->ri", squares)))
            r = spread / (length[:, :, None] * length[:, None])
            found = r[:, 0, 1]
            if is_partial:
                left = np.sqrt((1 - r[:, 0, 2] ** 2) * (1 - r[:, 1, 2] ** 2))
                found = np.where(left > 1e-9, (found - r[:, 0, 2] * r[:, 1, 2]) / left, np.nan)
        return np.where(flat.any(1), np.nan, found)

    return statistic


def slope(x: ArrayLike, y: ArrayLike, names: Sequence[str], seed: int = 0) -> Estimate:
    """The least-squares slope of y on x with a percentile interval; nan without spread."""
    first, second, kept = _defined(x, y, names)
    first, second = first - first.mean(), second - second.mean()

    def statistic(weights: Weights) -> Values:
        with np.errstate(divide="ignore", invalid="ignore"):
            share = weights / weights.sum(1, keepdims=True)
            mean_x, mean_y = share @ first, share @ second
            together = share @ (first * second) - mean_x * mean_y
            spread = share @ first**2 - mean_x**2
            return np.where(spread > 1e-15, together / spread, np.nan)

    return bootstrap(statistic, kept, seed)


def _defined(
    x: ArrayLike, y: ArrayLike, names: Sequence[str]
) -> tuple[Float64[np.ndarray, " instance"], Float64[np.ndarray, " instance"], list[str]]:
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    known = ~(np.isnan(first) | np.isnan(second))
    kept = [name for name, is_known in zip(names, known, strict=True) if is_known]
    return first[known], second[known], kept
