"""The LSTM of `recurrent` as one kernel a direction, for states too wide for `recurrent_kernel`.

The recurrent weights of one model (1 MB at 256 states) fit no multiprocessor, so every step reads
them from the card's second-level cache, tile by tile. A program has one model and one block of its
texts, and needs no other: many stacks of models share a card.

Products are in TF32, as those of the library's own LSTM are by default, and sums run in one order:
neither the card nor the number of models changes a number.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import triton
import triton.language as tl

from heedful.models.recurrent_kernel import WIDEST as NARROWEST
from heedful.models.recurrent_kernel import tanh
from heedful.models.recurrent_walk import Walk, launched

WIDEST = 512
TILE = 32
"""States a program computes at a time; widths are multiples of it."""
ROWS = 32
"""Most texts of one program."""
DEEP = 64, 128
"""States before, and gates after, that enter one product forward and back."""
STAGES = 4
"""Tiles under way while one is multiplied; at most 120 kB of shared memory."""
WARPS = 8
PRECISION = "tf32"
SIZES = "batch", "units"
"""Read when a kernel runs: it is not compiled again for other texts."""
TOLERANCE = 3e-3
"""Relative to the norm; TF32 keeps ten bits and cuts the others off, which makes 8e-4."""


@triton.jit(do_not_specialize=SIZES)  # type: ignore[untyped-decorator, unused-ignore]
def _walk(  # type: ignore[no-untyped-def]
    gates, hidden, start, states, cells, opened, batch, units,
    DIM: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr, DEEP: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    model = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    col = tl.arange(0, TILE)
    # The four gates of a tile side by side: in one product each warp has columns of its own.
    wide = tl.arange(0, 4 * TILE)
    wide = wide // TILE * DIM + wide % TILE
    deep = tl.arange(0, DEEP)
    inside = (row < batch)[:, None]
    text = model * batch + row
    weights = hidden + model * (4 * DIM * DIM)
    # Where state and cell of the step before lie.
    state_at = start + text * DIM
    cell_at = state_at + tl.num_programs(0).to(tl.int64) * batch * DIM
    for unit in range(units):
        place = text * units + unit
        for tile in range(DIM // TILE):
            begin = tile * TILE
            own = begin + col
            read = tl.load(
                gates + place[:, None] * (4 * DIM) + begin + wide[None, :], mask=inside, other=0.0
            )
            cell = tl.load(cell_at[:, None] + own[None, :], mask=inside, other=0.0)
            found = tl.zeros([BLOCK, 4 * TILE], tl.float32)
            for first in range(0, DIM, DEEP):
                state = tl.load(state_at[:, None] + first + deep[None, :], mask=inside, other=0.0)
                weight = weights + (first + deep)[:, None] * (4 * DIM) + begin + wide[None, :]
                found = tl.dot(state, tl.load(weight), found, input_precision=PRECISION)
            found = tl.reshape(found + read, [BLOCK, 2, 2, TILE])
            outer, inner = tl.split(tl.permute(found, [0, 3, 1, 2]))
            entering, new = tl.split(outer)
            keeping, leaving = tl.split(inner)
            entering, keeping = tl.sigmoid(entering), tl.sigmoid(keeping)
            new, leaving = tanh(new), tl.sigmoid(leaving)
            cell = keeping * cell + entering * new
            at = place[:, None] * (4 * DIM) + own[None, :]
            tl.store(opened + at, entering, mask=inside)
            tl.store(opened + at + DIM, keeping, mask=inside)
            tl.store(opened + at + 2 * DIM, new, mask=inside)
            tl.store(opened + at + 3 * DIM, leaving, mask=inside)
            here = place[:, None] * DIM + own[None, :]
            tl.store(cells + here, cell, mask=inside)
            tl.store(states + here, leaving * tanh(cell), mask=inside)
        tl.debug_barrier()  # the whole program has stored what it reads in the next step
        state_at = states + place * DIM
        cell_at = cells + place * DIM


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def _carried(  # type: ignore[no-untyped-def]
    of_gates, weights, inside, reach,
    TILE: tl.constexpr, BLOCK: tl.constexpr, DEEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """What the gates' gradients of one step say of the states before; nothing for reach 0."""
    found = tl.zeros([BLOCK, TILE], tl.float32)
    deep = tl.arange(0, DEEP)
    for first in range(0, reach, DEEP):
        given = tl.load(of_gates[:, None] + first + deep[None, :], mask=inside, other=0.0)
        weight = tl.load(weights[None, :] + first + deep[:, None])
        found = tl.dot(given, weight, found, input_precision=PRECISION)
    return found


