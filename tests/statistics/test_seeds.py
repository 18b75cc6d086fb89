"""One number per training."""

import math

import numpy as np
import pytest

from heedful.statistics.intervals import central
from heedful.statistics.seeds import extent, new_draw


def test_the_extent_of_seeds_leaves_none_outside() -> None:
    found = extent([0.2, 0.5, math.nan, 0.1])
    assert (found.value, found.low, found.high, found.n) == (0.5, 0.1, 0.5, 4)


def test_values_drawn_by_chance_have_their_central_part() -> None:
    found = central(np.arange(1001.0))
    assert (found.value, found.low, found.high, found.n) == (500.0, 25.0, 975.0, 1001)
    assert found.value == pytest.approx(np.arange(1001).mean())


def test_one_more_draw_lies_in_its_prediction_interval_nineteen_times_in_twenty() -> None:
    generator = np.random.default_rng(0)
    inside = 0
    for _ in range(2_000):
        *seen, more = generator.normal(3, 2, 7)
        found = new_draw(seen)
        inside += found.low <= more <= found.high
    assert inside / 2_000 == pytest.approx(0.95, abs=0.015)
    assert new_draw([1.0, 2.0, 3.0]).value == 2
    assert np.isnan([new_draw([1.0]).low, new_draw([1.0, 1.0]).high]).all()
