"""Attention over many layers and heads: fused products against explicit matrices; flows."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.errors import InputError, UnsupportedModel
from heedful.importance import explain, methods_of
from heedful.importance.flow import flows
from heedful.models import build, read
from heedful.models.tracing import LayerStack, layers_of
from heedful.models.transformer import TransformerClassifier
from heedful.models.transformer_config import TransformerConfig
from tests.tiny import WORDS, NonLinear, batch_of, chosen, classifier, padded

BATCH = batch_of(((1,), (2, 1), (1, 3, 2), (4, 1)))
LAYERED = (
    "mean-attention",
    "max-attention",
    "last-attention",
    "received-attention",
    "trace",
    "rollout",
    "attention-flow",
)


def transformer() -> TransformerClassifier:
    """Three layers of two heads with weights large enough to attend unevenly."""
    sizes = TransformerConfig(
        embedding_dim=8, layers=3, heads=2, head_dim=4, feed_forward=8, pooling_dims=(4, 4),
        decider_dim=4,
    )  # fmt: skip
    model = build(sizes, WORDS, ("a", "b"), seed=1)
    with torch.no_grad():
        for weight in model.parameters():
            weight *= 2
    return model.double().eval()


def matrices(stack: LayerStack) -> Float[Tensor, "layer batch head query key"]:
    return torch.stack([layer.matrix() for layer in stack.layers])


def test_summaries_of_layers_are_those_of_the_matrices() -> None:
    model = transformer()
    reading = read(model, BATCH)
    stack = layers_of(model, BATCH)
    attention, mask = matrices(stack), BATCH.mask.double()
    row = torch.einsum("bq,lbhqk->lbhk", stack.pooling, attention)
    total = torch.einsum("bq,lbhqk->lbhk", mask / mask.sum(-1, keepdim=True), attention)
    found = explain(model, reading, LAYERED[:4])
    for name, wanted in {
        "mean-attention": row.mean((0, 2)),
        "max-attention": row.amax((0, 2)),
        "last-attention": total[-1].mean(1),
        "received-attention": total.mean((0, 2)),
    }.items():
        torch.testing.assert_close(found[name], wanted * mask, rtol=1e-10, atol=1e-12)
    for name in ("mean-attention", "last-attention", "received-attention"):
        torch.testing.assert_close(found[name].sum(-1), torch.ones(len(BATCH)).double())


@pytest.mark.parametrize("name", LAYERED)
def test_padding_and_the_batch_change_nothing(name: str) -> None:
    model = transformer()
    whole = explain(model, read(model, BATCH), [name])[name]
    for rows in ([3, 0, 2, 1], [1], [2]):
        reading = read(model, padded(chosen(BATCH, rows), 2))
        ours = explain(model, reading, [name])[name]
        for here, there in enumerate(rows):
            units = int(reading.units[here])
            np.testing.assert_allclose(ours[here, :units], whole[there, :units], atol=1e-10)


def test_flows_are_those_of_an_independent_library() -> None:
    generator = np.random.default_rng(0)
    layers, tokens = 3, 5
    attention = generator.dirichlet(np.full(tokens, 0.4), size=(layers, tokens))
    capacity = attention / 2 + np.eye(tokens) / 2
    start = generator.dirichlet(np.ones(tokens))
    targets = [np.array([0]), np.array([1, 3]), np.arange(tokens)]
    found = flows(capacity, start, targets)
    for target, flow in zip(targets, found, strict=True):
        graph = networkx.DiGraph()
        for token in range(tokens):
            graph.add_edge("start", (layers, token), capacity=start[token])
        for height in range(layers):
            for query, key in np.ndindex(tokens, tokens):
                size = capacity[height, query, key]
                graph.add_edge((height + 1, query), (height, key), capacity=size)
        for token in target:
            graph.add_edge((0, int(token)), "end")
        assert flow == pytest.approx(networkx.maximum_flow_value(graph, "start", "end"), abs=1e-6)
    assert found[-1] == pytest.approx(1, abs=1e-6)


def test_through_one_layer_the_flow_is_the_smaller_of_what_is_held_and_what_is_given() -> None:
    capacity = np.array([[[0.75, 0.25], [0.1, 0.9]]])
    found = flows(capacity, np.array([1.0, 0.0]), [np.array([0]), np.array([1])])
    np.testing.assert_allclose(found, [0.75, 0.25], atol=1e-7)


def test_a_model_is_offered_what_it_can_do() -> None:
    flat, stacked = classifier("none+dot"), transformer()
    assert "rollout" not in methods_of(flat)
    assert set(LAYERED) <= set(methods_of(stacked, costly=True))
    assert "attention-flow" not in methods_of(stacked)
    assert "attention-flow" not in methods_of(stacked, costly=True, units=500)
    long = read(stacked, batch_of(((70,),)))
    with pytest.raises(InputError, match="at most 60 units, this one has 70"):
        explain(stacked, long, ["attention-flow"])
    bent = NonLinear(flat, torch.nn.Tanh())
    assert "integrated" not in methods_of(bent)
    assert set(explain(bent, read(bent, BATCH))) == set(methods_of(bent))
    with pytest.raises(UnsupportedModel, match="does not offer rollout"):
        explain(flat, read(flat, BATCH), ["rollout"])
