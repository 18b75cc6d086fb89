"""Groups lie as far apart as scipy, sklearn and hand say."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from heedful.statistics.separation import (
    auc,
    mean_ratio,
    median_ratio,
    standardised_gap,
)

DRAW = np.random.default_rng(0)
FIRST, SECOND = np.round(DRAW.normal(0.5, 1, 60), 1), np.round(DRAW.normal(0, 1, 80), 1)
NAMES = [f"w{i}" for i in range(140)]


def test_auc_is_that_of_sklearn_with_ties_and_covers_itself() -> None:
    found = auc(FIRST, SECOND, NAMES)
    labels = np.arange(140) < 60
    assert found.value == pytest.approx(roc_auc_score(labels, np.concatenate([FIRST, SECOND])))
    assert found.low < found.value < found.high
    assert auc([2, 3], [0, 1], list("abcd")).value == 1
    assert auc([1, 1], [1, 1], list("abcd")).value == 0.5
    assert np.isnan(auc([], [1, 2], list("ab")).value)
    with pytest.raises(ValueError, match="one name"):
        auc([1], [2], ["a"])


def test_gaps_and_ratios_by_hand() -> None:
    pooled = np.sqrt((FIRST.var(ddof=1) * 59 + SECOND.var(ddof=1) * 79) / 138)
    found = standardised_gap(FIRST, SECOND, NAMES)
    assert found.value == pytest.approx((FIRST.mean() - SECOND.mean()) / pooled)
    sizes = np.abs(FIRST) + 1, np.abs(SECOND) + 1
    ratio = median_ratio(*sizes, NAMES)
    assert ratio.value == pytest.approx(np.median(sizes[0]) / np.median(sizes[1]))
    same = mean_ratio(sizes[0], 2 * sizes[0], NAMES[:60])
    assert same.value == same.low == same.high == 0.5
