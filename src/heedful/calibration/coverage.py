"""Whether the intervals hold what they promise: coverage, false alarms and power, simulated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binom

from heedful.audits.erasure import efficiency
from heedful.audits.input_erasure import loss_avoided
from heedful.audits.substitution import against_chance
from heedful.audits.tables import Wide
from heedful.audits.violation import by_chance
from heedful.runs.randomness import numpy_generator
from heedful.statistics.estimates import Estimate, per_cent
from heedful.statistics.intervals import bootstrap, means, proportion, quantile, sign_test
from heedful.statistics.weighted import ratio_of

SIZES = (25, 50, 100, 200, 400)
Table = list[dict[str, Any]]
Rng = np.random.Generator


def _names(n: int) -> list[str]:
    return [f"document {index}" for index in range(n)]


def _mean(rng: Rng, n: int, times: int, draw: Callable[[Rng, Any], np.ndarray]) -> list[Estimate]:
    return means(draw(rng, (n, times)), _names(n))


def _flips(rng: Rng, n: int, times: int, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Which documents two rankings flip; a document is easy for both or for neither."""
    ease = rng.random((n, times))
    first, second = (ease + rng.normal(0, 0.2, (n, times)) < 0.5 + s for s in (shift, 0.0))
    return first, second


def _paired(first: np.ndarray, second: np.ndarray) -> list[Estimate]:
    """`intervals.paired` of every column, all from one resampling."""
    difference = first.astype(np.float64) - second
    return means(difference, _names(len(first)), least=-1, most=1, is_difference=True)


def _quantile(rng: Rng, n: int, times: int, q: float) -> list[Estimate]:
    return [quantile(rng.exponential(1, n), q) for _ in range(4 * times)]


def _rare(rng: Rng, n: int, times: int, most: float) -> list[Estimate]:
    """Values of which 97 % are 0 and the others anywhere up to 1."""
    values = np.where(rng.random((n, 4 * times)) < 0.03, rng.random((n, 4 * times)), 0.0)
    return means(values, _names(n), least=0, most=most)


def _unlike(rng: Rng, shape: Any) -> np.ndarray:
    """The difference of two lognormal numbers of the same document."""
    common = rng.normal(size=shape)
    one, other = (np.exp(common + rng.normal(0, 0.5, shape)) for _ in range(2))
    return np.asarray(one - other)


def _reliance(rng: Rng, n: int, times: int, reliance: float) -> list[Estimate]:
    """Changed decisions of two uneven classes, document by document, against chance."""
    found = []
    for _ in range(times):
        decision = (rng.random(n) < 0.4).astype(np.int64)
        most = 2 * reliance * 0.48
        changes = np.clip(rng.beta(2, 2, n) * most, 0, 1)
        found.append(against_chance(changes, decision, _names(n)))
    return found


def _efficiency(rng: Rng, n: int, times: int) -> list[Estimate]:
    """How far a ranking comes from random to greedy; truth (0.6 - 0.3) / (0.6 - 0.2)."""
    return _of_rankings(rng, n, times, {"random": 0.6, "attention": 0.3, "greedy": 0.2}, efficiency)


def _loss_avoided(rng: Rng, n: int, times: int) -> list[Estimate]:
    """Of the loss that random words leave; truth 1 - 0.3 / 0.6."""
    return _of_rankings(rng, n, times, {"random": 0.6, "attention": 0.3}, loss_avoided)


def _of_rankings(
    rng: Rng,
    n: int,
    times: int,
    truths: dict[str, float],
    measured: Callable[[Wide], dict[str, Estimate]],
) -> list[Estimate]:
    """What is measured of attention where a document is hard for every ranking or for none."""
    found = []
    for _ in range(times):
        hard = rng.beta(2, 2, n) * 2
        columns = {name: hard * rng.beta(3, 3 / mean - 3, n) for name, mean in truths.items()}
        found.append(measured(Wide(pd.DataFrame(columns, index=_names(n))))["attention"])
    return found


def _by_chance(rng: Rng, n: int, times: int) -> list[Estimate]:
    """Violations of claims that know nothing; truth 0.7 (1 - 0.6) + (1 - 0.7) 0.6."""
    found = []
    for _ in range(times):
        claim = np.where(rng.random(n) < 0.7, 1.0, -1.0)
        violated = (claim != np.where(rng.random(n) < 0.6, 1.0, -1.0)).astype(np.float64)
        tables = (Wide(pd.DataFrame({"one": x}, index=_names(n))) for x in (claim, violated))
        found.append(by_chance(*tables)["one"])
    return found


def _undefined(rng: Rng, n: int, times: int) -> list[Estimate]:
    """The share of documents that are violated, a fifth of which cannot be told."""
    violated = (rng.random((n, 4 * times)) < 0.3).astype(np.float64)
    return means(np.where(rng.random(violated.shape) < 0.2, np.nan, violated), _names(n))


def _loss(rng: Rng, shape: Any) -> np.ndarray:
    """Two losses of the same documents, one minus the other."""
    hard = rng.beta(1, 2, shape)
    return np.asarray(hard * (rng.beta(2, 2, shape) - rng.beta(2, 2, shape)))


