"""The height of one curve over another, by hand."""

import numpy as np
import pytest

from heedful.studies.faithful.measures import mean_gap


def test_the_height_between_parallel_lines_is_their_distance() -> None:
    x, other = np.array([[0.0, 1.0, 2.0]]), np.array([[0.5, 3.0]])
    assert mean_gap(x, x + 0.25, other, other)[0] == pytest.approx(0.25)


def test_points_may_come_in_any_order_and_only_the_common_range_counts() -> None:
    x, y = np.array([[2.0, 0.0, 1.0]]), np.array([[4.0, 0.0, 1.0]])
    other_x, other_y = np.array([[1.0, 2.0]]), np.array([[0.0, 0.0]])
    assert mean_gap(x, y, other_x, other_y)[0] == pytest.approx(2.5)


def test_curves_without_a_common_range_have_no_height() -> None:
    assert np.isnan(mean_gap(*(np.array([[a, b]]) for a, b in ((0, 1), (0, 1), (2, 3), (0, 0))))[0])
