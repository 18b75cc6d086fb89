"""The cluster's kernels compute what the loop computes; a processor plays the card.

The same source is compiled by g++ with every thread of a block as a thread (`emulated_kernel.cpp`),
in full precision. Only the tensor cores' rounding is left to the card, where `works` asks.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from heedful.models.cluster_kernel import SOURCE, Documents, before_each, fits
from heedful.models.recurrent import in_steps

DIM = 64


class Told(NamedTuple):
    states: Tensor
    cells: Tensor
    of_gates: Tensor
    of_start: Tensor


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("no g++ to play the card with")
    program = tmp_path_factory.mktemp("emulated") / "emulated"
    source = Path(__file__).with_name("emulated_kernel.cpp")
    defined = [f"-DDIM={DIM}", f'-DKERNELS="{SOURCE}"']
    subprocess.run(
        ["g++", "-std=c++20", "-O1", "-pthread", "-w", *defined, "-o", str(program), str(source)],
        check=True,
    )
    return program


def told(program: Path, sizes: list[int], inputs: list[Tensor], started: bool) -> Told:
    file = program.parent / "inputs"
    with file.open("wb") as out:
        out.write(np.array(sizes, dtype=np.int32).tobytes())
        for tensor in inputs:
            out.write(tensor.contiguous().numpy().tobytes())
    subprocess.run([str(program), str(file)], check=True, timeout=240)
    layers, tokens, documents, *_ = sizes
    found = torch.from_numpy(np.fromfile(f"{file}.out", dtype=np.float32))
    whole = layers * tokens * DIM
    parts = torch.split(found, [whole, whole, 4 * whole, len(found) - 6 * whole])
    shape = layers, tokens, DIM
    start = parts[3].view(2, layers, documents, DIM) if started else parts[3]
    return Told(parts[0].view(shape), parts[1].view(shape), parts[2].view(*shape[:2], -1), start)


def drawn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.slow
def test_a_cluster_walks_as_the_loop_does_from_any_start(emulated: Path) -> None:
    models, batch, units = 2, 33, 3
    gates, hidden = drawn(models, batch, units, 4 * DIM), drawn(models, DIM, 4 * DIM) / DIM**0.5
    start, of_states, of_last = (
        drawn(2, models, batch, DIM), drawn(models, batch, units, DIM), drawn(models, batch, DIM),
    )  # fmt: skip
    found = told(
        emulated, [models, batch * units, batch, models, 0, 1],
        [gates, hidden, start, of_states, of_last], started=True,
    )  # fmt: skip
    leaves = [gates.requires_grad_(), start.requires_grad_()]
    states, last = in_steps(gates, hidden, start)
    of_gates, of_start = torch.autograd.grad(
        (states * of_states).sum() + (last * of_last).sum(), leaves
    )
    for one, two in (
        (found.states, states), (found.cells.view(states.shape)[:, :, -1], last),
        (found.of_gates, of_gates), (found.of_start, of_start),
    ):  # fmt: skip
        torch.testing.assert_close(one.reshape(two.shape), two.detach(), rtol=0, atol=2e-6)


@pytest.mark.slow
def test_documents_of_their_own_lengths_are_those_padded_apart(emulated: Path) -> None:
    """Forwards and backwards, in any order among the tokens; tokens between them stay at 0."""
    layers, documents, turned = 2, 34, 1
    generator = np.random.default_rng(0)
    count = generator.integers(1, 6, (layers, documents)).astype(np.int32)
    first = np.zeros_like(count)
    for layer in range(layers):
        order = generator.permutation(documents)
        first[layer, order] = np.cumsum(count[layer, order]) - count[layer, order] + 1
    tokens = int(count.sum(1).max()) + 2
    gates, hidden = drawn(layers, tokens, 4 * DIM), drawn(layers, DIM, 4 * DIM) / DIM**0.5
    of_states = drawn(layers, tokens, DIM)
    where = [torch.from_numpy(one) for one in (first, count)]
    found = told(
        emulated, [layers, tokens, documents, turned, 1, 0], [*where, gates, hidden, of_states],
        started=False,
    )  # fmt: skip
    gates.requires_grad_()
    states, before = torch.zeros(2, layers, tokens, DIM)
    for layer in range(layers):
        for document in range(documents):
            begin, n = first[layer, document], count[layer, document]
            place = torch.arange(begin, begin + n)
            place = place.flip(0) if layer >= turned else place
            here, _ = in_steps(
                gates[layer, place][None, None], hidden[layer][None], torch.zeros(2, 1, 1, DIM)
            )
            states = states.index_put((torch.tensor(layer), place), here[0, 0])
            before[layer, place[1:]] = here[0, 0, :-1].detach()
    (of_gates,) = torch.autograd.grad((states * of_states).sum(), gates)
    torch.testing.assert_close(found.states, states.detach(), rtol=0, atol=2e-6)
    torch.testing.assert_close(found.of_gates, of_gates, rtol=0, atol=2e-6)
    made = before_each(found.states, Documents(*where, turned))
    is_inside = found.states.abs().sum(-1, keepdim=True) > 0
    torch.testing.assert_close(made * is_inside, before, rtol=0, atol=2e-6)


def test_a_cluster_has_at_most_eight_blocks_of_32_states() -> None:
    assert [dim for dim in (64, 80, 96, 128, 256, 288, 512) if fits(dim)] == [96, 128, 256]
