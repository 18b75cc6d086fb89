"""The LSTM's kernels compute what the loop computes, values and gradients; no GPU is needed.

Triton interprets them on the CPU in full precision. It decides so when it is imported, hence the
process of its own: run as a script, this file prints what the kernels answer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.models.recurrent import _kernel, in_steps
from heedful.models.recurrent_walk import Walk, _answers, _distance, works

CASES = {
    "narrow": [(20, 33, 2), (50, 20, 7), (64, 1, 1)],
    "wide": [(96, 1, 7), (96, 16, 2), (128, 33, 2), (256, 20, 1)],
}
"""Dim, batch and units of two models."""
MODELS = 2


def layer(dim: int, batch: int, units: int) -> list[Tensor]:
    draw = torch.Generator().manual_seed(dim + batch + units)
    return [
        torch.randn(MODELS, batch, units, 4 * dim, generator=draw),
        torch.randn(MODELS, dim, 4 * dim, generator=draw) / dim**0.5,
        torch.randn(2, MODELS, batch, dim, generator=draw) / 2,
    ]


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    if find_spec("triton") is None and sys.platform != "linux":
        pytest.skip("there is no triton for this system to interpret the kernels with")
    source = str(Path(__file__).parents[2] / "src")
    told = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": source},
        check=True, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(told.stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [f"{kind} {sizes}" for kind, cases in CASES.items() for sizes in cases]
)
def test_kernels_are_the_loop(answers: dict[str, Any], case: str) -> None:
    states, last, of_gates, of_hidden, of_start = answers["distances"][case]
    assert max(states, last, of_gates, of_hidden, of_start) < 1e-6


@pytest.mark.slow
def test_whole_tiles_between_the_narrow_and_the_widest_fit(answers: dict[str, Any]) -> None:
    assert answers["fits"] == [96, 128, 256, 320, 512]


def test_kernels_that_differ_from_the_loop_or_fail_do_not_work() -> None:
    def forward(*given: Tensor) -> None:
        with torch.no_grad():
            gates, hidden, start, states, cells, opened = given
            states.copy_(in_steps(gates, hidden, start)[0])
            cells.zero_(), opened.zero_()

    def fails(*given: Tensor) -> None:
        raise RuntimeError

    def anything(*given: Tensor) -> None:
        given[-1].zero_(), given[-2].zero_()

    assert not works(Walk(forward, anything, lambda dim: True, 1e-2), in_steps, 8, "cpu")
    assert not works(Walk(fails, anything, lambda dim: True, 1e9), in_steps, 8, "cpu")
    assert works(Walk(forward, anything, lambda dim: True, 1e9), in_steps, 8, "cpu")
    assert not works(Walk(forward, anything, lambda dim: dim < 8, 1e9), in_steps, 8, "cpu")


def test_a_layer_without_a_kernel_is_a_warning_and_not_a_silence() -> None:
    _kernel.cache_clear()
    with pytest.warns(UserWarning, match="An LSTM of 7 states runs as a loop of launches"):
        assert _kernel(7, "cpu") is None  # where nothing can be compiled for


def told() -> dict[str, Any]:
    """What the interpreted kernels answer."""
    from heedful.models import recurrent_kernel, wide_kernel

    torch.set_num_threads(1)
    walks = {"narrow": recurrent_kernel.NARROW, "wide": wide_kernel.WIDE}
    distances = {}
    for kind, cases in CASES.items():
        for sizes in cases:
            given = layer(*sizes)
            found = [_answers(function, given) for function in (walks[kind], in_steps)]
            distances[f"{kind} {sizes}"] = [_distance(*pair) for pair in zip(*found, strict=True)]
    return {
        "distances": distances,
        "fits": [dim for dim in (32, 64, 80, 96, 128, 256, 320, 512, 544) if wide_kernel.fits(dim)],
    }


if __name__ == "__main__":
    print(json.dumps(told()))
