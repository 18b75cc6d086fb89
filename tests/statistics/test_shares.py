"""Exact intervals of shares, and differences of two."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from heedful.statistics.power import needed
from heedful.statistics.shares import apart, decided_share, exact_share, to_the_power


@pytest.mark.slow
@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_scipy_s_exact_one(counts: tuple[int, int]) -> None:
    hits, n = counts
    expected = binomtest(hits, n).proportion_ci(method="exact")
    found = exact_share(hits, n)
    assert found.low == pytest.approx(expected.low, abs=1e-9)
    assert found.high == pytest.approx(expected.high, abs=1e-9)


def test_twenty_of_twenty_leave_room_for_one_in_six() -> None:
    found = exact_share(20, 20)
    assert found.low == pytest.approx(0.025 ** (1 / 20))
    assert binom.pmf(20, 20, found.low) == pytest.approx(0.025)
    assert found.high == 1
    assert math.isnan(exact_share(0, 0).value)
    with pytest.raises(ValueError, match="between 0 and n"):
        exact_share(3, 2)


def test_a_difference_covers_what_both_intervals_allow() -> None:
    one, two = exact_share(18, 20), exact_share(2, 20)
    found = apart(one, two)
    assert found.value == pytest.approx(0.8)
    assert one.low - two.high < found.low < found.value < found.high < one.high - two.low
    turned = apart(two, one)
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))
    assert apart(exact_share(5, 20), exact_share(5, 20)).low < 0


def test_a_power_keeps_its_interval() -> None:
    found = to_the_power(exact_share(10, 20), 3)
    assert found.value == pytest.approx(1 / 8)
    assert found.low == pytest.approx(exact_share(10, 20).low ** 3)


def test_a_share_of_all_cases_runs_from_the_certain_to_the_possible() -> None:
    found = decided_share(certain=2, likely=3, possible=5, n=8)
    assert (found.value, found.low, found.high, found.n) == (3 / 8, 2 / 8, 5 / 8, 8)
    assert needed(found, 0.5) is None  # there are no more cases to be had
