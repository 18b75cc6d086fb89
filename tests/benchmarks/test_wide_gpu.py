"""The ways of a wide layer that are timed compute the same; the GPU itself is not needed here."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # the benchmarks lie beside the package

from benchmarks import wide_gpu


def test_what_is_timed_is_the_librarys_layer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = "--device cpu --models 2 --batch 3 --dim 8 --units 1 5"
    monkeypatch.setattr(sys, "argv", ["wide_gpu", *sizes.split()])
    assert wide_gpu.main() == 0
    found = json.loads(capsys.readouterr().out)
    assert not found["kernels"]
    assert [row["units"] for row in found["lengths"]] == [1, 5]
    for row in found["lengths"]:
        assert row["ms"].keys() == row["distance"].keys() == {"library", "loop"}
        assert row["distance"]["loop"] < 1e-6
        assert min(row["ms"].values()) > 0
