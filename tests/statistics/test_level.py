"""Intervals of looks at growing data hold the truth however the stop is chosen."""

import numpy as np
import pytest

from heedful.audits.effort import Effort
from heedful.statistics.intervals import means, proportion
from heedful.statistics.level import among_looks, deviations, tails

LOOKS = Effort("normal").looks(100_000)
SIMULATED = 2_000


def drawn(kind: str) -> np.ndarray:
    """Values of mean 0: paired differences as audits have them."""
    generator = np.random.default_rng(1)
    shape = LOOKS[-1], SIMULATED
    if kind == "skewed":
        return generator.exponential(1.0, shape) - 1
    if kind == "mostly 0":  # few documents differ at all
        return np.where(generator.random(shape) < 0.3, generator.normal(0, 1, shape), 0.0)
    return generator.normal(0, 1, shape)


def covered(values: np.ndarray, looks: int) -> float:
    """How often 0 lies in the interval of the look at which someone stops who wants it not to."""
    names = [f"document {row}" for row in range(len(values))]
    held = np.ones(values.shape[1], dtype=bool)
    for count in LOOKS:
        with among_looks(looks):
            found = means(values[:count], names[:count])
        held &= [one.low <= 0 <= one.high for one in found]
    return float(held.mean())


@pytest.mark.parametrize("kind", ["normal", "skewed", "mostly 0"])
def test_who_stops_as_soon_as_it_suits_is_wrong_once_in_twenty_times_at_most(kind: str) -> None:
    values = drawn(kind)
    error = 2 * np.sqrt(0.05 * 0.95 / SIMULATED)
    assert covered(values, len(LOOKS)) >= 0.95 - error
    assert covered(values, 1) < 0.93  # without the looks in the intervals it would not hold


def test_one_look_is_95_per_cent_and_more_share_the_rest() -> None:
    assert tails().tolist() == [0.025, 0.975]
    assert deviations() == pytest.approx(1.959964)
    plain = proportion(30, 60)
    with among_looks(4):
        assert tails()[0] == 0.05 / 8
        wide = proportion(30, 60)
    assert wide.low < plain.low < plain.high < wide.high
    assert proportion(30, 60) == plain
