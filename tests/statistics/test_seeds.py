"""One number per training."""

import math

import numpy as np
import pytest

from heedful.statistics.intervals import central
from heedful.statistics.seeds import extent


def test_the_extent_of_seeds_leaves_none_outside() -> None:
    found = extent([0.2, 0.5, math.nan, 0.1])
    assert (found.value, found.low, found.high, found.n) == (0.5, 0.1, 0.5, 4)


def test_values_drawn_by_chance_have_their_central_part() -> None:
    found = central(np.arange(1001.0))
    assert (found.value, found.low, found.high, found.n) == (500.0, 25.0, 975.0, 1001)
    assert found.value == pytest.approx(np.arange(1001).mean())
