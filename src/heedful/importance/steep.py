"""An integral along a path that is steep somewhere: halved where it does not add up."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

FIRST_PIECES, POINTS = 4, 7
"""The path is cut in so many pieces at first; in each, so many points of Gauss and Legendre."""
SHORTEST = 2.0**-20
"""Of a piece; the points of a shorter one are hardly told apart in 32 bits."""


class _Pieces(NamedTuple):
    start: Float[Tensor, " piece"]
    size: Float[Tensor, " piece"]
    found: Float[Tensor, "piece token"]
    off: Float[Tensor, " piece"]


def integral(
    slopes: Callable[[Float[Tensor, " point"]], Float[Tensor, "point token"]],
    height: Callable[[Float[Tensor, " point"]], Float[Tensor, " point"]],
    error: float,
    most: int,
) -> Float[Tensor, " token"]:
    """∫₀¹ of the slopes of each token, which sum to the slope of the height.

    A piece is off by what its sum is from the rise of the height, or by a quarter of what a token
    moved when it was halved, if that is more. The pieces that are off most are halved until all are
    off by no more than `error` together, with at most so many points in all.
    """
    nodes, weights = (
        torch.from_numpy(part) / 2 for part in np.polynomial.legendre.leggauss(POINTS)
    )

    def asked(start: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
        """Of each piece: the integral, and how far its sum is from the rise of the height."""
        at = start[:, None] + size[:, None] * (nodes + 0.5)
        found = slopes(at.flatten()).view(*at.shape, -1)
        found = torch.einsum("n,pnt->pt", weights.to(found), found) * size[:, None].to(found)
        ends, place = torch.unique(torch.cat([start, start + size]), return_inverse=True)
        first, last = height(ends)[place.to(found.device)].view(2, -1)
        return found, (found.sum(-1) - (last - first)).abs()

    size = torch.full((FIRST_PIECES,), 1 / FIRST_PIECES, dtype=torch.float64)
    start = torch.arange(FIRST_PIECES) * size
    found, off = asked(start, size)
    # Whether its tokens are right is known of no piece before it was halved.
    pieces = _Pieces(start, size, found, torch.full_like(off, torch.inf))
    left = most - FIRST_PIECES * POINTS
    while True:
        halved = _furthest_off(pieces, error, left // (2 * POINTS))
        if not bool(halved.any()):
            return pieces.found.sum(0)
        start, size, parent, _ = (part[halved.to(part.device)] for part in pieces)
        start, size = torch.cat([start, start + size / 2]), torch.cat([size, size]) / 2
        found, off = asked(start, size)
        moved = (found.view(2, *parent.shape).sum(0) - parent).abs().amax(-1) / 4
        new = _Pieces(start, size, found, torch.maximum(off, moved.repeat(2)))
        kept = _Pieces(*(part[~halved.to(part.device)] for part in pieces))
        pieces = _Pieces(*(torch.cat(both) for both in zip(kept, new, strict=True)))
        left -= len(start) * POINTS


def _furthest_off(pieces: _Pieces, error: float, most: int) -> Tensor:
    """The pieces to halve, at most so many: all but those that are off by little together."""
    off = pieces.off.cpu()
    if float(off.sum()) <= error:
        return torch.zeros(len(off), dtype=torch.bool)
    order = off.argsort()
    chosen = torch.zeros(len(off), dtype=torch.bool)
    chosen[order[off[order].cumsum(0) > error / 2][-most:] if most else order[:0]] = True
    return chosen & (pieces.size > SHORTEST)
