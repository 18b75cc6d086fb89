"""What is left of a trace's start, by hand and by brute force."""

import numpy as np
import pytest
import torch
from torch import nn

from heedful.audits.forgetting import contraction, cosine, forgetting, streams
from heedful.models.tracing import Explicit, LayerStack, trace


def test_the_coefficient_of_two_rows_is_how_much_they_do_not_share() -> None:
    rows = torch.tensor([[[[0.7, 0.3, 0.0], [0.2, 0.3, 0.5], [0.0, 0.0, 1.0]]]], dtype=torch.double)
    two = torch.tensor([[True, True, False]])
    assert contraction(rows, two).item() == pytest.approx(0.5)
    assert contraction(rows, torch.ones_like(two)).item() == pytest.approx(1.0)
    assert contraction(rows, torch.tensor([[True, False, False]])).item() == 0


def _stack(heads: int = 3, tokens: int = 5, layers: int = 4) -> LayerStack:
    generator = torch.Generator().manual_seed(0)
    mask = torch.tensor([[True] * tokens, [True] * (tokens - 2) + [False] * 2])
    hidden = torch.where(mask, 0.0, -torch.inf).double()

    def rows(*shape: int) -> torch.Tensor:
        drawn = torch.randn(*shape, generator=generator, dtype=torch.double)
        return (2 * drawn + hidden.view(2, *[1] * (len(shape) - 2), tokens)).softmax(-1)

    matrices = [rows(2, heads, tokens, tokens) for _ in range(layers)]
    return LayerStack(tuple(map(Explicit, matrices)), rows(2, tokens), mask)


def test_no_two_starts_end_further_apart_than_the_chain_allows_and_two_reach_it() -> None:
    stack = _stack()
    found = forgetting(stack, trace(stack.layers, stack.pooling))
    ends = []  # of every start at one real position, in the first document
    for place in range(5):
        start = torch.zeros(2, 5, dtype=torch.double)
        start[:, place] = 1
        ends.append(trace(stack.layers, start).input[0])
    apart = torch.stack([(a - b).abs().sum(-1) / 2 for a in ends for b in ends]).amax(0)
    assert found["chain 1"][0].item() == pytest.approx(apart.mean().item(), abs=1e-12)
    assert found["chain 3"][0] >= found["chain 1"][0]
    assert found["chain 4"][0] == found["contraction 4"][0] >= found["chain 3"][0]
    assert found["chain 1"][0] > 0


def test_apart_falls_to_what_the_start_still_decides() -> None:
    stack = _stack()
    traced = trace(stack.layers, stack.pooling)
    found = forgetting(stack, traced)
    even = stack.mask[0].double() / 5
    by_hand = [(row - even).abs().sum().item() / 2 for row in traced.input[0]]
    assert found["apart 0"][0].item() == pytest.approx(np.mean(by_hand))
    assert (found["apart 4"] <= found["chain 1"] + 1e-12).all()


def test_cosine_is_the_mean_over_pairs_and_padding_counts_for_nothing() -> None:
    states = torch.randn(2, 4, 6, dtype=torch.double, generator=torch.Generator().manual_seed(1))
    mask = torch.tensor([[True, True, True, False], [True, False, False, False]])
    pairs = [
        torch.cosine_similarity(states[0, i], states[0, j], dim=0).item()
        for i in range(3)
        for j in range(3)
        if i != j
    ]
    found = cosine(states, mask)
    assert found[0].item() == pytest.approx(np.mean(pairs))
    assert found[1].isnan()


def test_streams_are_lent_and_given_back() -> None:
    layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    x = torch.randn(1, 2)
    with streams(layers) as seen:
        y = layers[1](layers[0](x))
    torch.testing.assert_close(seen, [x, layers[0](x), y])
    layers[1](layers[0](x))
    assert len(seen) == 3
