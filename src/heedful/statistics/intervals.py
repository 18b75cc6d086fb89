"""95 % intervals, of means over documents and of whatever can be resampled.

Nowhere outside this room is one made: here, in `seeds` (one number per training), `shares` (exact
ones of few trainings), `association` (correlations), `regression` (least squares) and `draws`.

Means have a studentised bootstrap (bootstrap-t: Efron & Tibshirani 1993, ch. 12), which follows
skewed values, together with Student's interval, which holds where tails are heavy on both sides;
few events among equal values their own (`rare`); quantiles order statistics; any other statistic a
percentile or BCa bootstrap (ch. 13, 14); proportions Wilson's interval. Values that are nan are
left out and counted. No interval of a mean leaves the range that its caller names.

Values without spread tell nothing of how far new ones would differ. Where all are 0 or all are 1
they are a proportion; otherwise an interval of width 0 is given from 30 values on, none below.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Float, Float64, UInt8
from numpy.typing import ArrayLike
from scipy.special import bdtr, ndtr, ndtri, stdtrit

from heedful.runs.randomness import keys
from heedful.statistics.estimates import Estimate
from heedful.statistics.level import deviations, tails
from heedful.statistics.rare import rare_mean
from heedful.statistics.resampling import resampling_weights
from heedful.statistics.sums import FEW, Additive, OfSums, Sums, few_of, is_adding
from heedful.statistics.weighted import quantile_of, ratio_of

Statistic: TypeAlias = Callable[
    [Float64[np.ndarray, "replicate instance"]], Float[np.ndarray, " replicate"]
]
Statistics: TypeAlias = Callable[
    [Float64[np.ndarray, "replicate instance"]], Float[np.ndarray, "replicate column"]
]
Method: TypeAlias = Literal["percentile", "bca"]

NAN = float("nan")
_CHUNK = 2**22  # weights turned into float64 at once: 32 MiB
_GROUPS = 200  # of BCa's jackknife
ENOUGH = 30
"""So many equal values are taken for a constant: one in ten that differs would have shown."""


def proportion(hits: int, n: int) -> Estimate:
    """The share of hits with Wilson's score interval; honest at 0 and at n, unlike a bootstrap."""
    if not 0 <= hits <= n:
        raise ValueError(f"hits must lie between 0 and n = {n}, got {hits}")
    if n == 0:
        return Estimate(NAN, NAN, NAN, 0, "none", additive=_counted(0, 0))
    share, z = hits / n, deviations()
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2) / (1 + z**2 / n)
    low = 0.0 if hits == 0 else float(centre - half)
    high = 1.0 if hits == n else float(centre + half)
    return Estimate(share, low, high, int(n), "wilson", additive=_counted(hits, n))


def _counted(hits: int, n: int) -> Additive | None:
    """The two counts behind a proportion, where sums are kept."""
    if not is_adding():
        return None
    return Additive(
        Sums(np.array([[hits]], float), n), lambda s: proportion(int(s.totals[0, 0]), s.n)
    )


def mean(
    values: ArrayLike,
    names: Sequence[str],
    seed: int = 0,
    replicates: int = 1000,
    least: float = -np.inf,
    most: float = np.inf,
) -> Estimate:
    """The mean of the values, which can be `least` to `most`; the interval as in `means`.

    True/False values are a proportion and get Wilson's interval, as do numbers (two or more) that
    are all 0 or 1. Other equal numbers have an interval of width 0 from 30 on, and none below.
    """
    values = np.asarray(values)
    if values.dtype == bool:
        _check_names(len(values), names)
        return proportion(int(values.sum()), len(values))
    return means(values.astype(np.float64)[:, None], names, seed, replicates, least, most)[0]


def paired(
    first: ArrayLike,
    second: ArrayLike,
    names: Sequence[str],
    seed: int = 0,
    replicates: int = 1000,
    most: float = np.inf,
) -> Estimate:
    """The mean of first − second over the same instances; undefined where either is nan.

    A difference can be −`most` to `most`. Fewer than 30 that are all equal have no interval.
    """
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    return means(difference[:, None], names, seed, replicates, -most, most, is_difference=True)[0]


