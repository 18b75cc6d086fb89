"""Statistics with all their bootstrap replicates, so that they can be combined before judging.

The weight of a document in a replicate is a hash of its name (`resampling_weights`). So replicates
of two models on the same documents are paired by construction: their difference, their ratio, or
how many of several models satisfy something, is the same arithmetic on replicates as on values.
Pass all documents of a corpus each time, with nan for those a statistic leaves out: the weights are
then computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Shaped
from numpy.typing import ArrayLike

from heedful.runs.randomness import numpy_generator
from heedful.statistics import intervals
from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import from_replicates, proportion
from heedful.statistics.resampling import resampling_weights
from heedful.statistics.weighted import Weighted, quantile_of

REPLICATES = 1000
_CHUNK = 2**22  # weights turned into float64 at once: 32 MiB


class Draws(NamedTuple):
    """A statistic on the data and on every resampling of it."""

    value: float
    drawn: Float64[np.ndarray, " replicate"]
    n: int
    """Documents (models, for counts of models) behind it."""
    exact: Estimate | None = None
    """The estimate of a plain share or quantile, whose interval needs no resampling."""
    trainings: int | None = None
    """How many trainings it is the mean of, where their spread is in the replicates."""

    def estimate(self) -> Estimate:
        """The value with its percentile interval; none where too few replicates are defined.

        A plain share has Wilson's interval, which is honest at 0 and at 1, a plain quantile that of
        order statistics. One without width from fewer than 30 instances is none either.
        """
        found = self.exact or from_replicates(self.value, self.drawn, self.n)
        if self.trainings is None or not found.high > found.low:
            return found
        return replace(found, n=self.trainings, method=f"{found.method}, student-t")


def draws(statistic: Weighted, names: Sequence[str], n: int | None = None) -> Draws:
    """Any weighted statistic, row by row over weights [replicate instance]."""
    value = float(statistic(np.ones((1, len(names))))[0])
    parts = [statistic(weights) for weights in _weights(tuple(names))]
    return Draws(value, np.concatenate(parts).astype(np.float64), len(names) if n is None else n)


def _weights(names: tuple[str, ...]) -> Iterable[Float64[np.ndarray, "replicate instance"]]:
    """The weights of all replicates as numbers, a part at a time; one part is kept for others."""
    rows = max(_CHUNK // max(len(names), 1), 1)
    if rows >= REPLICATES:
        return (_all_weights(names),)
    weights = resampling_weights(names, replicates=REPLICATES)
    return (
        weights[start : start + rows].astype(np.float64) for start in range(0, REPLICATES, rows)
    )


@lru_cache(maxsize=8)
def _all_weights(names: tuple[str, ...]) -> Float64[np.ndarray, "replicate instance"]:
    weights = resampling_weights(names, replicates=REPLICATES).astype(np.float64)
    weights.setflags(write=False)
    return weights


def average(values: ArrayLike, names: Sequence[str]) -> Draws:
    """The mean of the defined values; of True and False it is their share."""
    return averages([values], names)[0]


def averages(several: Sequence[ArrayLike], names: Sequence[str]) -> list[Draws]:
    """The same of several numbers of the same instances, each with its own defined ones."""
    table = np.stack([np.asarray(values, dtype=np.float64) for values in several])
    defined = ~np.isnan(table)
    filled = np.where(defined, table, 0.0)
    powers = np.concatenate([filled, defined.astype(np.float64)]).T
    parts = [weights @ powers for weights in _weights(tuple(names))]
    total, count = np.split(np.concatenate(parts).T, 2)
    found = []
    for row, own in enumerate(defined):
        n = int(own.sum())
        is_share = bool(n) and bool(np.isin(table[row][own], (0.0, 1.0)).all())
        exact = proportion(int(filled[row].sum()), n) if is_share else None
        value = float(filled[row].sum() / n) if n else float("nan")
        found.append(Draws(value, _over(total[row], count[row]), n, exact))
    return found


def quantile(values: ArrayLike, q: float, names: Sequence[str]) -> Draws:
    """A quantile of the defined values."""
    values = np.asarray(values, dtype=np.float64)
    defined = np.flatnonzero(~np.isnan(values))
    if not len(defined):
        return undefined()
    of_defined = quantile_of(values[defined], q)

    def statistic(weights: Float64[np.ndarray, "replicate instance"]) -> np.ndarray:
        return of_defined(weights[:, defined])

    exact = intervals.quantile(values, q)
    return draws(statistic, names, len(defined))._replace(exact=exact)


def onset(
    x: ArrayLike, y: ArrayLike, threshold: float, edges: ArrayLike, names: Sequence[str]
) -> Draws:
    """Left edge of the first bin of x whose mean y is above the threshold; the last edge if none.

    Bins are closed on the left, the last one on both sides; undefined points are left out.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    bounds = np.asarray(edges, dtype=np.float64)
    defined = ~(np.isnan(x) | np.isnan(y))
    place = np.clip(np.searchsorted(bounds, x, side="right") - 1, 0, len(bounds) - 2)
    inside = (place[:, None] == np.arange(len(bounds) - 1)) & defined[:, None]
    total = np.where(inside, np.where(defined, y, 0.0)[:, None], 0.0)
    counts = inside.astype(np.float64)

    def statistic(weights: Float64[np.ndarray, "replicate instance"]) -> np.ndarray:
        is_high = _over(weights @ total, weights @ counts) > threshold
        return np.asarray(np.where(is_high.any(1), bounds[is_high.argmax(1)], bounds[-1]))

    return draws(statistic, names, int(defined.sum()))


