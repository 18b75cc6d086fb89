"""The GRU without padding is the library's, and its kernels compute what the loop computes.

Triton interprets the kernels on the CPU, in a process of its own: run as a script, this file prints
what they answer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import nn

from heedful.models import ragged_gru
from heedful.models.ragged_gru import layout_of, padded

CASES = [(4, 2, 35, 6), (50, 2, 18, 5), (50, 3, 5, 4), (64, 1, 17, 3)]
"""Dim, models, texts and the longest of them."""


def test_walks_are_the_librarys() -> None:
    draw = torch.Generator().manual_seed(0)
    cells = [nn.GRU(3, 4, bidirectional=True, batch_first=True).double() for _ in range(2)]
    lengths = torch.tensor([[3, 1, 5], [2, 6, 1]])
    layout = layout_of(lengths, 10, 6)
    inputs = torch.randn(2, 10, 3, generator=draw, dtype=torch.float64)
    weights = [
        torch.stack(
            [getattr(cell, f"{kind}_l0{end}") for end in ("", "_reverse") for cell in cells]
        )
        for kind in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
    ]
    inward, of_input, hidden, bias = weights
    gates = torch.baddbmm(of_input[:, None], inputs.repeat(2, 1, 1), inward.transpose(1, 2))
    found = padded(gates, hidden.transpose(1, 2), bias, layout)
    for row, cell in enumerate(cells):
        for start, length in zip(layout.starts[row].tolist(), lengths[row].tolist(), strict=True):
            own = slice(start, start + length)
            states = cell(inputs[row : row + 1, own])[0][0]
            both = torch.cat([found[row, own], found[2 + row, own]], -1)
            assert torch.allclose(both, states, atol=1e-12)
        assert not found[row, lengths[row].sum() :].any()


def test_layout_by_hand() -> None:
    layout = layout_of(torch.tensor([[2, 0, 3], [1, 1, 1]]), 5, 3)
    assert layout.sequence.tolist() == [[0, 0, 2, 2, 2], [0, 1, 2, 3, 3]]
    assert layout.place.tolist() == [[0, 1, 0, 1, 2], [0, 0, 0, 0, 0]]
    assert layout.left.tolist() == [[1, 0, 2, 1, 0], [0, 0, 0, -1, -1]]
    assert layout.starts.tolist() == [[0, 2, 2], [0, 1, 2]]


@pytest.mark.slow
def test_kernels_are_the_loop() -> None:
    if find_spec("triton") is None and sys.platform != "linux":
        pytest.skip("there is no triton for this system to interpret the kernels with")
    source = str(Path(__file__).parents[2] / "src")
    told = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": source},
        check=True, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    found = json.loads(told.stdout)
    assert len(found) == len(CASES)
    assert max(max(one) for one in found) < 1e-6


def test_a_width_without_a_kernel_is_a_warning_and_not_a_silence() -> None:
    ragged_gru._kernel.cache_clear()
    with pytest.warns(UserWarning, match="A GRU of 7 states runs as a loop of launches"):
        assert ragged_gru._kernel(7, "cpu") is None  # where nothing can be compiled for


def told() -> list[list[float]]:
    """How far the interpreted kernels are from the loop, values and gradients."""
    torch.set_num_threads(1)
    found = []
    for dim, models, texts, longest in CASES:
        draw = torch.Generator().manual_seed(dim)
        lengths = torch.randint(1, longest + 1, (models, texts), generator=draw)
        lengths[:, -1] = 0
        layout = layout_of(lengths, int(lengths.sum(1).max()) + 2, longest)
        shapes = ((2 * models, len(layout.place[0]), 3 * dim), (2 * models, dim, 3 * dim))
        given = [torch.randn(shape, generator=draw) for shape in (*shapes, (2 * models, 3 * dim))]
        given[1] /= dim**0.5
        walks = (ragged_gru.kernel_walk, padded)
        pairs = zip(*(ragged_gru._answers(walk, given, layout) for walk in walks), strict=True)
        found.append([float((one - two).norm() / two.norm()) for one, two in pairs])
    return found


if __name__ == "__main__":
    print(json.dumps(told()))
