"""Correlations, slopes and the height between curves."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from heedful.statistics.association import slope, spearman, spearman_of_few

NAMES = [f"document {i}" for i in range(80)]


def test_spearman_is_scipys_and_its_interval_holds_it() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 6, 80).astype(float)
    y = x + rng.normal(0, 2, 80)
    found = spearman(x, y, NAMES)
    assert found.value == pytest.approx(spearmanr(x, y).statistic, rel=1e-9)
    assert found.low < found.value < found.high


def test_slope_is_least_squares_and_leaves_out_undefined() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=80)
    y = 3 * x + 1 + rng.normal(0, 0.1, 80)
    y[3] = np.nan
    known = ~np.isnan(y)
    found = slope(x, y, NAMES)
    assert found.value == pytest.approx(np.polyfit(x[known], y[known], 1)[0], rel=1e-9)
    assert found.n == 79


def test_without_spread_there_is_no_slope() -> None:
    assert np.isnan(slope(np.ones(80), np.arange(80.0), NAMES).value)


def test_a_correlation_of_few_points_says_how_little_it_tells() -> None:
    lengths, drops = [17.0, 31.0, 164.0, 234.0], [5.0, 3.9, 14.1, 13.4]
    found = spearman_of_few(lengths, drops)
    assert found.value == pytest.approx(spearmanr(lengths, drops).statistic)
    assert found.low < 0 < found.high < 1
    three = spearman_of_few([1, 2, 3], [1, 3, 2])
    assert np.isnan([three.low, three.high]).all()
    generator = np.random.default_rng(1)
    covered = 0
    truth = 6 / np.pi * np.arcsin(0.6 / 2)  # Spearman's of a normal pair correlated by 0.6
    for _ in range(400):
        x, e = generator.normal(size=(2, 12))
        one = spearman_of_few(x, 0.6 * x + 0.8 * e)
        covered += one.low <= truth <= one.high
    assert 0.91 <= covered / 400 <= 0.985


def test_ranks_that_agree_wholly_have_the_inner_end_of_the_next_smaller_correlation() -> None:
    order = np.arange(10.0)
    swapped = order.copy()
    swapped[[4, 5]] = swapped[[5, 4]]
    whole, near, turned = (spearman_of_few(order, y) for y in (order**3, swapped, -order))
    assert (whole.value, whole.high) == (1.0, 1.0)
    assert near.value == pytest.approx(1 - 12 / 990)
    assert whole.low == pytest.approx(near.low)
    assert (turned.value, turned.low, turned.high) == (-1.0, -1.0, pytest.approx(-near.low))
    five = spearman_of_few(range(5), range(5))
    assert five.low < 0 < five.high == 1  # one order in 120 is no rarity among five
    assert np.isnan(spearman_of_few(np.ones(6), order[:6]).low)
