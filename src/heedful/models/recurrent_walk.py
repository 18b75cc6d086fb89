"""An LSTM as two kernels, one forward and one back: what is the same whichever kernels they are.

The kernels fill tensors that are made here, in the order of `recurrent.lstm`; the gradient of the
recurrent weights is one product over all steps, as in the loop of launches. Kernels come from a
compiler on the machine they run on, so each pair is asked once whether it agrees with the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from heedful.runs.memory import is_out_of_memory

CHECKED = (2, 33, 7), (2, 9, 3)
"""Models, texts and units of the comparisons with the loop: whole and broken blocks of texts, and
the smaller block of a few, which is compiled by itself."""


CELLS = 4
"""The place of the cells [model batch unit dim] among the tensors of a kernel, either way."""


@dataclass(frozen=True)
class Walk:
    """A pair of kernels, called as `recurrent.in_steps` is."""

    forward: Callable[..., None]
    """From gates, hidden and start: fills states, cells and opened gates."""
    back: Callable[..., None]
    """From the gradients of states and last cell, hidden, start, cells and opened: fills those of
    gates and start."""
    fits: Callable[[int], bool]
    """Whether the kernels are written for states of this width."""
    tolerance: float
    """How far values and gradients may be from the loop's, relative to their norm."""

    def __call__(
        self,
        gates: Float[Tensor, "model batch unit gate"],
        hidden: Float[Tensor, "model dim gate"],
        start: Float[Tensor, "2 model batch dim"],
    ) -> tuple[Float[Tensor, "model batch unit dim"], Float[Tensor, "model batch dim"]]:
        """States over time and the last cell, from the gates' inputs and first state and cell."""
        states, last = _Walk.apply(self, gates, hidden, start)  # type: ignore[no-untyped-call]
        return states, last


def launched(kernel: Any, sizes: Callable[[int, int], dict[str, Any]]) -> Callable[..., None]:
    """A Triton kernel as a function of its tensors: one program a model and block of its texts.

    `sizes` are those of its tiles, from the width of the states and the number of texts.
    """

    def launch(*tensors: Tensor) -> None:
        models, batch, units, dim = tensors[CELLS].shape
        tiles = sizes(dim, batch)
        kernel[models, -(-batch // tiles["BLOCK"])](*tensors, batch, units, **tiles)

    return launch


class _Walk(torch.autograd.Function):
    """What `recurrent._Lstm` computes, in two launches."""

    @staticmethod
    def forward(
        ctx: Any, walk: Walk, gates: Tensor, hidden: Tensor, start: Tensor
    ) -> tuple[Tensor, Tensor]:
        models, batch, units, _ = gates.shape
        gates, hidden, start = gates.contiguous(), hidden.contiguous(), start.contiguous()
        states = gates.new_empty(models, batch, units, hidden.shape[1])
        cells, opened = torch.empty_like(states), torch.empty_like(gates)
        walk.forward(gates, hidden, start, states, cells, opened)
        ctx.walk = walk
        ctx.save_for_backward(hidden, start, states, cells, opened)
        return states, cells[:, :, -1].clone()

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(
        ctx: Any, of_states: Tensor, of_last: Tensor
    ) -> tuple[None, Tensor, Tensor, Tensor]:
        hidden, start, states, cells, opened = ctx.saved_tensors
        of_gates, of_start = torch.empty_like(opened), torch.empty_like(start)
        ctx.walk.back(
            of_states.contiguous(), of_last.contiguous(), hidden, start, cells, opened, of_gates,
            of_start,
        )  # fmt: skip
        before = torch.cat([start[0][:, :, None], states[:, :, :-1]], 2)
        of_hidden = before.flatten(1, 2).transpose(1, 2) @ of_gates.flatten(1, 2)
        return None, of_gates, of_hidden, of_start


@cache
def works(walk: Walk, loop: Callable[..., Any], dim: int, device: str) -> bool:
    """Whether the kernels agree with the loop on this device, values and gradients; asked once."""
    if not walk.fits(dim):
        return False
    return all(_agrees(walk, loop, dim, device, *sizes) for sizes in CHECKED)


def _agrees(
    walk: Walk, loop: Callable[..., Any], dim: int, device: str, models: int, batch: int, units: int
) -> bool:
    """Whether kernels and loop answer alike in a layer of these sizes."""
    shapes = ((models, batch, units, 4 * dim), (models, dim, 4 * dim), (2, models, batch, dim))
    scales = (1.0, dim**-0.5, 0.5)  # of trained layers
    draw = torch.Generator(device).manual_seed(0)
    given = [
        scale * torch.randn(shape, generator=draw, device=device)
        for shape, scale in zip(shapes, scales, strict=True)
    ]
    try:
        found = [_answers(function, given) for function in (walk, loop)]
    except Exception as error:  # whatever the compiler or the driver says: the loop is there
        if is_out_of_memory(error):  # says nothing of the kernel, and the answer is kept
            raise
        return False
    return all(_distance(one, two) < walk.tolerance for one, two in zip(*found, strict=True))


def _answers(function: Callable[..., Any], given: list[Tensor]) -> list[Tensor]:
    """Values and gradients of an LSTM."""
    leaves = [part.clone().requires_grad_() for part in given]
    with torch.enable_grad():
        states, last = function(*leaves)
        total = states.square().sum() + last.sin().sum()
    return [states.detach(), last.detach(), *torch.autograd.grad(total, leaves)]


def _distance(one: Tensor, two: Tensor) -> float:
    """|one - two| / |two|; nan, and so never small, where a value is."""
    return float((one - two).norm() / two.norm())
