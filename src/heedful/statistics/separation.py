"""How far two groups of values lie apart, with bootstrap intervals over their members."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Float64
from numpy.typing import ArrayLike

from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import bootstrap

Weights = Float64[np.ndarray, "replicate instance"]
Values = Float[np.ndarray, "replicate"]


def auc(first: ArrayLike, second: ArrayLike, names: Sequence[str], seed: int = 0) -> Estimate:
    """The chance that a value of the first group is above one of the second; ties count half.

    `names` are those of the first group, then of the second.
    """
    values, is_first = _joined(first, second, names)
    order = np.argsort(values, kind="stable")
    ordered, mine = values[order], is_first[order]
    starts = np.searchsorted(ordered, ordered, side="left")
    stops = np.searchsorted(ordered, ordered, side="right")

    def statistic(weights: Weights) -> Values:
        weights = weights[:, order]
        others = np.cumsum(weights * ~mine, axis=1)
        reached = np.concatenate([np.zeros((len(weights), 1)), others], axis=1)
        below = (reached[:, starts] + reached[:, stops]) / 2
        total = (weights * mine).sum(1) * others[:, -1]
        won = (weights * mine * below).sum(1)
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

    def statistic(weights: Weights) -> Values:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(
                _medians(values[is_first], weights[:, is_first])
                / _medians(values[~is_first], weights[:, ~is_first])
            )

    return _estimate(statistic, is_first, names, seed)


def mean_ratio(
    first: ArrayLike, second: ArrayLike, names: Sequence[str], seed: int = 0
) -> Estimate:
    """Mean of the first over mean of the second, of the same members."""
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)

    def statistic(weights: Weights) -> Values:
        below = weights @ two
        empty = np.full(len(below), np.nan)
        return np.asarray(np.divide(weights @ one, below, out=empty, where=below != 0))

    return bootstrap(statistic, names, seed)


def spearman(x: ArrayLike, y: ArrayLike, names: Sequence[str], seed: int = 0) -> Estimate:
    """Spearman's rank correlation, with a percentile interval over members."""
    both = [np.asarray(values, dtype=np.float64) for values in (x, y)]
    tables = [(v[None] < v[:, None]) + 0.5 * (v[None] == v[:, None]) for v in both]

    def statistic(weights: Weights) -> Values:
        ranks = [weights @ table.T for table in tables]
        mass = weights.sum(1, keepdims=True)
        centred = [r - (weights * r).sum(1, keepdims=True) / mass for r in ranks]
        together = (weights * centred[0] * centred[1]).sum(1)
        apart = [np.sqrt((weights * c**2).sum(1)) for c in centred]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(together / (apart[0] * apart[1]))

    return bootstrap(statistic, names, seed)


def _joined(
    first: ArrayLike, second: ArrayLike, names: Sequence[str]
) -> tuple[Float64[np.ndarray, "instance"], np.ndarray]:
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if len(one) + len(two) != len(names):
        raise ValueError(f"one name per value: got {len(one) + len(two)} and {len(names)}")
    return np.concatenate([one, two]), np.arange(len(one) + len(two)) < len(one)


def _estimate(statistic: object, is_first: np.ndarray, names: Sequence[str], seed: int) -> Estimate:
    """The bootstrap, or nothing where a group is empty."""
    if is_first.all() or not is_first.any():
        return Estimate(float("nan"), float("nan"), float("nan"), len(names), "none")
    return bootstrap(statistic, names, seed)  # type: ignore[arg-type]


def _medians(values: Float64[np.ndarray, "instance"], weights: Weights) -> Values:
    """The median of each reweighting: where half of the weight is reached."""
    order = np.argsort(values, kind="stable")
    ordered, reached = values[order], np.cumsum(weights[:, order], axis=1)
    half, last = reached[:, -1:] / 2, len(values) - 1
    lower = np.minimum((reached < half).sum(1), last)
    upper = np.minimum((reached <= half).sum(1), last)
    return np.where(reached[:, -1] > 0, (ordered[lower] + ordered[upper]) / 2, np.nan)
