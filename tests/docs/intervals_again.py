"""Intervals found again by scipy and by hand: nothing of `heedful.statistics` is called here.

Only the draws are the same, a hash of (seed, name, replicate), which is written down here once
more; what is made of them is computed from the definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

REPLICATES = 1000
NAN = float("nan")
STEP, FIRST, SECOND = (
    np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


_LOOKS: ContextVar[int] = ContextVar("looks that the 5 % are shared out among", default=1)


@contextmanager
def among(looks: int) -> Iterator[None]:
    """Inside, intervals are those of one of so many looks at growing data."""
    token = _LOOKS.set(looks)
    try:
        yield
    finally:
        _LOOKS.reset(token)


def tails() -> tuple[float, float]:
    """What lies below the lower and below the upper end of an interval: 2.5 and 97.5 % at once."""
    outside = 0.025 / _LOOKS.get()
    return outside, 1 - outside


class Told(NamedTuple):
    """A number and the ends of its 95 % interval, nan where there is none."""

    value: float
    low: float = NAN
    high: float = NAN
    n: int = 0

    def times(self, factor: float = 100) -> Told:
        """The same number of another unit, per cent unless told."""
        low, high = sorted((factor * self.low, factor * self.high))
        return Told(factor * self.value, low, high, self.n)

    def side(self, border: float) -> str:
        """Where the whole interval lies."""
        return "above" if self.low > border else "below" if self.high < border else "straddles"


class Near(NamedTuple):
    """A number that is known up to so much."""

    value: float
    off: float


def hashed(names: Sequence[str], parts: Sequence[str | int], *shape: int) -> np.ndarray:
    """64 random bits for every (seed 0, parts, name) and index: SplitMix64 of a BLAKE2b key."""
    keys = []
    for name in names:
        text = b"i0;"
        for part in (*parts, name):
            raw = str(part).encode()
            text += b"i%d;" % part if isinstance(part, int) else b"s%d:%s" % (len(raw), raw)
        keys.append(int.from_bytes(blake2b(text, digest_size=8).digest(), "little"))
    state = np.array(keys, dtype=np.uint64)
    for size in shape:
        state = state[..., None] + np.arange(1, size + 1, dtype=np.uint64) * STEP
        state = (state ^ (state >> np.uint64(30))) * FIRST
        state = (state ^ (state >> np.uint64(27))) * SECOND
        state = state ^ (state >> np.uint64(31))
    return state


@lru_cache(maxsize=8)
def _drawn(names: tuple[str, ...]) -> np.ndarray:
    noise = (hashed(names, ("resampling",), REPLICATES) >> np.uint64(11)) * 2.0**-53
    return np.searchsorted(stats.poisson.cdf(np.arange(18), 1), noise, side="right").T


def drawn(names: Sequence[str]) -> np.ndarray:
    """How often each replicate draws each name, [replicate name]: Poisson counts of mean one."""
    return _drawn(tuple(str(name) for name in names))


def orders(name: str, units: int, count: int = 100, at_once: int = 20) -> np.ndarray:
    """The orders that attention to one text's units is shuffled into, [draw unit]."""
    found = []
    for start in range(0, count, at_once):
        noise = hashed([name], ("permuted attention", start), at_once, units)[0] >> np.uint64(1)
        found.append(np.argsort(noise >> np.uint64(20), axis=-1, kind="stable"))
    return np.concatenate(found)


def share(hits: int, n: int) -> Told:
    """A share with Wilson's interval."""
    if not n:
        return Told(NAN)
    ends = stats.binomtest(int(hits), n).proportion_ci(1 - 2 * tails()[0], method="wilson")
    return Told(hits / n, ends.low, ends.high, n)


def average(
    values: pd.Series[Any], least: float = 0, most: float = 1, is_gap: bool = False
) -> Told:
    """The mean of one number per instance, as docs/statistics say: the wider of two intervals.

    Student's and the bootstrap-t; Wilson's where all are 0 or 1 (unless they are differences); that
    of rare events where few differ from the rest; none of fewer than 30 that are all equal.
    """
    values = values[values.notna()].astype(float)
    x, n = values.to_numpy(), len(values)
    if n < 2:
        return Told(float(x.mean()) if n else NAN, n=n)
    if not is_gap and np.isin(x, (0, 1)).all():
        return _cut(share(int(x.sum()), n), least, most)
    kinds, counts = np.unique(x.round(12), return_counts=True)
    if len(kinds) == 1:
        return Told(x[0], *((x[0], x[0]) if n >= 30 else (NAN, NAN)), n)
    rare = _rare(kinds, counts, least, most) if len(kinds) <= 12 else None
    return _cut(rare or _studentised(x, drawn(list(values.index))), least, most)


def gap(first: pd.Series[Any], second: pd.Series[Any], most: float) -> Told:
    """The mean difference of two numbers per instance."""
    return average(first - second, -most, most, is_gap=True)


