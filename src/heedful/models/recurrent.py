"""Recurrent layers of many models at once: one loop over time for all of them.

The library's LSTM and GRU take one set of weights. Here every weight has a leading model axis, a
step is one batched product and one cell, and the gradient of the weights is one product over all
steps instead of a sum of one per step.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from heedful.models.recurrent_walk import Walk, works


def lstm(
    gates: Float[Tensor, "model batch unit gate"],
    hidden: Float[Tensor, "model dim gate"],
    state: Float[Tensor, "model batch dim"] | None = None,
    cell: Float[Tensor, "model batch dim"] | None = None,
) -> tuple[Float[Tensor, "model batch unit dim"], Float[Tensor, "model batch dim"]]:
    """States over time and the last cell, from the inputs' share of the gates (biases included).

    Gates stand in the library's order: in, keep, new, out.
    """
    empty = gates.new_zeros(*gates.shape[:2], hidden.shape[1])
    start = torch.stack([empty if state is None else state, empty if cell is None else cell])
    walk = None
    if gates.is_cuda and gates.dtype == torch.float32:
        walk = _kernel(hidden.shape[1], str(gates.device))
    return (walk or in_steps)(gates, hidden, start)


def in_steps(
    gates: Float[Tensor, "model batch unit gate"],
    hidden: Float[Tensor, "model dim gate"],
    start: Float[Tensor, "2 model batch dim"],
) -> tuple[Float[Tensor, "model batch unit dim"], Float[Tensor, "model batch dim"]]:
    """The same from a first state and cell, a few launches for every unit."""
    states, last = _Lstm.apply(gates, hidden, *start)  # type: ignore[no-untyped-call]
    return states, last


def has_kernel(dim: int, device: torch.device) -> bool:
    """Whether `lstm` walks through a layer of this width in one launch there."""
    return device.type == "cuda" and _kernel(dim, str(device)) is not None


def is_clustered(dim: int, device: torch.device) -> bool:
    """Whether that kernel is a cluster's, which takes documents of their own lengths."""
    if device.type != "cuda" or (walk := _kernel(dim, str(device))) is None:
        return False
    from heedful.models.cluster_kernel import CLUSTERED

    return walk is CLUSTERED


@cache
def _kernel(dim: int, device: str) -> Callable[..., tuple[Tensor, Tensor]] | None:
    """The LSTM as one kernel, where it can be had and agrees with the loop; says so if not."""
    known: tuple[Walk, ...] = ()
    try:
        from heedful.models import cluster_kernel, recurrent_kernel, wide_kernel

        known = (recurrent_kernel.NARROW, cluster_kernel.CLUSTERED, wide_kernel.WIDE)
        why = f"none of its kernels computes it rightly on {device}"
    except ImportError:
        why = "triton is not installed"
    found = next((walk for walk in known if works(walk, in_steps, dim, device)), None)
    if found is None:
        warnings.warn(
            f"An LSTM of {dim} states runs as a loop of launches, many times slower: {why}.",
            stacklevel=2,
        )
    return found


def gru(
    gates: Float[Tensor, "model batch unit gate"],
    hidden: Float[Tensor, "model dim gate"],
    bias: Float[Tensor, "model gate"],
    state: Float[Tensor, "model batch dim"] | None = None,
) -> Float[Tensor, "model batch unit dim"]:
    """States over time from the inputs' share of the gates; the state's share has its own bias.

    Gates stand in the library's order: reset, update, new.
    """
    if state is None:
        state = gates.new_zeros(*gates.shape[:2], hidden.shape[1])
    states: Tensor = _Gru.apply(gates, hidden, bias, state)  # type: ignore[no-untyped-call]
    return states


