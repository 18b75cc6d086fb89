"""The load on the live page, for a moment: what it counts is right, and what it writes stays."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks lie beside the package, not in it

from benchmarks import explorer_load  # noqa: E402


@pytest.mark.slow
def test_a_moment_of_load_leaves_the_server_well() -> None:
    found = explorer_load.load(seconds=1.5, clients=12, warm_up=1.0)
    assert found["is_well"]
    assert not found["answers"].get("wrong")
    assert found["answers"]["explained"] + found["answers"]["decided"] > 5
    assert found["growth"] < 1.2  # of a moment; the minute has the limit
    assert found["milliseconds"]["decided"]["p50"] > 0


def test_a_wrong_answer_is_seen() -> None:
    wanted = {"attention": [0.25, 0.75], "text": None}
    assert explorer_load.is_right(
        "/api/decide", b'{"attention": [0.25, 0.75], "text": null}', wanted
    )
    assert not explorer_load.is_right(
        "/api/decide", b'{"attention": [0.26, 0.74], "text": null}', wanted
    )
    assert not explorer_load.is_right("/api/decide", b'{"attention": [0.25, 0.75]}', wanted)
    half = b'data: {"steps": 3, "entry": 1}\n\n'
    assert not explorer_load.is_right("/api/explain", half, {"steps": 3, "entry": 1})
    found = {"answers": {"wrong": 1}, "growth": 1.0, "is_well": True}
    assert not explorer_load.is_kept(found)
    assert not explorer_load.is_kept(found | {"answers": {}, "growth": 1.06})
    assert explorer_load.is_kept(found | {"answers": {}})


def test_the_page_of_numbers_holds_the_section() -> None:
    assert explorer_load.PAGE.read_text().endswith(explorer_load.section())