def _studentised(x: np.ndarray, weights: np.ndarray) -> Told:
    n, centre, error = len(x), x.mean(), x.std(ddof=1) / np.sqrt(len(x))
    low, high = stats.t.interval(1 - 2 * tails()[0], n - 1, centre, error)
    size = weights.sum(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = weights @ x / size
        spread = (weights * (x - means[:, None]) ** 2).sum(1) / (size - 1)
        spread[spread <= 1e-12 * (weights @ x**2) / size] = 0
        t = (means - centre) / np.sqrt(spread / size)
    t = np.where(np.isnan(t), 0.0, t)
    right, left = np.quantile(t, tails())
    if np.isfinite([left, right]).all():
        low, high = min(low, centre - left * error), max(high, centre - right * error)
    return Told(float(centre), float(low), float(high), n)


def _rare(kinds: np.ndarray, counts: np.ndarray, least: float, most: float) -> Told | None:
    """At most ten events among equal values: gamma intervals of what they add (Fay and Feuer)."""
    n = int(counts.sum())
    middle = int(np.flatnonzero(counts.cumsum() > n // 2)[0])
    events = n - int(counts[middle])
    if events > 10 or 2 * events >= n:
        return None
    away = np.repeat(kinds, counts) - kinds[middle]
    parts = []
    for steps, room in (
        (away[away > 0], most - kinds[middle]),
        (-away[away < 0], kinds[middle] - least),
    ):
        largest = room if np.isfinite(room) else 2 * np.abs(away).max()
        low, total = 0.0, float(steps.sum())
        if total:
            each = (steps**2).sum() / (2 * total)
            low = each * stats.chi2.ppf(tails()[0], total / each)
        more = np.append(steps, largest)
        each = (more**2).sum() / (2 * more.sum()) if more.sum() else 0.0
        high = each * stats.chi2.ppf(tails()[1], more.sum() / each) if each else 0.0
        parts.append((total, low, high))
    (up, up_low, up_high), (down, down_low, down_high) = parts
    below, above = np.hypot(up - up_low, down_high - down), np.hypot(up_high - up, down - down_low)
    ends = (kinds[middle] + (up - down + end) / n for end in (0, -below, above))
    return Told(*(float(end) for end in ends), n)


def _cut(told: Told, least: float, most: float) -> Told:
    ends = (end if np.isnan(end) else min(max(end, least), most) for end in (told.low, told.high))
    return Told(told.value, *ends, told.n)


Statistic = Callable[[np.ndarray], np.ndarray]
"""From counts of instances, [replicate instance], to a number for each replicate."""


def percentile(statistic: Statistic, names: Sequence[str]) -> Told:
    """A number with the central 95 % of what it is in each replicate."""
    return resampled(statistic, names, is_corrected=False)


def resampled(statistic: Statistic, names: Sequence[str], is_corrected: bool = True) -> Told:
    """A number with its BCa interval (Efron and Tibshirani 1993, eq. 14.9 to 14.15)."""
    n = len(names)
    value = float(statistic(np.ones((1, n)))[0])
    found = statistic(drawn(names))
    known = found[~np.isnan(found)]
    if np.isnan(value) or n < 2 or len(known) < 0.95 * REPLICATES:
        return Told(value, n=n)
    ends = np.array(tails())
    bias = stats.norm.ppf((np.sum(known < value) + np.sum(known == value) / 2) / len(known))
    if is_corrected and np.isfinite(bias):
        assert n <= 200, "more are left out in groups"
        without = statistic(np.ones((n, n)) - np.eye(n))
        pull = without[~np.isnan(without)].mean() - without[~np.isnan(without)]
        fast = (pull**3).sum() / (6 * (pull**2).sum() ** 1.5) if pull.any() else 0.0
        z = bias + stats.norm.ppf(ends)
        ends = stats.norm.cdf(bias + z / (1 - fast * z))
    low, high = np.quantile(known, ends)
    return Told(value, low, high, n) if n >= 30 or low < high else Told(value, n=n)


def rank_correlation(x: np.ndarray, y: np.ndarray, names: Sequence[str]) -> Told:
    """Spearman's correlation; each replicate is written out and ranked anew."""

    def statistic(weights: np.ndarray) -> np.ndarray:
        found = []
        for row in weights.astype(int):
            pair = [stats.rankdata(np.repeat(column, row)) for column in (x, y)]
            with np.errstate(divide="ignore", invalid="ignore"):
                found.append(np.corrcoef(pair)[0, 1])
        return np.array(found)

    return percentile(statistic, names)


def weighted_mean(values: np.ndarray) -> Statistic:
    """The mean of the values that are known, under weights."""
    known, filled = (~np.isnan(values)).astype(float), np.nan_to_num(values)

    def mean(weights: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((weights @ filled) / (weights @ known))

    return mean


def leading(held: np.ndarray) -> Statistic:
    """How far the largest mean of columns lies above the mean of the other columns."""

    def lead(weights: np.ndarray) -> np.ndarray:
        means = np.stack([weighted_mean(column)(weights) for column in held.T], 1)
        best = means.max(1)
        return np.asarray(best - (means.sum(1) - best) / max(means.shape[1] - 1, 1))

    return lead


def leads_by_luck(held: np.ndarray, names: Sequence[str], kind: str) -> np.ndarray:
    """The same 200 times, the columns of every text in a random order."""
    noise = (hashed(names, ("heads", kind), 200, held.shape[1]) >> np.uint64(11)) * 2.0**-53
    found = []
    for number in range(200):
        mixed = np.take_along_axis(held, noise[:, number].argsort(1), 1)
        found.append(leading(mixed)(np.ones((1, len(held))))[0])
    return np.array(found)


def macro_f1(decided: np.ndarray, gold: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The mean over classes of 2 hits / (decided + true), for every weighting, [replicate]."""
    found = []
    for label in (0, 1):
        hits = weights @ ((decided == label) & (gold == label))
        either = weights @ (decided == label) + weights @ (gold == label)
        with np.errstate(divide="ignore", invalid="ignore"):
            found.append(np.where(either > 0, 2 * hits / either, np.nan))
    both = np.array(found)
    known = ~np.isnan(both)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(known, both, 0).sum(0) / known.sum(0)
