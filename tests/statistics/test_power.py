"""How much more would decide what is undecided."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm, t

from heedful.statistics import Estimate, over_seeds
from heedful.statistics.power import needed
from heedful.statistics.shares import exact_share


def test_a_normal_interval_needs_the_square_of_its_reach() -> None:
    found = Estimate(1.0, -1.0, 3.0, 25, "percentile")
    spread = 2 * math.sqrt(25) / norm.ppf(0.975)
    exact = ((norm.ppf(0.975) + norm.ppf(0.8)) * spread) ** 2
    assert needed(found, 0.0) == math.ceil(exact) == 205


def test_seeds_are_counted_with_students_quantile() -> None:
    values = np.array([0.1, 0.5, -0.2, 0.4, 0.3])
    spread = values.std(ddof=1)
    away = values.mean()
    enough = [
        n
        for n in range(2, 200)
        if (t.ppf(0.975, n - 1) + norm.ppf(0.8)) * spread / math.sqrt(n) <= away
    ]
    assert needed(over_seeds(values), 0.0) == enough[0]


def test_the_half_that_faces_the_threshold_counts() -> None:
    lopsided = Estimate(1.0, -0.5, 1.1, 100, "bca")
    mirrored = Estimate(-1.0, -1.1, 0.5, 100, "bca")
    assert needed(lopsided, 0.0) == needed(mirrored, 0.0)
    wide = needed(Estimate(1.0, -0.5, 2.5, 100, "bca"), 0.0)
    assert needed(lopsided, 0.0) == wide


@pytest.mark.parametrize(
    "estimate",
    [
        Estimate(0.0, -1.0, 1.0, 5, "student-t"),  # at the threshold
        Estimate(0.5, math.nan, math.nan, 5, "none"),
        Estimate(0.5, 0.5, 0.5, 5, "constant"),
        Estimate(1e-6, -1.0, 1.0, 5, "student-t"),  # a million seeds are as good as never
    ],
)
def test_where_no_sample_would_decide_there_is_no_number(estimate: Estimate) -> None:
    assert needed(estimate, 0.0) is None


def test_a_larger_sample_of_that_size_decides_about_as_often_as_promised() -> None:
    draw = np.random.default_rng(0)
    n = needed(Estimate(0.5, 0.5 - 1.96 / math.sqrt(9), 0.5 + 1.96 / math.sqrt(9), 9, "z"), 0.0)
    assert n is not None
    decided = [over_seeds(draw.normal(0.5, 1.0, n)).low > 0 for _ in range(2_000)]
    assert np.mean(decided) == pytest.approx(0.8, abs=0.04)


@pytest.mark.parametrize(("hits", "n"), [(3, 3), (8, 10), (1, 10), (6, 8)])
def test_a_share_of_few_trainings_is_decided_by_counting(hits: int, n: int) -> None:
    found = exact_share(hits, n)

    def chance(size: int) -> float:
        """That the exact interval of so many more leaves out a half, at this share."""
        seen = [exact_share(k, size) for k in range(size + 1)]
        odds = binom.pmf(range(size + 1), size, hits / n)
        sides = [one.low > 0.5 if hits / n > 0.5 else one.high < 0.5 for one in seen]
        return float(odds @ np.array(sides))

    expected = next(size for size in range(1, 200) if chance(size) >= 0.8)
    assert needed(found, 0.5) == expected
    assert hits != n or expected == 6  # six of six leave out a half, five of five do not
