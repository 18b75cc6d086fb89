"""Concordance: closed forms, and what it punishes that correlation does not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from heedful.statistics.concordance import ccc


def test_it_is_the_closed_form():
    x, y = [1.0, 2.0, 4.0], [1.0, 3.0, 3.0]
    # Deviations (-4, -1, 5)/3 and (-4, 2, 2)/3: variances 14/9 and 8/9, covariance 8/9.
    assert ccc(x, y) == pytest.approx(2 * (8 / 9) / (14 / 9 + 8 / 9))


def test_a_shift_and_a_scale_cost_what_they_should():
    x = np.array([-1.0, 1.0])  # mean 0, variance 1
    assert ccc(x, x + 2) == pytest.approx(2 / (1 + 1 + 4))
    assert ccc(x, 3 * x) == pytest.approx(6 / (1 + 9))
    assert ccc(x, -x) == -1


def test_it_is_symmetric_and_never_above_correlation():
    random = np.random.default_rng(0)
    x, y = random.normal(size=50), random.normal(size=50)
    y = 0.5 * x + y + 1
    assert ccc(x, y) == pytest.approx(ccc(y, x))
    assert abs(ccc(x, y)) <= abs(np.corrcoef(x, y)[0, 1])


def test_constants_and_nothing():
    assert ccc([1, 1, 1], [1, 2, 3]) == 0
    assert math.isnan(ccc([1, 1], [1, 1]))
    assert math.isnan(ccc([], []))
    with pytest.raises(ValueError, match="one length"):
        ccc([1, 2], [1, 2, 3])
