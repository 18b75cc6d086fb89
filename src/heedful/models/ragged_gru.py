"""A GRU over texts that lie one after the other without padding, many models at once.

Every direction of every model is a walk of its own. On a GPU one kernel makes all steps of all
walks (`ragged_kernel`); elsewhere, and where that kernel cannot be had or does not agree, the
texts are padded and walked together by `recurrent.gru`.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from heedful.models.recurrent import gru
from heedful.runs.memory import is_out_of_memory

TOLERANCE = 1e-4
"""Of the kernel against the loop, relative to the norm; products are in three passes of TF32."""


class RaggedLayout(NamedTuple):
    """How each model's units fall into sequences that lie one after the other.

    Units beyond a model's own number are padding; they belong to a sequence of length 0.
    """

    starts: Int[Tensor, "model sequence"]
    lengths: Int[Tensor, "model sequence"]
    sequence: Int[Tensor, "model unit"]
    """The sequence of each unit; the number of sequences for padding."""
    place: Int[Tensor, "model unit"]
    """Position within the sequence, from 0."""
    left: Int[Tensor, "model unit"]
    """Units that follow in the sequence; -1 for padding."""
    longest: int
    """No sequence has more units."""

    @property
    def is_unit(self) -> Bool[Tensor, "model unit"]:
        """What is no padding."""
        return self.left >= 0


def layout_of(lengths: Int[Tensor, "model sequence"], units: int, longest: int) -> RaggedLayout:
    """The layout of sequences of these lengths in rows of so many units; asks no device."""
    ends = lengths.cumsum(1)
    starts = ends - lengths
    position = torch.arange(units, device=lengths.device).expand(len(lengths), -1).contiguous()
    sequence = torch.searchsorted(ends, position, right=True)
    is_unit = sequence < lengths.shape[1]
    inside = sequence.clamp_max(lengths.shape[1] - 1)
    place = torch.where(is_unit, position - starts.gather(1, inside), 0)
    left = torch.where(is_unit, lengths.gather(1, inside) - 1 - place, -1)
    return RaggedLayout(starts, lengths, sequence, place, left, longest)


def ragged_gru(
    gates: Float[Tensor, "walk unit gate"],
    hidden: Float[Tensor, "walk dim gate"],
    bias: Float[Tensor, "walk gate"],
    layout: RaggedLayout,
) -> Float[Tensor, "walk unit dim"]:
    """States at every unit, zero at padding, from the inputs' share of the gates.

    Walks are directions × models, the forward ones first; gates in the library's order.
    """
    kernel = None
    if gates.is_cuda and gates.dtype == torch.float32:
        kernel = _kernel(hidden.shape[1], str(gates.device))
    return (kernel or padded)(gates, hidden, bias, layout)


def padded(gates: Tensor, hidden: Tensor, bias: Tensor, layout: RaggedLayout) -> Tensor:
    """The same, with the texts padded and turned: a few launches for every place in them."""
    models, sequences = layout.lengths.shape
    steps = torch.arange(layout.longest, device=gates.device)
    last = (layout.lengths - 1).clamp_min(0)[..., None]
    forwards = steps.minimum(last)
    both = [forwards, (last - steps).clamp_min(0)][: len(gates) // models]
    where = torch.cat([layout.starts[..., None] + one for one in both]).flatten(1)
    where = where.clamp_max(gates.shape[1] - 1)
    seen = gates.gather(1, where[..., None].expand(-1, -1, gates.shape[-1]))
    states = gru(seen.view(len(gates), sequences, layout.longest, -1), hidden, bias)
    row = layout.sequence.clamp_max(sequences - 1) * layout.longest
    back = [row + layout.place, row + layout.left.clamp_min(0)][: len(both)]
    found = states.flatten(1, 2).gather(
        1, torch.cat(back)[..., None].expand(-1, -1, states.shape[-1])
    )
    return found * layout.is_unit.repeat(len(both), 1)[..., None]


class _Walked(torch.autograd.Function):
    """The walks by the kernels of `ragged_kernel`, forward and back."""

    @staticmethod
    def forward(
        ctx: Any, gates: Tensor, hidden: Tensor, bias: Tensor, layout: RaggedLayout
    ) -> Tensor:
        from heedful.models import ragged_kernel

        gates, hidden, bias = gates.contiguous(), hidden.contiguous(), bias.contiguous()
        states, opened = ragged_kernel.walk(gates, hidden, bias, layout.starts, layout.lengths)
        ctx.layout = layout
        ctx.save_for_backward(hidden, states, opened)
        return states

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(ctx: Any, of_states: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        from heedful.models import ragged_kernel

        layout = ctx.layout
        hidden, states, opened = ctx.saved_tensors
        of_gates, of_before = ragged_kernel.walk_back(
            of_states.contiguous(), hidden, states, opened, layout.starts, layout.lengths
        )
        of_hidden = _before(states, layout).transpose(1, 2) @ of_before
        return of_gates, of_hidden, of_before.sum(1), None


def _before(states: Tensor, layout: RaggedLayout) -> Tensor:
    """The state that each step began from: that of the unit before in its walk, or zero."""
    models = len(layout.lengths)
    found = torch.zeros_like(states)
    found[:models, 1:] = states[:models, :-1] * (layout.place[:, 1:] > 0)[..., None]
    if len(states) > models:
        found[models:, :-1] = states[models:, 1:] * (layout.left[:, :-1] > 0)[..., None]
    return found


def kernel_walk(gates: Tensor, hidden: Tensor, bias: Tensor, layout: RaggedLayout) -> Tensor:
    """`ragged_gru` by the kernels."""
    found: Tensor = _Walked.apply(gates, hidden, bias, layout)  # type: ignore[no-untyped-call]
    return found


@cache
def _kernel(dim: int, device: str) -> Any:
    """`kernel_walk`, where its kernels can be had and agree with the loop; says so if not."""
    try:
        from heedful.models import ragged_kernel
    except ImportError:
        why = "triton is not installed"
    else:
        why = f"its kernel does not compute it rightly on {device}"
        if dim <= ragged_kernel.WIDEST and agrees(dim, device):
            return kernel_walk
    warnings.warn(
        f"A GRU of {dim} states runs as a loop of launches, many times slower: {why}.",
        stacklevel=2,
    )
    return None


def agrees(dim: int, device: str) -> bool:
    """Whether kernels and loop answer alike, values and gradients, in a layer of this width."""
    draw = torch.Generator(device).manual_seed(0)
    lengths = torch.randint(1, 9, (2, 35), generator=draw, device=device)
    units = int(lengths.sum(1).max())
    layout = layout_of(lengths, units, 8)
    shapes = ((4, units, 3 * dim), (4, dim, 3 * dim), (4, 3 * dim))
    given = [
        scale * torch.randn(shape, generator=draw, device=device)
        for shape, scale in zip(shapes, (1.0, dim**-0.5, 0.3), strict=True)
    ]
    try:
        found = [_answers(function, given, layout) for function in (kernel_walk, padded)]
    except Exception as error:  # whatever the compiler or the driver says: the loop is there
        if is_out_of_memory(error):  # says nothing of the kernel, and the answer is kept
            raise
        return False
    return all(
        float((one - two).norm() / two.norm()) < TOLERANCE for one, two in zip(*found, strict=True)
    )


def _answers(function: Any, given: list[Tensor], layout: RaggedLayout) -> list[Tensor]:
    leaves = [part.clone().requires_grad_() for part in given]
    with torch.enable_grad():
        states = function(*leaves, layout)
        weights = torch.linspace(-1, 1, states.shape[-1], device=states.device)
        total = (states.square() + states * weights).sum()
    return [states.detach(), *torch.autograd.grad(total, leaves)]
