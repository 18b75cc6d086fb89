"""The GRU of `ragged_gru` as two kernels: the loop over a text runs on the card.

A program holds the recurrent weights of one walk (a direction of a model) in registers and goes
through a block of texts, as far as the longest of them; states never leave it between steps. Texts
lie one after the other, and a walk backwards reads them from their ends.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from heedful.models.recurrent_kernel import tanh

WIDEST = 64
"""Largest state: three square tiles of this width stay in a multiprocessor's registers."""
ROWS = 16
"""Texts of one program, the least that a matrix product of tiles takes."""
WARPS = 4
SIZES = ("models", "sequences", "units")
"""Numbers of every batch's own: a kernel for each of their kinds would be compiled otherwise."""


@triton.jit(do_not_specialize=SIZES)  # type: ignore[untyped-decorator, unused-ignore]
def _walk(  # type: ignore[no-untyped-def]
    gates, hidden, bias, starts, lengths, states, opened, models, sequences, units,
    DIM: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    walk = tl.program_id(0).to(tl.int64)
    model = walk % models
    is_back = walk >= models
    row = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    col = tl.arange(0, WIDE)
    is_text = row < sequences
    is_dim = col < DIM
    square = is_dim[:, None] & is_dim[None, :]
    weight = hidden + walk * (3 * DIM * DIM) + col[:, None] * (3 * DIM) + col[None, :]
    of_reset = tl.load(weight, mask=square, other=0.0)
    of_update = tl.load(weight + DIM, mask=square, other=0.0)
    of_new = tl.load(weight + 2 * DIM, mask=square, other=0.0)
    own = bias + walk * (3 * DIM) + col
    bias_reset = tl.load(own, mask=is_dim, other=0.0)[None, :]
    bias_update = tl.load(own + DIM, mask=is_dim, other=0.0)[None, :]
    bias_new = tl.load(own + 2 * DIM, mask=is_dim, other=0.0)[None, :]
    start = tl.load(starts + model * sequences + row, mask=is_text, other=0)
    length = tl.load(lengths + model * sequences + row, mask=is_text, other=0)
    state = tl.zeros([BLOCK, WIDE], tl.float32)
    for step in range(tl.max(length, 0)):
        place = walk * units + start + tl.where(is_back, length - 1 - step, step)
        inside = (step < length)[:, None] & is_dim[None, :]
        at = place[:, None] * (3 * DIM) + col[None, :]
        reset = tl.load(gates + at, mask=inside, other=0.0) + bias_reset
        update = tl.load(gates + at + DIM, mask=inside, other=0.0) + bias_update
        new = tl.load(gates + at + 2 * DIM, mask=inside, other=0.0)
        reset = tl.sigmoid(reset + tl.dot(state, of_reset, input_precision="tf32x3"))
        update = tl.sigmoid(update + tl.dot(state, of_update, input_precision="tf32x3"))
        ours = bias_new + tl.dot(state, of_new, input_precision="tf32x3")
        new = tanh(new + reset * ours)
        state = tl.where(inside, new + update * (state - new), state)
        kept = place[:, None] * (4 * DIM) + col[None, :]
        tl.store(opened + kept, reset, mask=inside)
        tl.store(opened + kept + DIM, update, mask=inside)
        tl.store(opened + kept + 2 * DIM, new, mask=inside)
        tl.store(opened + kept + 3 * DIM, ours, mask=inside)
        tl.store(states + place[:, None] * DIM + col[None, :], state, mask=inside)


@triton.jit(do_not_specialize=SIZES)  # type: ignore[untyped-decorator, unused-ignore]
def _walk_back(  # type: ignore[no-untyped-def]
    of_states, hidden, starts, lengths, states, opened, of_gates, of_before,
    models, sequences, units,
    DIM: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    walk = tl.program_id(0).to(tl.int64)
    model = walk % models
    is_back = walk >= models
    row = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    col = tl.arange(0, WIDE)
    is_text = row < sequences
    is_dim = col < DIM
    square = is_dim[:, None] & is_dim[None, :]
    # Transposed: what a gate's gradient says of the state before.
    weight = hidden + walk * (3 * DIM * DIM) + col[None, :] * (3 * DIM) + col[:, None]
    of_reset = tl.load(weight, mask=square, other=0.0)
    of_update = tl.load(weight + DIM, mask=square, other=0.0)
    of_new = tl.load(weight + 2 * DIM, mask=square, other=0.0)
    start = tl.load(starts + model * sequences + row, mask=is_text, other=0)
    length = tl.load(lengths + model * sequences + row, mask=is_text, other=0)
    longest = tl.max(length, 0)
    carried = tl.zeros([BLOCK, WIDE], tl.float32)
    for back in range(longest):
        step = longest - 1 - back
        place = walk * units + start + tl.where(is_back, length - 1 - step, step)
        inside = (step < length)[:, None] & is_dim[None, :]
        kept = place[:, None] * (4 * DIM) + col[None, :]
        here = place[:, None] * DIM + col[None, :]
        reset = tl.load(opened + kept, mask=inside, other=0.0)
        update = tl.load(opened + kept + DIM, mask=inside, other=0.0)
        new = tl.load(opened + kept + 2 * DIM, mask=inside, other=0.0)
        ours = tl.load(opened + kept + 3 * DIM, mask=inside, other=0.0)
        earlier = tl.where(is_back, here + DIM, here - DIM)
        before = tl.load(states + earlier, mask=inside & (step > 0), other=0.0)
        of_state = tl.load(of_states + here, mask=inside, other=0.0) + carried
        one = of_state * (1.0 - update) * (1.0 - new * new)
        two = one * ours * reset * (1.0 - reset)
        three = of_state * (before - new) * update * (1.0 - update)
        four = one * reset
        at = place[:, None] * (3 * DIM) + col[None, :]
        tl.store(of_gates + at, two, mask=inside)
        tl.store(of_gates + at + DIM, three, mask=inside)
        tl.store(of_gates + at + 2 * DIM, one, mask=inside)
        tl.store(of_before + at, two, mask=inside)
        tl.store(of_before + at + DIM, three, mask=inside)
        tl.store(of_before + at + 2 * DIM, four, mask=inside)
        through = tl.dot(two, of_reset, input_precision="tf32x3")
        through += tl.dot(three, of_update, input_precision="tf32x3")
        through += tl.dot(four, of_new, input_precision="tf32x3")
        # Texts that end before this step have no gradient yet: everything above is 0 for them.
        carried = tl.where(inside, through + of_state * update, carried)


def walk(
    gates: Float[Tensor, "walk unit gate"],
    hidden: Float[Tensor, "walk dim gate"],
    bias: Float[Tensor, "walk gate"],
    starts: Int[Tensor, "model sequence"],
    lengths: Int[Tensor, "model sequence"],
) -> tuple[Float[Tensor, "walk unit dim"], Float[Tensor, "walk unit four"]]:
    """States, zero at padding, and the opened gates (reset, update, new, the state's share)."""
    walks, units, dim = len(gates), gates.shape[1], hidden.shape[1]
    states = gates.new_zeros(walks, units, dim)
    opened = gates.new_empty(walks, units, 4 * dim)
    tiles = _tiles(dim)
    _walk[walks, -(-lengths.shape[1] // ROWS)](
        gates, hidden, bias, starts, lengths, states, opened, *lengths.shape, units, **tiles
    )
    return states, opened


def walk_back(
    of_states: Float[Tensor, "walk unit dim"],
    hidden: Float[Tensor, "walk dim gate"],
    states: Float[Tensor, "walk unit dim"],
    opened: Float[Tensor, "walk unit four"],
    starts: Int[Tensor, "model sequence"],
    lengths: Int[Tensor, "model sequence"],
) -> tuple[Float[Tensor, "walk unit gate"], Float[Tensor, "walk unit gate"]]:
    """The gradients of the inputs' share of the gates and of the states' own, zero at padding."""
    walks, units, dim = states.shape
    of_gates = states.new_zeros(walks, units, 3 * dim)
    of_before = torch.zeros_like(of_gates)
    _walk_back[walks, -(-lengths.shape[1] // ROWS)](
        of_states, hidden, starts, lengths, states, opened, of_gates, of_before,
        *lengths.shape, units, **_tiles(dim),
    )  # fmt: skip
    return of_gates, of_before


def _tiles(dim: int) -> dict[str, Any]:
    wide = max(triton.next_power_of_2(dim), 16)
    return {"DIM": dim, "WIDE": wide, "BLOCK": ROWS, "num_warps": WARPS}