def means(
    values: ArrayLike,
    names: Sequence[str],
    seed: int = 0,
    replicates: int = 1000,
    least: ArrayLike = -np.inf,
    most: ArrayLike = np.inf,
    is_difference: bool = False,
) -> list[Estimate]:
    """The mean of each column of an [instance column] table, all from the same resampling.

    `least` and `most`, for all columns or each, are what the values can be.

    With t* = (m* − m) / s* over the replicates, the bootstrap-t interval is m − t*(97.5 %) s to
    m − t*(2.5 %) s; each end is the farther one of it and Student's. Where so few values differ
    that a quantile of t* is infinite (replicates without spread), Student's stands alone.
    Differences that happen to be 0 or 1 could have been −1, so they are no proportion.
    """
    table = np.asarray(values, dtype=np.float64)
    _check_names(len(table), names)
    sums = _resampled(table, names, seed, replicates)
    centre, error, t = _studentised(sums)
    is_grouped = len(set(names)) < len(names)
    lows, highs = (np.broadcast_to(end, table.shape[1]).tolist() for end in (least, most))
    found = []
    for column, here in enumerate(table.T):
        kept = here[~np.isnan(here)]
        undefined = len(here) - len(kept)
        part = Sums(sums[..., column], len(kept), undefined, few_of(kept))
        known = lows[column], highs[column], is_difference, is_grouped
        estimate = _mean_of(known, part, (centre[column], error[column], t[:, column]))
        if is_adding():
            estimate = replace(estimate, additive=Additive(part, partial(_mean_of, known)))
        found.append(estimate)
    return found


_Studentised: TypeAlias = tuple[
    Float64[np.ndarray, " *column"],
    Float64[np.ndarray, " *column"],
    Float64[np.ndarray, " 2 *column"],
]
"""Means and standard errors, and the quantiles of the studentised replicates."""


def _mean_of(
    known: tuple[float, float, bool, bool], sums: Sums, studentised: _Studentised | None = None
) -> Estimate:
    """The mean of one column, from its sums alone; they are studentised if that was not done."""
    least, most, is_difference, is_grouped = known
    studentised = studentised or _studentised(sums.totals)
    n, few, is_few = sums.n, sums.few, len(sums.few) <= FEW
    value, scale, t = float(studentised[0]), float(studentised[1]), studentised[2]
    if n < 2:
        estimate = Estimate(value, NAN, NAN, n, "none")
    elif is_few and not is_difference and bool(np.isin(few[:, 0], (0, 1)).all()):
        estimate = proportion(round(float(few[:, 0] @ few[:, 1])), n)
    elif len(few) == 1:
        estimate = constant(float(few[0, 0]), n)
    else:
        rare = rare_mean(few, least, most) if is_few and not is_grouped else None
        estimate = rare or student(value, scale, n)
        if estimate.method == "student-t" and np.isfinite(t).all():
            low, high = (value - scale * t[::-1]).tolist()
            low, high = min(low, estimate.low), max(high, estimate.high)
            estimate = Estimate(value, low, high, n, "bootstrap-t")
    return replace(estimate.cut(least, most), undefined=sums.undefined)


