"""Where one more draw lies."""

import numpy as np
import pytest

from heedful.statistics import new_draw


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