@triton.jit(do_not_specialize=SIZES)  # type: ignore[untyped-decorator, unused-ignore]
def _walk_back(  # type: ignore[no-untyped-def]
    of_states, of_last, hidden, start, cells, opened, of_gates, of_start, batch, units,
    DIM: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr, DEEP: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    model = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    col = tl.arange(0, TILE)
    inside = (row < batch)[:, None]
    text = model * batch + row
    whole = tl.num_programs(0).to(tl.int64) * batch * DIM
    first_cell_at = start + whole + text * DIM
    of_first_cell_at = of_start + whole + text * DIM
    # Where the cell's gradient lies: first what is given, then where its last value belongs.
    of_cell_at = of_last + text * DIM
    reach = 0
    for back in range(units):
        place = text * units + (units - 1 - back)
        before_at = tl.where(place > text * units, cells + (place - 1) * DIM, first_cell_at)
        for tile in range(DIM // TILE):
            own = tile * TILE + col
            at = place[:, None] * (4 * DIM) + own[None, :]
            here = place[:, None] * DIM + own[None, :]
            entering = tl.load(opened + at, mask=inside, other=0.0)
            keeping = tl.load(opened + at + DIM, mask=inside, other=0.0)
            new = tl.load(opened + at + 2 * DIM, mask=inside, other=0.0)
            leaving = tl.load(opened + at + 3 * DIM, mask=inside, other=0.0)
            squashed = tanh(tl.load(cells + here, mask=inside, other=0.0))
            before = tl.load(before_at[:, None] + own[None, :], mask=inside, other=0.0)
            of_state = tl.load(of_states + here, mask=inside, other=0.0)
            of_cell = tl.load(of_cell_at[:, None] + own[None, :], mask=inside, other=0.0)
            weights = hidden + model * (4 * DIM * DIM) + own * (4 * DIM)
            of_state += _carried(
                of_gates + (place + 1) * (4 * DIM), weights, inside, reach,
                TILE, BLOCK, DEEP, PRECISION,
            )  # fmt: skip
            of_cell += of_state * leaving * (1.0 - squashed * squashed)
            one = of_cell * new * entering * (1.0 - entering)
            two = of_cell * before * keeping * (1.0 - keeping)
            three = of_cell * entering * (1.0 - new * new)
            four = of_state * squashed * leaving * (1.0 - leaving)
            tl.store(of_gates + at, one, mask=inside)
            tl.store(of_gates + at + DIM, two, mask=inside)
            tl.store(of_gates + at + 2 * DIM, three, mask=inside)
            tl.store(of_gates + at + 3 * DIM, four, mask=inside)
            tl.store(of_first_cell_at[:, None] + own[None, :], of_cell * keeping, mask=inside)
        tl.debug_barrier()
        of_cell_at = of_first_cell_at
        reach = 4 * DIM
    for tile in range(DIM // TILE):
        own = tile * TILE + col
        weights = hidden + model * (4 * DIM * DIM) + own * (4 * DIM)
        carried = _carried(
            of_gates + text * units * (4 * DIM), weights, inside, reach,
            TILE, BLOCK, DEEP, PRECISION,
        )  # fmt: skip
        tl.store(of_start + text[:, None] * DIM + own[None, :], carried, mask=inside)


def sizes(dim: int, batch: int, deep: int) -> dict[str, Any]:
    """Sizes of tiles for states of this width and this many texts."""
    block = min(ROWS, max(triton.next_power_of_2(batch), 16))
    found: dict[str, Any] = {"DIM": dim, "TILE": TILE, "BLOCK": block, "PRECISION": PRECISION}
    found |= {"DEEP": TILE if dim % 64 and deep == 64 else deep}
    return found | {"num_warps": WARPS, "num_stages": STAGES}


def fits(dim: int) -> bool:
    """Whether states of this width are wide and whole tiles."""
    return NARROWEST < dim <= WIDEST and dim % TILE == 0


WIDE = Walk(
    launched(_walk, partial(sizes, deep=DEEP[0])),
    launched(_walk_back, partial(sizes, deep=DEEP[1])),
    fits,
    TOLERANCE,
)