def _resampled(
    table: Float64[np.ndarray, "instance column"],
    names: Sequence[str],
    seed: int,
    replicates: int,
) -> Float64[np.ndarray, "row 3 column"]:
    """Number, sum and sum of squares of the defined values: of the data, then of each replicate."""
    columns = table.shape[1]
    defined = ~np.isnan(table)
    filled = np.where(defined, table, 0.0)
    powers = np.stack([defined.astype(np.float64), filled, filled**2], axis=1)
    powers = powers.reshape(len(table), 3 * columns)
    weights = resampling_weights(names, seed, replicates)
    sums = np.zeros((replicates + 1, 3 * columns))
    sums[0] = powers.sum(0)  # row 0 is the data itself, every instance once
    size = max(_CHUNK // replicates, 1)
    for start in range(0, len(table), size):
        part = slice(start, start + size)
        sums[1:] += weights[:, part].astype(np.float64) @ powers[part]
    return sums.reshape(replicates + 1, 3, columns)


def _studentised(sums: Float64[np.ndarray, "row 3 *column"]) -> _Studentised:
    """Mean and standard error of each column, and the quantiles of its studentised replicates."""
    with np.errstate(divide="ignore", invalid="ignore"):
        weight, total, squares = np.moveaxis(sums, 1, 0)
        centre = total / weight
        variance = (squares - total * centre) / (weight - 1)
        variance[variance <= 1e-12 * squares / weight] = 0.0  # no spread, up to rounding
        error = np.sqrt(variance / weight)
        t = np.nan_to_num(
            (centre[1:] - centre[0]) / error[1:], nan=0.0, posinf=np.inf, neginf=-np.inf
        )
        return centre[0], error[0], np.quantile(t, tails(), axis=0)


def bootstrap(
    statistic: Statistic,
    names: Sequence[str],
    seed: int = 0,
    replicates: int = 1000,
    method: Method = "percentile",
) -> Estimate:
    """Any weighted statistic with a percentile or a BCa interval.

    `statistic` maps weights [replicate instance] to values [replicate], row by row; it is called
    on blocks of rows. BCa corrects for bias and skew where the statistic is smooth (ratios, F1);
    for medians use the percentile. The interval is nan when the statistic is undefined in more than
    one replicate in twenty, or has no width and fewer than 30 instances; BCa falls back to (and
    says) percentile when all replicates lie on one side of the value.
    """
    if not names:
        return Estimate(NAN, NAN, NAN, 0, "none")
    if isinstance(statistic, OfSums):
        finish = statistic.finish
        of_sums = OfSums(statistic.values, lambda sums: finish(sums)[:, None])
        return bootstraps(of_sums, names, seed, replicates, method)[0]
    single: Statistics = lambda weights: statistic(weights)[:, None]  # noqa: E731
    return bootstraps(single, names, seed, replicates, method)[0]


def bootstraps(
    statistics: Statistics,
    names: Sequence[str],
    seed: int = 0,
    replicates: int = 1000,
    method: Method = "percentile",
) -> list[Estimate]:
    """Several statistics that are cheaper together: as `bootstrap`, with [replicate column]."""
    if is_adding() and isinstance(statistics, OfSums):
        return _added_bootstraps(statistics, names, seed, replicates, method)
    n = len(names)
    values = statistics(np.ones((1, n)))[0].astype(np.float64)
    if n < 2:
        values = values if n else np.full_like(values, NAN)
        return [Estimate(value, NAN, NAN, n, "none") for value in values.tolist()]
    drawn = _in_blocks(statistics, resampling_weights(names, seed, replicates))
    without = None
    if method == "bca":
        # Leaving out groups instead of instances costs 200 values of the statistic whatever n is,
        # and keeps the skewness: influences of independent instances add up, so do their cubes.
        group = np.arange(n) if n <= _GROUPS else keys(seed, names, "jackknife") % _GROUPS
        left_out = np.arange(min(n, _GROUPS))[:, None] != group
        without = _in_blocks(statistics, left_out.astype(np.uint8))
    found = []
    for column, value in enumerate(values.tolist()):
        jackknifed = None if without is None else without[:, column]
        found.append(from_replicates(value, drawn[:, column], n, jackknifed))
    return found


def _added_bootstraps(
    statistics: OfSums, names: Sequence[str], seed: int, replicates: int, method: Method
) -> list[Estimate]:
    """The same with the sums kept; the jackknife's groups go by name, however few there are."""
    group = keys(seed, names, "jackknife") % _GROUPS
    weights = [np.ones((1, len(names)), np.uint8), resampling_weights(names, seed, replicates)]
    weights.append((np.arange(_GROUPS)[:, None] != group).astype(np.uint8))
    totals = [_in_blocks(lambda rows: rows @ statistics.values, part) for part in weights]
    sums = Sums(np.concatenate(totals), len(names))

    def estimates(of: Sums) -> list[Estimate]:
        found = statistics.finish(of.totals).astype(np.float64)
        drawn, without = found[1 : replicates + 1], found[replicates + 1 :]
        return [
            from_replicates(
                value, drawn[:, column], of.n, without[:, column] if method == "bca" else None
            )
            for column, value in enumerate(found[0].tolist())
        ]

    def of_column(column: int) -> Additive:
        return Additive(sums, lambda of: estimates(of)[column])

    return [replace(e, additive=of_column(column)) for column, e in enumerate(estimates(sums))]


def from_replicates(
    value: float,
    drawn: Float[np.ndarray, " replicate"],
    n: int,
    without: Float[np.ndarray, " group"] | None = None,
) -> Estimate:
    """A value with the interval of its replicates: percentile, or BCa given the jackknife.

    None where fewer than 19 of 20 replicates are defined, or where it would have no width and there
    are fewer than 30 instances.
    """
    defined = drawn[~np.isnan(drawn)]
    none = Estimate(value, NAN, NAN, n, "none")
    if np.isnan(value) or len(defined) < 0.95 * len(drawn):
        return none
    corrected = None if without is None else _bca_tails(value, defined, without)
    low, high = np.quantile(defined, tails() if corrected is None else corrected).tolist()
    if low == high and n < ENOUGH:
        return none
    return Estimate(value, low, high, n, "percentile" if corrected is None else "bca")


def pooled(values: ArrayLike, groups: Sequence[str], is_difference: bool = False) -> Estimate:
    """The mean of values that come in groups, say words of sentences, drawn as a whole (BCa).

    n counts the groups. Where all values are 0, or all 1, they tell no more than one of each group
    would: Wilson's interval, unless they are differences. Other equal values are as in `mean`.
    """
    given = np.asarray(values, dtype=np.float64)
    _check_names(len(given), groups)
    defined = ~np.isnan(given)
    known, place = np.unique(np.asarray(groups, dtype=str)[defined], return_inverse=True)
    kept, n = given[defined], len(known)
    if n > 1 and kept.min() == kept.max():
        value = float(kept[0])
        is_share = value in (0.0, 1.0) and not is_difference
        found = proportion(round(value * n), n) if is_share else constant(value, n)
    else:
        mean_of_all = ratio_of(np.bincount(place, kept), np.bincount(place))
        found = bootstrap(mean_of_all, known.tolist(), method="bca")
    return replace(found, undefined=int((~defined).sum()))


def quantile(values: ArrayLike, q: float) -> Estimate:
    """A quantile (the median at q = 0.5) with its exact interval, between two values in order.

    The true one lies below the k-th value only if fewer than k values lie below it: a tail of a
    binomial, whatever the distribution. Too few values (five for a median) cannot tell and have no
    interval; values without spread keep theirs, where a bootstrap would have seen none.
    """
    given = np.asarray(values, dtype=np.float64)
    ordered = np.sort(given[~np.isnan(given)])
    n, undefined = len(ordered), len(given) - len(ordered)
    value = float(quantile_of(ordered, q)(np.ones((1, n)))[0])
    fewer = bdtr(np.arange(n), n, q)  # at most k of n values lie below
    below, above = tails()
    low = int((fewer <= below).sum()) - 1
    high = int((fewer < above).sum())
    if low < 0 or high >= n:
        return Estimate(value, NAN, NAN, n, "none", undefined)
    ends = float(ordered[low]), float(ordered[high])
    return Estimate(value, *ends, n, "order statistics", undefined)


def central(drawn: ArrayLike) -> Estimate:
    """The mean of values drawn under a hypothesis, shuffled ones say, with their central 95 %."""
    values = np.asarray(drawn, dtype=np.float64)
    low, high = np.quantile(values, tails()).tolist()
    return Estimate(float(values.mean()), low, high, len(values), "permutation")


def sign_test(wins: int, losses: int) -> float:
    """The exact two-sided p of so uneven a split between equals; ties are not passed in."""
    n = wins + losses
    return min(1.0, 2.0 * float(bdtr(min(wins, losses), n, 0.5))) if n else 1.0


def constant(value: float, n: int) -> Estimate:
    """Equal values: an interval of width 0 where there are enough of them, else none."""
    if n < ENOUGH:
        return Estimate(value, NAN, NAN, n, "none")
    return Estimate(value, value, value, n, "constant")


def student(value: float, error: float, n: int) -> Estimate:
    """A mean of n values with its standard error: Student's interval."""
    half = float(stdtrit(n - 1, tails()[1])) * error
    return Estimate(value, value - half, value + half, n, "student-t")


def _check_names(n: int, names: Sequence[str]) -> None:
    if n != len(names):
        raise ValueError(f"one name per value: got {n} values and {len(names)} names")


def _in_blocks(
    statistics: Statistics, weights: UInt8[np.ndarray, "replicate instance"]
) -> Float64[np.ndarray, "replicate column"]:
    rows = max(_CHUNK // max(weights.shape[1], 1), 1)
    blocks = range(0, len(weights), rows)
    parts = [statistics(weights[start : start + rows].astype(np.float64)) for start in blocks]
    return np.concatenate(parts).astype(np.float64)


def _bca_tails(
    value: float,
    drawn: Float64[np.ndarray, " replicate"],
    without: Float64[np.ndarray, " group"],
) -> Float64[np.ndarray, "2"] | None:
    """The quantiles to read instead of 2.5 % and 97.5 %; None where they do not exist.

    `drawn` are the replicates, `without` the values with one group of instances left out.
    """
    bias = float(ndtri(np.mean((drawn < value) + 0.5 * (drawn == value))))
    if not np.isfinite(bias):
        return None
    without = without[~np.isnan(without)]
    influence = without.mean() - without
    spread = float(np.sum(influence**2))
    acceleration = float(np.sum(influence**3)) / (6 * spread**1.5) if spread > 0 else 0.0
    shifted = bias + ndtri(tails())
    return np.asarray(ndtr(bias + shifted / (1 - acceleration * shifted)))
