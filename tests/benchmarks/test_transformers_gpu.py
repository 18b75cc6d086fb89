"""The script for the GPU measures what it says, on sizes that any machine can run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # the benchmarks lie beside the package

from benchmarks.transformers_gpu import FUSED, SIZES, cut, measured, text_of

TINY = SIZES["tiny"]._replace(words=6, longest=12, layers=2)


@pytest.mark.slow
def test_every_case_is_measured_and_parity_holds_in_every_precision() -> None:
    cases = {case["case"]: case for case in measured(TINY, "cpu", 60.0)}
    assert next(iter(cases)) == "begin"
    assert list(cases)[-1] == "end"
    for precision in ("float32", "bfloat16", "float16"):
        assert cases[f"parity, {precision}"]["holds"]
        assert cases[f"parity, {precision}"]["ours against eager"] == 0
    assert sum(case.startswith("14 tokens") for case in cases) == len(FUSED)
    assert cases["6 erasures at the pooled row, float32"]["times faster"] > 0
    assert "trace, 3 texts of 8 tokens, float32" in cases


def test_no_case_begins_after_the_time_is_up() -> None:
    cases = [case["case"] for case in measured(TINY, "cpu", 0.0)]
    assert cases == ["begin", "parity, float32", "stopped"]


def test_random_texts_are_the_same_everywhere() -> None:
    text = text_of(4)
    assert text == text_of(4)
    assert [text[start:stop] for start, stop in cut(text).spans] == text.split()
