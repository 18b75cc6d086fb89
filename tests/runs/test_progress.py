"""What a piece of work says of its progress."""

import pytest

from heedful.runs.progress import Ticker, ticking


def test_what_an_earlier_run_did_is_told_and_is_not_speed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ticker = Ticker("training", 1_000, "updates")
    ticker.skip(600)
    assert capsys.readouterr().err == "training goes on from 600 of 1,000 updates.\n"
    ticker.advance(20)
    assert ticker.line(10.0) == "training: 620/1,000 updates, 2 updates/s, 190 s left"


def test_a_fresh_start_and_a_silent_one_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Ticker("training", 10, "updates").skip(0)
    with ticking("training", 10, show=False) as silent:
        silent.skip(5)
        assert silent.done == 5
    assert capsys.readouterr().err == ""
