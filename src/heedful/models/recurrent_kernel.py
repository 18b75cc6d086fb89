"""The LSTM of `recurrent` as one kernel a direction: the loop over time runs on the card.

A program holds the recurrent weights of one model in registers and walks through the texts of one
block of rows; states never leave it between steps. The loop of launches it replaces is bound by
their latency, five for every word. Triton comes with torch's CUDA builds; where it does not, or
where the kernel does not agree with the loop, `recurrent` keeps to the loop. States too wide for
the registers are those of `wide_kernel`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from heedful.models.recurrent_walk import Walk, launched

WIDEST = 64
"""Largest state: four square tiles of this width fill a multiprocessor's registers."""
ROWS = 16
"""Texts of one program, the least a matrix product of tiles takes."""
WARPS = 8
TOLERANCE = 1e-4
"""Relative to the norm; products are in three passes of TF32."""


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def tanh(x):  # type: ignore[no-untyped-def]
    """Also of `wide_kernel`; Triton has none for every card."""
    return 2.0 * tl.sigmoid(2.0 * x) - 1.0


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def _walk(  # type: ignore[no-untyped-def]
    gates, hidden, start, states, cells, opened, batch, units,
    DIM: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    model = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    col = tl.arange(0, WIDE)
    inside = (row < batch)[:, None] & (col < DIM)[None, :]
    square = (col < DIM)[:, None] & (col < DIM)[None, :]
    weight = hidden + model * (4 * DIM * DIM) + col[:, None] * (4 * DIM) + col[None, :]
    of_in = tl.load(weight, mask=square, other=0.0)
    of_keep = tl.load(weight + DIM, mask=square, other=0.0)
    of_new = tl.load(weight + 2 * DIM, mask=square, other=0.0)
    of_out = tl.load(weight + 3 * DIM, mask=square, other=0.0)
    text = model * batch + row
    begin = text[:, None] * DIM + col[None, :]
    whole = tl.num_programs(0).to(tl.int64) * batch * DIM
    state = tl.load(start + begin, mask=inside, other=0.0)
    cell = tl.load(start + whole + begin, mask=inside, other=0.0)
    for unit in range(units):
        place = text * units + unit
        at = place[:, None] * (4 * DIM) + col[None, :]
        entering = tl.load(gates + at, mask=inside, other=0.0)
        keeping = tl.load(gates + at + DIM, mask=inside, other=0.0)
        new = tl.load(gates + at + 2 * DIM, mask=inside, other=0.0)
        leaving = tl.load(gates + at + 3 * DIM, mask=inside, other=0.0)
        entering = tl.sigmoid(entering + tl.dot(state, of_in, input_precision="tf32x3"))
        keeping = tl.sigmoid(keeping + tl.dot(state, of_keep, input_precision="tf32x3"))
        new = tanh(new + tl.dot(state, of_new, input_precision="tf32x3"))
        leaving = tl.sigmoid(leaving + tl.dot(state, of_out, input_precision="tf32x3"))
        cell = keeping * cell + entering * new
        state = leaving * tanh(cell)
        tl.store(opened + at, entering, mask=inside)
        tl.store(opened + at + DIM, keeping, mask=inside)
        tl.store(opened + at + 2 * DIM, new, mask=inside)
        tl.store(opened + at + 3 * DIM, leaving, mask=inside)
        here = place[:, None] * DIM + col[None, :]
        tl.store(cells + here, cell, mask=inside)
        tl.store(states + here, state, mask=inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def _walk_back(  # type: ignore[no-untyped-def]
    of_states, of_last, hidden, start, cells, opened, of_gates, of_start, batch, units,
    DIM: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    model = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    col = tl.arange(0, WIDE)
    inside = (row < batch)[:, None] & (col < DIM)[None, :]
    square = (col < DIM)[:, None] & (col < DIM)[None, :]
    # Transposed: what a gate's gradient says of the state before.
    weight = hidden + model * (4 * DIM * DIM) + col[None, :] * (4 * DIM) + col[:, None]
    of_in = tl.load(weight, mask=square, other=0.0)
    of_keep = tl.load(weight + DIM, mask=square, other=0.0)
    of_new = tl.load(weight + 2 * DIM, mask=square, other=0.0)
    of_out = tl.load(weight + 3 * DIM, mask=square, other=0.0)
    text = model * batch + row
    begin = text[:, None] * DIM + col[None, :]
    whole = tl.num_programs(0).to(tl.int64) * batch * DIM
    carried = tl.zeros([BLOCK, WIDE], tl.float32)
    of_cell = tl.load(of_last + begin, mask=inside, other=0.0)
    for back in range(units):
        unit = units - 1 - back
        place = text * units + unit
        at = place[:, None] * (4 * DIM) + col[None, :]
        here = place[:, None] * DIM + col[None, :]
        entering = tl.load(opened + at, mask=inside, other=0.0)
        keeping = tl.load(opened + at + DIM, mask=inside, other=0.0)
        new = tl.load(opened + at + 2 * DIM, mask=inside, other=0.0)
        leaving = tl.load(opened + at + 3 * DIM, mask=inside, other=0.0)
        squashed = tanh(tl.load(cells + here, mask=inside, other=0.0))
        is_first = (place == text * units)[:, None]
        before = tl.load(cells + here - DIM, mask=inside & ~is_first, other=0.0)
        before += tl.load(start + whole + begin, mask=inside & is_first, other=0.0)
        of_state = tl.load(of_states + here, mask=inside, other=0.0) + carried
        of_cell += of_state * leaving * (1.0 - squashed * squashed)
        one = of_cell * new * entering * (1.0 - entering)
        two = of_cell * before * keeping * (1.0 - keeping)
        three = of_cell * entering * (1.0 - new * new)
        four = of_state * squashed * leaving * (1.0 - leaving)
        tl.store(of_gates + at, one, mask=inside)
        tl.store(of_gates + at + DIM, two, mask=inside)
        tl.store(of_gates + at + 2 * DIM, three, mask=inside)
        tl.store(of_gates + at + 3 * DIM, four, mask=inside)
        of_cell = of_cell * keeping
        carried = tl.dot(one, of_in, input_precision="tf32x3")
        carried += tl.dot(two, of_keep, input_precision="tf32x3")
        carried += tl.dot(three, of_new, input_precision="tf32x3")
        carried += tl.dot(four, of_out, input_precision="tf32x3")
    tl.store(of_start + begin, carried, mask=inside)
    tl.store(of_start + whole + begin, of_cell, mask=inside)


def _tiles(dim: int, batch: int) -> dict[str, int]:
    wide = max(triton.next_power_of_2(dim), 16)
    return {"DIM": dim, "WIDE": wide, "BLOCK": ROWS, "num_warps": WARPS}


NARROW = Walk(
    launched(_walk, _tiles), launched(_walk_back, _tiles), lambda dim: dim <= WIDEST, TOLERANCE
)
"""Of states of any width up to WIDEST."""
