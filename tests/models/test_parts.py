"""Recurrent encoders on a processor: texts beside padding equal packed texts."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from heedful.models import parse
from heedful.models.parts import Recurrent, _packed, _padded

LENGTHS = torch.tensor([7, 1, 4, 7, 2])


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("encoder", ["lstm", "bilstm", "gru", "bigru"])
def test_padded_texts_have_the_states_and_gradients_of_packed_ones(
    encoder: str, layers: int
) -> None:
    torch.manual_seed(0)
    config = replace(parse(f"{encoder}+additive", embedding_dim=5, width=6).model, layers=layers)
    recurrent = Recurrent(config, 5).double()
    mask = torch.arange(9) < LENGTHS[:, None]  # two columns that no text reaches
    inputs = torch.randn(*mask.shape, 5, dtype=torch.float64)
    inputs[~mask] = torch.nan
    factors = torch.randn(*mask.shape, 6, dtype=torch.float64)

    def run(way: object) -> tuple[Tensor, list[Tensor]]:
        leaf = inputs.clone().requires_grad_()
        states = way(recurrent.cells, leaf, mask)
        wanted = [leaf, *recurrent.parameters()]
        return states.detach(), list(torch.autograd.grad((states * factors).sum(), wanted))

    (states, slopes), (packed, expected) = run(_padded), run(_packed)
    torch.testing.assert_close(states, packed, rtol=0, atol=1e-10)
    assert not states[~mask].any()
    for slope, wanted in zip(slopes, expected, strict=True):
        torch.testing.assert_close(slope, wanted, rtol=0, atol=1e-10)


def test_time_for_gradients_does_not_grow_with_the_square_of_the_length() -> None:
    """What is allocated for a backward pass: packed texts take the whole batch at every step."""
    config = parse("lstm+additive", embedding_dim=8, width=8).model
    recurrent = Recurrent(config, 8)

    def allocated(length: int) -> int:
        inputs = torch.randn(2, length, 8, requires_grad=True)
        states = recurrent(inputs, torch.ones(2, length, dtype=torch.bool))
        with torch.profiler.profile(profile_memory=True) as profile:
            states.sum().backward()
        grown = (max(event.self_cpu_memory_usage, 0) for event in profile.key_averages())
        return sum(grown)

    assert allocated(160) < 3 * allocated(80)
