"""How many documents are looked at, and why no more."""

import math
import time

import pytest

from heedful.audits.effort import ALL, MOST_ASKED, SETTLED, TIME_UP, Effort, is_known
from heedful.errors import InputError
from heedful.statistics.estimates import Estimate


def test_looks_double_and_end_with_what_there_is() -> None:
    assert Effort("normal").looks(100_000) == (50, 100, 200, 400)
    assert Effort("normal").looks(260) == (50, 100, 260)  # no look that adds little
    assert Effort("normal").looks(60) == (60,)
    assert Effort("quick").looks(30) == (30,)
    assert Effort("exhaustive").looks(100_000) == (100_000,)


def test_a_look_that_settles_it_is_the_last_and_says_so() -> None:
    effort = Effort("normal")
    looks = effort.looks(1000)
    assert effort.stop(looks, 0, 1000, settled=False, seconds=1) is None
    stop = effort.stop(looks, 1, 1000, settled=True, seconds=1)
    assert stop is not None
    assert stop == (100, 1000, SETTLED, 4)
    assert stop.sentence().startswith("100 of 1,000 documents, drawn by key, were looked at: what")
    last = effort.stop(looks, 3, 1000, settled=False, seconds=1)
    assert last is not None
    assert last.why == MOST_ASKED
    assert effort.stop((60,), 0, 60, settled=False, seconds=1) == (60, 60, ALL, 1)


def test_no_look_is_begun_that_would_end_too_late() -> None:
    effort = Effort("normal", minutes=1, started=time.monotonic() - 30)
    looks = effort.looks(1000)
    assert effort.stop(looks, 0, 1000, settled=False, seconds=20) is None  # 20 s more: 50 of 60
    late = effort.stop(looks, 0, 1000, settled=False, seconds=40)
    assert late is not None
    assert late.why == TIME_UP
    assert not effort.is_over
    assert Effort("normal", minutes=0.1, started=time.monotonic() - 30).is_over


@pytest.mark.parametrize("minutes", [0, -1, math.inf, math.nan])
def test_minutes_that_are_none_are_refused(minutes: float) -> None:
    with pytest.raises(InputError, match="--minutes must be a number above 0"):
        Effort("normal", minutes)


def test_an_unknown_effort_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"norml.*normal"):
        Effort("norml")  # type: ignore[arg-type]


def test_what_is_known_lies_on_one_side_or_is_short_or_has_no_interval() -> None:
    assert is_known(Estimate(0.3, 0.1, 0.5, 20, "student-t"))
    assert not is_known(Estimate(0.1, -0.1, 0.3, 20, "student-t"))
    assert is_known(Estimate(0.01, -0.03, 0.05, 20, "student-t"))
    assert not is_known(Estimate(0.5, 0.3, 0.7, 20, "student-t"), border=0.5)
    assert is_known(Estimate(0.5, math.nan, math.nan, 1, "none"))
    assert is_known(None)
