"""Tracing: conservation, invariances and closed forms, with explicit matrices as the oracle."""

from __future__ import annotations

import pytest
import torch

from heedful.errors import InputError, UnsupportedModel
from heedful.models import tracing
from heedful.models.tracing import Explicit, Fused, LayerStack, evenly, lat, rollout, trace

LAYERS, HEADS = 4, 3


@pytest.fixture(autouse=True, params=["fused", "short"])
def _both_ways(request, monkeypatch):
    """Every claim holds on fused attention and on the matrices that short texts are given."""
    if request.param == "fused":
        monkeypatch.setattr(tracing, "FEW", 0)


def stack_of(tokens=6, lengths=(6, 4, 1), dtype=torch.float64, seed=0):
    random = torch.Generator().manual_seed(seed)
    mask = torch.arange(tokens) < torch.tensor(lengths)[:, None]
    layers = tuple(
        Fused(
            2 * torch.randn(len(lengths), HEADS, tokens, 8, generator=random, dtype=dtype),
            2 * torch.randn(len(lengths), HEADS, tokens, 8, generator=random, dtype=dtype),
            mask[:, None, None],
        )
        for _ in range(LAYERS)
    )
    scores = torch.randn(mask.shape, generator=random, dtype=dtype)
    return LayerStack(layers, scores.masked_fill(~mask, -torch.inf).softmax(-1), mask)


def chain(stack, residual=0.0, averaged=False):
    """The product of matrices first, then the start: α_L ⋯ α_1."""
    eye = torch.eye(stack.mask.shape[1], dtype=torch.float64)
    product = eye
    for layer in reversed(stack.layers):
        attention = layer.matrix().double()
        attention = attention.mean(1, keepdim=True) if averaged else attention
        product = product @ (residual * eye + (1 - residual) * attention)
    return (stack.pooling.double()[:, None, None] @ product)[..., 0, :]


@pytest.mark.parametrize("residual", [0.0, 0.5, 0.25])
@pytest.mark.parametrize("heads", ["separate", "averaged"])
def test_it_equals_the_product_of_the_matrices(residual, heads):
    stack = stack_of()
    found = trace(stack.layers, stack.pooling, residual=residual, heads=heads)
    wanted = chain(stack, residual, heads == "averaged")
    assert torch.allclose(found.input, wanted, atol=1e-14)
    explicit = [Explicit(layer.matrix()) for layer in stack.layers]
    by_matrices = trace(explicit, stack.pooling, residual=residual, heads=heads)
    assert torch.allclose(found.shares, by_matrices.shares, atol=1e-14)


@pytest.mark.parametrize(("dtype", "close"), [(torch.float64, 1e-14), (torch.float32, 2e-6)])
def test_nothing_is_lost_negative_or_left_on_padding(dtype, close):
    stack = stack_of(dtype=dtype)
    for found in (lat(stack), rollout(stack)):
        assert (found.shares.sum(-1) - 1).abs().max() < close
        assert (found.shares >= 0).all()
        assert (found.shares.masked_select(~stack.mask[:, None]) == 0).all()
    assert (lat(stack).total.sum(-1) - HEADS).abs().max() < 4 * close


def test_lat_and_rollout_are_settings():
    stack = stack_of()
    assert torch.equal(lat(stack).shares, trace(stack.layers, stack.pooling).shares)
    wanted = trace(stack.layers, stack.pooling, residual=0.5, heads="averaged").total
    assert torch.equal(rollout(stack).total, wanted)


def test_a_longer_batch_changes_nothing():
    short = stack_of(4, (4, 3))
    pad = torch.nn.functional.pad
    mask = pad(short.mask, (0, 5))
    layers = tuple(
        Fused(pad(one.query, (0, 0, 0, 5), value=3.0), pad(one.key, (0, 0, 0, 5), value=-2.0),
              mask[:, None, None])
        for one in short.layers
    )  # fmt: skip
    longer = LayerStack(layers, pad(short.pooling, (0, 5)), mask)
    assert torch.allclose(lat(longer).shares[..., :4], lat(short).shares, atol=1e-15)


def test_permuting_tokens_permutes_shares():
    stack = stack_of(6, (6, 6))
    order = torch.randperm(6, generator=torch.Generator().manual_seed(1))
    moved = LayerStack(
        tuple(Fused(one.query[:, :, order], one.key[:, :, order]) for one in stack.layers),
        stack.pooling[:, order],
        stack.mask,
    )
    assert torch.allclose(lat(moved).shares, lat(stack).shares[..., order], atol=1e-15)


def test_shares_scale_with_what_is_traced():
    stack = stack_of()
    doubled = trace(stack.layers, 2 * stack.pooling).shares
    assert torch.allclose(doubled, 2 * lat(stack).shares, atol=1e-15)


def test_one_token_gets_the_number_of_heads():
    stack = stack_of(1, (1,))
    assert lat(stack).total.tolist() == [[HEADS]]


def test_a_uniform_layer_forgets_what_lies_above():
    stack = stack_of(6, (6,))
    even = Explicit(torch.full((1, HEADS, 6, 6), 1 / 6, dtype=torch.float64))
    found = trace([even, *stack.layers], stack.pooling)
    assert torch.allclose(found.input, torch.full_like(found.input, 1 / 6), atol=1e-15)


def test_identity_layers_give_the_start_to_every_head():
    stack = stack_of(6, (6,))
    same = Explicit(torch.eye(6, dtype=torch.float64).expand(1, HEADS, 6, 6))
    assert torch.allclose(trace([same] * 3, stack.pooling).total, HEADS * stack.pooling, atol=1e-15)


def test_all_residual_gives_the_start_back():
    stack = stack_of()
    found = trace(stack.layers, stack.pooling, residual=1.0)
    assert torch.equal(found.input, stack.pooling[:, None].expand(-1, HEADS, -1))


def test_an_even_start_is_a_distribution_over_tokens():
    mask = torch.tensor([[True, True, False], [True, True, True]])
    third = 1 / 3  # in float32 it is 3e-8 away, and so would be a trace that starts from it
    assert evenly(mask).tolist() == [[0.5, 0.5, 0.0], [third, third, third]]


def test_rows_that_do_not_sum_to_one_are_refused_by_layer():
    stack = stack_of(6, (6,))
    scores = Explicit(torch.full((1, HEADS, 6, 6), 0.3, dtype=torch.float64))
    with pytest.raises(UnsupportedModel, match="layer 1"):
        trace([stack.layers[0], scores, stack.layers[1]], stack.pooling)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [({"residual": 1.5}, "between 0 and 1"), ({"heads": "mean"}, "separate"), ({}, "no")],
)
def test_bad_settings_are_named(options, sentence):
    stack = stack_of()
    with pytest.raises(InputError, match=sentence):
        trace(stack.layers if options else [], stack.pooling, **options)