def _pooled(rng: Rng, n: int, times: int) -> list[Estimate]:
    """Right words over all words, documents of different lengths (ratio of two sums)."""
    found = []
    for _ in range(times):
        words = rng.integers(1, 30, n).astype(np.float64)
        right = rng.binomial(words.astype(int), 0.7).astype(np.float64)
        found.append(bootstrap(ratio_of(right, words), _names(n), method="bca"))
    return found


def _skewed(rng: Rng, shape: Any) -> np.ndarray:
    return np.asarray(rng.beta(0.5, 2, shape))


CASES: dict[str, tuple[str, Callable[[Rng, int, int], list[Estimate]], float]] = {
    "mean of a skewed share": ("bootstrap-t", lambda r, n, t: _mean(r, n, 4 * t, _skewed), 0.2),
    "mean of an exponential": (
        "bootstrap-t",
        lambda r, n, t: _mean(r, n, 4 * t, lambda g, s: g.exponential(1, s)),
        1.0,
    ),
    "paired difference of flips": (
        "bootstrap-t",
        lambda r, n, t: _paired(*_flips(r, n, 4 * t, 0.0)),
        0.0,
    ),
    "mean of a Pareto(3)": (
        "bootstrap-t",
        lambda r, n, t: _mean(r, n, 4 * t, lambda g, s: g.pareto(3, s)),
        0.5,
    ),
    "paired difference of lognormals": (
        "bootstrap-t",
        lambda r, n, t: _mean(r, n, 4 * t, _unlike),
        0.0,
    ),
    f"mean, {per_cent(0.97)} zeros, range known": (
        "gamma",
        lambda r, n, t: _rare(r, n, t, 1.0),
        0.015,
    ),
    f"mean, {per_cent(0.97)} zeros, range unknown": (
        "gamma",
        lambda r, n, t: _rare(r, n, t, np.inf),
        0.015,
    ),
    "median": (
        "order statistics",
        lambda r, n, t: _quantile(r, n, t, 0.5),
        float(np.log(2)),
    ),
    "0.9-quantile": ("order statistics", lambda r, n, t: _quantile(r, n, t, 0.9), np.log(10)),
    "decisions changed, against chance": ("bca", lambda r, n, t: _reliance(r, n, t, 0.5), 0.5),
    "efficiency of a ranking": ("bca", _efficiency, 0.75),
    "loss avoided": ("bca", _loss_avoided, 0.5),
    "paired difference of losses": ("bootstrap-t", lambda r, n, t: _mean(r, n, 4 * t, _loss), 0.0),
    "mean Kendall τ": (
        "bootstrap-t",
        lambda r, n, t: _mean(r, n, 4 * t, lambda g, s: 2 * g.beta(6, 2, s) - 1),
        0.5,
    ),
    "violations, some undefined": ("wilson", _undefined, 0.3),
    "violations by chance": ("percentile", _by_chance, 0.46),
    "share of pooled units": ("bca", _pooled, 0.7),
}
"""Name of the interval, simulation, truth; what is quick to simulate gets four times as many."""
SHARES = (0.1, 0.4)
"""Shares of documents whose interval (Wilson's) has its coverage summed exactly."""


def coverage(times: int, seed: int = 0, sizes: tuple[int, ...] = SIZES) -> Table:
    """How often each 95 % interval holds the truth, by the number of documents.

    A size at which a quantity never has an interval has no row.
    """
    rows = []
    for share in SHARES:
        for n in sizes:
            hits = np.arange(n + 1)
            held = [proportion(k, n).low <= share <= proportion(k, n).high for k in hits.tolist()]
            exact = float(binom.pmf(hits, n, share) @ np.array(held))
            case = f"share of documents, {per_cent(share)} (exact)"
            rows.append({"quantity": case, "interval": "wilson", "n": n, "coverage": exact})
    for case, (method, simulate, truth) in CASES.items():
        for n in sizes:
            found = simulate(numpy_generator(seed, "coverage", case, n), n, times)
            if all(e.method == "none" for e in found):
                continue
            share = sum(e.low <= truth <= e.high for e in found) / len(found)
            rows.append({"quantity": case, "interval": method, "n": n, "coverage": share})
    return rows


def comparisons(times: int, seed: int = 0, sizes: tuple[int, ...] = SIZES) -> Table:
    """How often a paired comparison finds a difference: none there (false alarms), then some.

    `interval` counts intervals without 0, `exact test` p < 0.05 on the documents that differ.
    """
    rows = []
    for shift in (0.0, 0.05, 0.1, 0.2):
        for n in sizes:
            rng = numpy_generator(seed, "comparisons", n, int(100 * shift))
            first, second = _flips(rng, n, 4 * times, shift)
            by_interval = [e.side(0) != "straddles" for e in _paired(first, second)]
            wins, losses = (first & ~second).sum(0).tolist(), (second & ~first).sum(0).tolist()
            by_test = [sign_test(w, lost) < 0.05 for w, lost in zip(wins, losses, strict=True)]
            rows.append(
                {
                    "difference": shift,
                    "n": n,
                    "interval": float(np.mean(by_interval)),
                    "exact test": float(np.mean(by_test)),
                }
            )
    return rows
