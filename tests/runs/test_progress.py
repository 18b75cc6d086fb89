"""What a piece of work says of its progress."""

import time

import pytest

from heedful.runs import progress
from heedful.runs.progress import Ticker, ticking


def test_what_an_earlier_run_did_is_told_and_is_not_speed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ticker = Ticker("training", 1_000, "updates")
    ticker.skip(600)
    assert capsys.readouterr().err == "training goes on from 600 of 1,000 updates.\n"
    ticker.advance(20)
    assert ticker.line(10.0) == "training: 620/1,000 updates, 2 updates/s, 3 min left"


def test_a_fresh_start_and_a_silent_one_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Ticker("training", 10, "updates").skip(0)
    with ticking("training", 10, show=False) as silent:
        silent.skip(5)
        assert silent.done == 5
    assert capsys.readouterr().err == ""


def test_slow_work_is_told_by_the_time_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    ticker = Ticker("auditing", 320, "documents")
    assert ticker.line(30.0) == "auditing: 0/320 documents, 30 s so far"
    ticker.advance(5)
    assert ticker.line(60.0) == "auditing: 5/320 documents, 12 s a document, 63 min left"
    assert capsys.readouterr().err == ""


def test_work_that_takes_long_says_how_long_as_soon_as_something_is_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    ticker = Ticker("auditing", 320, "documents")
    clock[0] += 8
    ticker.advance(4)
    assert capsys.readouterr().err == "auditing: 4/320 documents, 2.0 s a document, 11 min left\n"
    clock[0] += 8
    ticker.advance(4)
    assert capsys.readouterr().err == ""  # not two lines within ten seconds


def test_a_line_is_said_while_nothing_gets_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SILENT_SECONDS", 0.05)
    with ticking("auditing", 10):
        time.sleep(0.5)
    assert "auditing: 0/10 documents, 0 s so far" in capsys.readouterr().err


def test_what_is_remarked_stands_behind_the_numbers_and_is_no_progress() -> None:
    ticker = Ticker("exchanged words", 200, "documents")
    ticker.remark("(64 altered texts read)")
    assert ticker.line(30.0) == (
        "exchanged words: 0/200 documents, 30 s so far (64 altered texts read)"
    )