def odds(first: ArrayLike, second: ArrayLike, names: Sequence[str]) -> Draws:
    """How many times as often `first` holds as `second`; where `second` never does, of half a time.

    Half a document in the denominator keeps the ratio finite; undefined flags count as not holding.
    """
    flags = np.stack([np.nan_to_num(np.asarray(f, dtype=np.float64)) for f in (first, second)], 1)

    def statistic(weights: Float64[np.ndarray, "replicate instance"]) -> np.ndarray:
        one, other = (weights @ flags).T
        found = _over(one, np.maximum(other, 0.5))
        return np.where(one + other > 0, found, np.nan)

    return draws(statistic, names, int(flags.any(1).sum()))


def undefined() -> Draws:
    """What a statistic of nothing is."""
    return Draws(float("nan"), np.full(REPLICATES, np.nan), 0)


def minus(first: Draws, second: Draws) -> Draws:
    """The difference, replicate by replicate."""
    n = min(first.n, second.n)
    drawn = first.drawn - second.drawn
    return Draws(first.value - second.value, drawn, n, trainings=_trainings(first, second))


def over(first: Draws, second: Draws) -> Draws:
    """The quotient, replicate by replicate; undefined where it would divide by zero or less.

    A mean effect in the denominator that is not above zero has no meaningful multiple.
    """
    value = _over(np.array([first.value]), np.maximum([second.value], 0.0))
    drawn = _over(first.drawn, np.maximum(second.drawn, 0.0))
    return Draws(
        float(value[0]), drawn, min(first.n, second.n), trainings=_trainings(first, second)
    )


def largest(several: Iterable[Draws]) -> Draws:
    """The largest value, in each replicate anew."""
    found = list(several)
    if not found:
        return undefined()
    return Draws(
        float(np.max([one.value for one in found])),  # nan if any is, unlike max()
        np.max([one.drawn for one in found], axis=0),
        min(one.n for one in found),
        trainings=_trainings(*found),
    )


def smallest(several: Iterable[Draws]) -> Draws:
    """The smallest value, in each replicate anew."""
    return negative(largest(negative(one) for one in several))


def negative(one: Draws) -> Draws:
    """The same with the other sign."""
    return Draws(-one.value, -one.drawn, one.n, trainings=one.trainings)


def middle(several: Iterable[Draws]) -> Draws:
    """The mean of several statistics."""
    found = list(several)
    if not found:
        return undefined()
    return Draws(
        float(np.mean([one.value for one in found])),
        np.mean([one.drawn for one in found], axis=0),
        sum(one.n for one in found),
        trainings=_trainings(*found),
    )


def spearman(first: Sequence[Draws], second: Sequence[Draws]) -> Draws:
    """Spearman's correlation over models, replicate by replicate; undefined without spread."""
    pairs = [
        (a, b)
        for a, b in zip(first, second, strict=True)
        if not (np.isnan(a.value) or np.isnan(b.value))
    ]
    if len(pairs) < 3:
        return undefined()
    value = _correlation(
        *(np.array([[one.value for one in side]]) for side in zip(*pairs, strict=True))
    )
    drawn = _correlation(
        *(np.stack([one.drawn for one in side], 1) for side in zip(*pairs, strict=True))
    )
    return Draws(float(value[0]), drawn, len(pairs))


