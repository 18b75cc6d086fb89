"""Integrals along paths that are steep somewhere, against closed forms."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from heedful.importance.steep import integral

SHARES = torch.tensor([0.7, -0.2, 0.5], dtype=torch.float64)


class Switch:
    """A height σ((s - at) · slope) that three tokens share in; counts the points asked."""

    def __init__(self, at: float, slope: float) -> None:
        self.at, self.slope, self.points = at, slope, 0

    def height(self, s: Tensor) -> Tensor:
        return ((s - self.at) * self.slope).sigmoid()

    def slopes(self, s: Tensor) -> Tensor:
        self.points += len(s)
        p = self.height(s)
        return (p * (1 - p) * self.slope)[:, None] * SHARES

    def exact(self) -> Tensor:
        ends = self.height(torch.tensor([0.0, 1.0], dtype=torch.float64))
        return (ends[1] - ends[0]) * SHARES


@pytest.mark.parametrize("slope", [1.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("at", [0.0, 0.3, 0.4975, 0.99])
def test_a_steep_place_is_found_wherever_it_is(at: float, slope: float) -> None:
    path = Switch(at, slope)
    found = integral(path.slopes, path.height, 0.01, 500)
    torch.testing.assert_close(found, path.exact(), rtol=0, atol=0.01)
    assert path.points <= 500


def test_two_steep_places_are_found_where_tokens_cancel() -> None:
    """The height comes back to where it was: only pieces of the path show that it ever rose."""
    up, down = Switch(0.31, 3e4), Switch(0.62, 3e4)

    def slopes(s: Tensor) -> Tensor:
        return torch.stack([up.slopes(s).sum(-1), -down.slopes(s).sum(-1)], 1)

    found = integral(slopes, lambda s: up.height(s) - down.height(s), 1e-3, 960)
    torch.testing.assert_close(found, torch.tensor([1.0, -1.0]).double(), rtol=0, atol=2e-3)


def test_points_are_no_more_than_were_allowed() -> None:
    for most in (28, 50, 100):
        path = Switch(0.4975, 1e6)
        integral(path.slopes, path.height, 1e-9, most)
        assert 28 <= path.points <= most


def test_a_jump_that_no_points_can_resolve_ends() -> None:
    path = Switch(0.4975, 1e15)
    found = integral(path.slopes, path.height, 0.01, 100_000)
    assert torch.isfinite(found).all()
    assert path.points < 1_000
