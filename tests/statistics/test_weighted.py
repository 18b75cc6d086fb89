"""Weighted statistics are those of the resamples they stand for, written out."""

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

from heedful.statistics.weighted import quantile_of, rank_correlation, ratio_of, weight_below

DRAW = np.random.default_rng(0)
X = np.round(DRAW.normal(size=12), 1)
X[3] = X[7]  # a tie
Y = np.round(X + DRAW.normal(size=12), 1)
WEIGHTS = DRAW.integers(0, 4, (20, 12)).astype(np.float64)


def resample(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return np.repeat(values, weights.astype(int))


def test_spearman_is_scipys_in_every_resample() -> None:
    found = rank_correlation(X, Y)(WEIGHTS)
    for value, weights in zip(found, WEIGHTS, strict=True):
        expected = spearmanr(resample(X, weights), resample(Y, weights)).statistic
        assert value == pytest.approx(expected, abs=1e-12)


def test_a_correlation_without_spread_is_undefined() -> None:
    assert np.isnan(rank_correlation(np.ones(12), Y)(WEIGHTS)).all()
    one = np.zeros((1, 12))
    one[0, 4] = 3
    assert np.isnan(rank_correlation(X, Y)(one)).all()


def test_the_weight_below_is_the_rank_less_a_half() -> None:
    below = weight_below(X)(np.ones((1, 12)))[0]
    assert np.array_equal(below, rankdata(X) - 0.5)


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_a_quantile_is_that_of_the_resample(q: float) -> None:
    found = quantile_of(X, q)(WEIGHTS)
    for value, weights in zip(found, WEIGHTS, strict=True):
        drawn = resample(X, weights)
        expected = np.quantile(drawn, q, method="averaged_inverted_cdf")
        assert value == pytest.approx(expected, abs=1e-12)
    assert quantile_of(X, 0.5)(np.ones((1, 12)))[0] == pytest.approx(np.median(X))


def test_a_quantile_of_nothing_is_undefined() -> None:
    assert np.isnan(quantile_of([], 0.5)(np.zeros((2, 0)))).all()
    assert np.isnan(quantile_of(X, 0.5)(np.zeros((1, 12)))).all()


def test_a_ratio_is_that_of_the_sums_of_the_resample() -> None:
    found = ratio_of(X, Y**2)(WEIGHTS)
    for value, weights in zip(found, WEIGHTS, strict=True):
        assert value == pytest.approx(resample(X, weights).sum() / resample(Y**2, weights).sum())
    assert np.isnan(ratio_of(X, np.zeros(12))(WEIGHTS)).all()