class _Lstm(torch.autograd.Function):
    """c' = f c + i g, h' = o tanh c'."""

    @staticmethod
    def forward(
        ctx: Any, gates: Tensor, hidden: Tensor, start: Tensor, cell: Tensor
    ) -> tuple[Tensor, Tensor]:
        models, batch, _, width = gates.shape
        dim = hidden.shape[1]
        state, cells, opened, states = start, [cell.reshape(-1, dim)], [], []
        for now in gates.flatten(0, 1).unbind(1):
            before = (state @ hidden).view(-1, width)
            if gates.is_cuda:  # one kernel for the whole cell; what torch's own LSTMCell calls
                here, cell, kept = torch.ops.aten._thnn_fused_lstm_cell(now, before, cells[-1])
            else:
                kept = now + before
                entering, keeping, new, leaving = kept.chunk(4, -1)
                entering.sigmoid_(), keeping.sigmoid_(), new.tanh_(), leaving.sigmoid_()
                cell = keeping * cells[-1] + entering * new
                here = leaving * cell.tanh()
            state = here.view(models, batch, dim)
            cells.append(cell)
            opened.append(kept)
            states.append(state)
        whole = torch.stack(states, 2)
        ctx.save_for_backward(hidden, start, whole, *cells, *opened)
        return whole, cells[-1].view(models, batch, dim)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(
        ctx: Any, of_states: Tensor, of_cell: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        hidden, start, states, *kept = ctx.saved_tensors
        models, batch, units, dim = states.shape
        cells, opened = kept[: units + 1], kept[units + 1 :]
        back = hidden.transpose(1, 2)
        carried = torch.zeros_like(start)
        of_cell = of_cell.reshape(-1, dim)
        parts: list[Tensor] = []
        for unit in reversed(range(units)):
            of_state = (of_states[:, :, unit] + carried).view(-1, dim)
            given = of_state, of_cell, cells[unit], cells[unit + 1], opened[unit]
            if states.is_cuda:
                fused = torch.ops.aten._thnn_fused_lstm_cell_backward_impl(*given, False)
                here, of_cell = fused[:2]
            else:
                here, of_cell = _lstm_back(*given)
            parts.append(here.view(models, batch, -1))
            carried = parts[-1] @ back
        of_gates = torch.stack(parts[::-1], 2)
        before = torch.cat([start[:, :, None], states[:, :, :-1]], 2)
        of_hidden = before.flatten(1, 2).transpose(1, 2) @ of_gates.flatten(1, 2)
        return of_gates, of_hidden, carried, of_cell.view(models, batch, dim)


def _lstm_back(
    of_state: Tensor, of_cell: Tensor, before: Tensor, cell: Tensor, opened: Tensor
) -> tuple[Tensor, Tensor]:
    entering, keeping, new, leaving = opened.chunk(4, -1)
    squashed = cell.tanh()
    of_cell = of_cell + of_state * leaving * (1 - squashed * squashed)
    found = torch.empty_like(opened)
    one, two, three, four = found.chunk(4, -1)
    one.copy_(of_cell * new * entering * (1 - entering))
    two.copy_(of_cell * before * keeping * (1 - keeping))
    three.copy_(of_cell * entering * (1 - new * new))
    four.copy_(of_state * squashed * leaving * (1 - leaving))
    return found, of_cell * keeping


class _Gru(torch.autograd.Function):
    """n = tanh(x_n + r (h U_n + b_n)), h' = (1 - z) n + z h."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, hidden: Tensor, bias: Tensor, start: Tensor) -> Tensor:
        models, batch, _, width = gates.shape
        dim = hidden.shape[1]
        state, kept, states = start, [], []
        for now in gates.flatten(0, 1).unbind(1):
            before = torch.baddbmm(bias[:, None], state, hidden).view(-1, width)
            flat = state.reshape(-1, dim)
            if gates.is_cuda:
                here, opened = torch.ops.aten._thnn_fused_gru_cell(now, before, flat)
            else:
                both = (now + before)[:, : 2 * dim].sigmoid()
                reset, update = both.chunk(2, -1)
                ours = before[:, 2 * dim :]
                new = (now[:, 2 * dim :] + reset * ours).tanh()
                here = new + update * (flat - new)
                opened = torch.cat([both, new, ours], -1)
            state = here.view(models, batch, dim)
            kept.append(opened)
            states.append(state)
        whole = torch.stack(states, 2)
        ctx.save_for_backward(hidden, start, whole, *kept)
        return whole

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(ctx: Any, of_states: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        hidden, start, states, *kept = ctx.saved_tensors
        models, batch, units, dim = states.shape
        back = hidden.transpose(1, 2)
        carried = torch.zeros_like(start)
        of_now: list[Tensor] = []
        of_ours: list[Tensor] = []
        for unit in reversed(range(units)):
            of_state = (of_states[:, :, unit] + carried).view(-1, dim)
            if states.is_cuda:
                fused = torch.ops.aten._thnn_fused_gru_cell_backward(of_state, kept[unit], False)
                now, ours, passed = fused[:3]
            else:
                state = (states[:, :, unit - 1] if unit else start).reshape(-1, dim)
                now, ours, passed = _gru_back(of_state, state, kept[unit])
            of_now.append(now.view(models, batch, -1))
            of_ours.append(ours.view(models, batch, -1))
            carried = passed.view_as(start) + of_ours[-1] @ back
        of_before = torch.stack(of_ours[::-1], 2)
        before = torch.cat([start[:, :, None], states[:, :, :-1]], 2)
        of_hidden = before.flatten(1, 2).transpose(1, 2) @ of_before.flatten(1, 2)
        return torch.stack(of_now[::-1], 2), of_hidden, of_before.sum((1, 2)), carried


def _gru_back(of_state: Tensor, state: Tensor, kept: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    reset, update, new, ours = kept.chunk(4, -1)
    of_new = of_state * (1 - update) * (1 - new * new)
    of_reset = of_new * ours * reset * (1 - reset)
    of_update = of_state * (state - new) * update * (1 - update)
    of_now = torch.cat([of_reset, of_update, of_new], -1)
    of_ours = torch.cat([of_reset, of_update, of_new * reset], -1)
    return of_now, of_ours, of_state * update