def over_seeds(trained: Sequence[Draws]) -> Draws:
    """One statistic of a model that was trained several times: the mean over seeds.

    Each replicate draws as many seeds as there are, with replacement, beside its documents: so the
    interval holds the spread between trainings too, and is the usual one for a single seed.
    """
    if len(trained) == 1:
        return trained[0]
    table = np.stack([one.drawn for one in trained])
    generator = numpy_generator(0, "seeds of a model", len(trained))
    chosen = generator.integers(0, len(trained), size=table.shape)
    drawn = np.take_along_axis(table, chosen, axis=0).mean(0)
    value = float(np.mean([one.value for one in trained]))
    return Draws(value, drawn, min(one.n for one in trained))


def over_trainings(
    trained: Sequence[Draws], key: str, least: float = -np.inf, most: float = np.inf
) -> Draws:
    """One statistic of a model that was trained a few times: the mean over trainings.

    Its estimate counts trainings: they are what more of would decide. Each replicate resamples the
    documents, which all trainings share, and moves the mean by Student's allowance for
    as many trainings, s t / √m: a few seeds resampled would hardly differ.
    `key` keeps the moves of unrelated models apart; no replicate leaves `least` to `most`. One
    training alone has the spread of its documents only.
    """
    known = [one for one in trained if not np.isnan(one.value)]
    if not known:
        return undefined()
    if len(known) == 1:
        return known[0]
    values = np.array([one.value for one in known])
    whole = np.mean([one.drawn for one in known], axis=0)
    generator = numpy_generator(0, "trainings of a model", key, len(known))
    moved = generator.standard_t(len(known) - 1, size=len(whole))
    drawn = whole + moved * values.std(ddof=1) / np.sqrt(len(known))
    n = min(one.n for one in known)
    drawn = np.clip(drawn, least, most)
    return Draws(float(values.mean()), drawn, n, trainings=len(known))


def _trainings(*several: Draws) -> int | None:
    """The fewest trainings behind any of them."""
    known = [one.trainings for one in several if one.trainings is not None]
    return min(known, default=None)


def over_pairs(trained: Sequence[Draws], key: str) -> Draws:
    """The mean over pairs of trainings that all share one, as if that one were drawn anew too.

    How far m pairs of one training with others spread (s²) says nothing of how their mean would
    move with another in its place, except that it moves no more than that: a symmetric statistic of
    two takes at most half of its variance from either. So the variance is at most s² (1 + 1/m),
    with Student's allowance for m pairs, beside the documents'. One pair alone has the spread of
    its documents only. `key` keeps the draws of unrelated trainings apart.
    """
    if len(trained) == 1:
        return trained[0]
    count = len(trained)
    values = np.array([one.value for one in trained])
    whole = np.mean([one.drawn for one in trained], axis=0)
    generator = numpy_generator(0, "pairs of trainings", key, count)
    moved = generator.standard_t(count - 1, size=len(whole)) * np.sqrt(1 + 1 / count)
    drawn = whole + moved * values.std(ddof=1)
    return Draws(float(values.mean()), drawn, min(one.n for one in trained))


def _over(
    first: Shaped[np.ndarray, "..."], second: Shaped[np.ndarray, "..."]
) -> Float64[np.ndarray, "..."]:
    found = np.full(np.broadcast_shapes(first.shape, second.shape), np.nan)
    return np.asarray(np.divide(first, second, out=found, where=second > 0))


def _correlation(
    first: Float64[np.ndarray, "replicate model"], second: Float64[np.ndarray, "replicate model"]
) -> Float64[np.ndarray, " replicate"]:
    from scipy.stats import rankdata  # a fifth of the time in which heedful is imported

    one, other = (rankdata(side, axis=1) - (side.shape[1] + 1) / 2 for side in (first, second))
    return _signed_over((one * other).sum(1), np.sqrt((one**2).sum(1) * (other**2).sum(1)))


def _signed_over(first: np.ndarray, second: np.ndarray) -> Float64[np.ndarray, " replicate"]:
    found = np.full(len(first), np.nan)
    return np.asarray(np.divide(first, second, out=found, where=second > 0))
