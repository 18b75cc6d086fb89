"""What goes on in every head and layer of one text, in few bytes for the page."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.importance.layers import head_pairs, head_rows
from heedful.importance.traced import is_traceable, stack_of
from heedful.models.huggingface import PretrainedClassifier
from heedful.models.huggingface.nodes import Nodes
from heedful.models.reading import Reading
from heedful.models.tracing import LayerStack, lat
from heedful.models.verbs import AttentiveModel

MOST_UNITS = 160
"""Longer texts are shown without their heads: columns would be narrower than a pixel."""
MOST_PAIRS = 12_000
"""Weights of one text, over all layers, heads and pairs of words, that the page holds."""
MOST_TOKENS = 30
"""The flow of longer texts is not drawn: dots would run together and pages would swell."""
MOST_EDGES = 40_000
"""Lines of one text, over all layers and heads, that a page holds."""


def describe_heads(model: AttentiveModel, reading: Reading) -> dict[int, dict[str, Any]]:
    """The heads of the texts that are short enough, by row; none where the model has one row only.

    `rows` is what the positions that decide give to each unit, [layer head unit]; `pairs` what each
    unit gives to each unit, [layer head query key], where that is not too much. Both as the root of
    the weight in 256 shades.
    """
    short = [row for row, units in enumerate(reading.units.tolist()) if units <= MOST_UNITS]
    if not short or not is_traceable(model):
        return {}
    rows = head_rows(model, reading).cpu().numpy()
    layers, heads = rows.shape[1:3]
    few = [r for r in short if layers * heads * int(reading.units[r]) ** 2 <= MOST_PAIRS]
    pairs = head_pairs(model, reading, few)
    found = {}
    for row in short:
        units = int(reading.units[row])
        entry: dict[str, Any] = {"layers": layers, "heads": heads}
        entry["rows"] = packed(rows[row, :, :, :units])
        if row in pairs:
            entry["pairs"] = packed(pairs[row][:, :, :units, :units].cpu().numpy())
        found[row] = entry
    return found


def flows_of(model: AttentiveModel, reading: Reading) -> dict[int, dict[str, Any]]:
    """Traced attention of the short texts by row, among words and special tokens."""
    short = (reading.units <= MOST_TOKENS).nonzero().flatten().tolist()
    # Batches are of similar length: in a long one matrices are large and little is drawn.
    if not is_traceable(model) or not short or reading.mask.shape[1] > 2 * MOST_TOKENS:
        return {}
    stack = stack_of(model, reading)
    if stack.place is not None:
        nodes = model.nodes(reading) if isinstance(model, PretrainedClassifier) else None
    elif stack.mask.shape != reading.mask.shape or bool((stack.mask != reading.mask).any()):
        nodes = None
    else:
        keys = torch.arange(stack.mask.shape[1], device=stack.mask.device)
        nodes = Nodes(keys.expand(stack.mask.shape).masked_fill(~stack.mask, -1), reading.texts)
    if nodes is None:
        return {}
    cells = len(stack.layers) * stack.layers[0].heads
    few = [row for row in short if cells * len(nodes.names[row]) ** 2 <= MOST_EDGES]
    flows = describe_flows(stack, {row: nodes.names[row] for row in few}, nodes.of_key)
    return {row: packed_flow(flow) for row, flow in flows.items()}


def describe_flow(stack: LayerStack, row: int, words: Sequence[str]) -> dict[str, Any]:
    """One text of a batch as plain data: words, pooling, shares at every height, and the flow.

    `flow[layer][head][query][key]` is α_(key→query) · A_query, what goes along an edge of the
    trace; layers from the lowest up, like the heights of `shares`, whose last one is the start.
    """
    return describe_flows(stack, {row: words})[row]


def describe_flows(
    stack: LayerStack,
    texts: Mapping[int, Sequence[str]],
    node_of_key: Int[Tensor, "batch key"] | None = None,
) -> dict[int, dict[str, Any]]:
    """The same of several texts, by their rows in the batch.

    Where keys are pieces of what the words name, `node_of_key` says which of these each one belongs
    to (-1: none): what flows among pieces is summed.
    """
    if not texts:
        return {}
    shares = lat(stack).shares.double().cpu().numpy()
    attention = [layer.matrix().double().cpu().numpy() for layer in stack.layers]
    pooling = stack.pooling.double().cpu().numpy()
    found = {}
    for row, words in texts.items():
        keys = (
            np.arange(shares.shape[-1]) if node_of_key is None else node_of_key[row].cpu().numpy()
        )
        owner = (keys[:, None] == np.arange(len(words))).astype(np.float64)
        flow = np.stack([one[row] for one in attention]) * shares[1:, row, :, :, None]
        flow, held = owner.T @ flow @ owner, shares[:, row] @ owner
        found[row] = {
            "words": list(words),
            "pooling": (pooling[row] @ owner).round(6).tolist(),
            "shares": held.round(6).tolist(),
            "flow": flow.round(6).tolist(),
        }
    return found


def packed_flow(flow: Mapping[str, Any]) -> dict[str, Any]:
    """The same in few bytes, for a page: edges as the root of their flow in 256 shades."""
    edges = np.asarray(flow["flow"])
    return {
        "layers": edges.shape[0],
        "heads": edges.shape[1],
        "words": list(flow["words"]),
        "edges": packed(edges),
        "shares": np.asarray(flow["shares"]).round(4).tolist(),
    }


def packed(weights: Float[np.ndarray, "..."]) -> str:
    """Weights from 0 to 1 as one byte each: small ones keep their differences under the root."""
    shades = np.round(255 * np.sqrt(np.clip(weights, 0, 1))).astype(np.uint8)
    return base64.b64encode(shades.tobytes()).decode("ascii")
