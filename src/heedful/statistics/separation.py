"""How far two groups of values lie apart, with bootstrap intervals over their members."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import bootstrap
from heedful.statistics.weighted import Values, Weights, quantile_of, ratio_of, weight_below


def auc(first: ArrayLike, second: ArrayLike, names: Sequence[str], seed: int = 0) -> Estimate:
    """The chance that a value of the first group is above one of the second; ties count half.

    `names` are those of the first group, then of the second.
    """
    values, is_first = _joined(first, second, names)
    below = weight_below(values)

    def statistic(weights: Weights) -> Values:
        mine, others = weights * is_first, weights * ~is_first
        total = mine.sum(1) * others.sum(1)
        won = (mine * below(others)).sum(1)
        empty = np.full(len(weights), np.nan)
        return np.asarray(np.divide(won, total, out=empty, where=total > 0))

    return _estimate(statistic, is_first, names, seed)


def standardised_gap(
    first: ArrayLike, second: ArrayLike, names: Sequence[str], seed: int = 0
) -> Estimate:
    """Difference of the groups' means over their pooled standard deviation."""
    values, is_first = _joined(first, second, names)

    def statistic(weights: Weights) -> Values:
        parts = []
        for chosen in (is_first, ~is_first):
            mass = weights[:, chosen].sum(1)
            with np.errstate(invalid="ignore", divide="ignore"):
                mean = weights[:, chosen] @ values[chosen] / mass
                square = weights[:, chosen] @ values[chosen] ** 2
            parts.append((mass, mean, square - mass * mean**2))
        (n1, mean1, ss1), (n2, mean2, ss2) = parts
        with np.errstate(invalid="ignore", divide="ignore"):
            pooled = np.sqrt((ss1 + ss2) / (n1 + n2 - 2))
            return np.asarray((mean1 - mean2) / pooled)

    return _estimate(statistic, is_first, names, seed)


def median_ratio(
    first: ArrayLike, second: ArrayLike, names: Sequence[str], seed: int = 0
) -> Estimate:
    """Median of the first group over median of the second."""
    values, is_first = _joined(first, second, names)
    above, below = (quantile_of(values[chosen], 0.5) for chosen in (is_first, ~is_first))

    def statistic(weights: Weights) -> Values:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(above(weights[:, is_first]) / below(weights[:, ~is_first]))

    return _estimate(statistic, is_first, names, seed)


def mean_ratio(
    first: ArrayLike, second: ArrayLike, names: Sequence[str], seed: int = 0
) -> Estimate:
    """Mean of the first over mean of the second, of the same members."""
    return bootstrap(ratio_of(first, second), names, seed)


def _joined(
    first: ArrayLike, second: ArrayLike, names: Sequence[str]
) -> tuple[Float64[np.ndarray, " instance"], np.ndarray]:
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if len(one) + len(two) != len(names):
        raise ValueError(f"one name per value: got {len(one) + len(two)} and {len(names)}")
    return np.concatenate([one, two]), np.arange(len(one) + len(two)) < len(one)


def _estimate(statistic: object, is_first: np.ndarray, names: Sequence[str], seed: int) -> Estimate:
    """The bootstrap, or nothing where a group is empty."""
    if is_first.all() or not is_first.any():
        return Estimate(float("nan"), float("nan"), float("nan"), len(names), "none")
    return bootstrap(statistic, names, seed)  # type: ignore[arg-type]
