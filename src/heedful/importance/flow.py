"""Attention flow: how much can pass from a word to the decision through all layers at once.

The layers of one text are a network: an edge from each position to each one it attends, with
capacity ½ A + ½ I (heads averaged, the residual stream in the other half). What a word is worth is
the largest flow from the position that decides down to the word's pieces (Abnar & Zuidema 2020).
One maximum flow per word over layers × tokens² edges: for single texts.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from heedful.importance.traced import stack_of
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel

MOST_UNITS = 60
"""Longer texts take minutes: the work grows with the fourth power of the length."""
UNIT = 10**8
"""Capacities are whole numbers: this many to one unit of attention."""


def attention_flow(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """The largest flow of attention from where the decision is read to each word."""
    stack = stack_of(model, reading)
    half = [layer.matrix().mean(1).double() / 2 for layer in stack.layers]
    eye = torch.eye(half[0].shape[-1], dtype=torch.float64, device=half[0].device) / 2
    capacity = torch.stack([matrix + eye for matrix in half], 1)
    found = torch.zeros(reading.mask.shape, dtype=torch.float64)
    places = torch.arange(reading.batch.mask.shape[1], device=capacity.device)
    places = places.expand(reading.batch.mask.shape) if stack.place is None else stack.place
    for row, units in enumerate(reading.units.tolist()):
        is_token = reading.batch.mask[row]
        words = [
            places[row, (reading.unit_of_token[row] == unit) & is_token].cpu().numpy()
            for unit in range(units)
        ]
        keys = stack.mask[row].nonzero()[:, 0].cpu().numpy()
        start = stack.pooling[row].double().cpu().numpy()[keys]
        inside = capacity[row].cpu().numpy()[:, keys][:, :, keys]
        index = {int(key): place for place, key in enumerate(keys)}
        targets = [np.array([index[int(key)] for key in word]) for word in words]
        found[row, :units] = torch.from_numpy(flows(inside, start, targets))
    return found.to(reading.attention.device)


def flows(
    capacity: Float64[np.ndarray, "layer query key"],
    start: Float64[np.ndarray, " query"],
    targets: list[np.ndarray],
) -> Float64[np.ndarray, " target"]:
    """The largest flow from the start to each set of inputs, in units of attention.

    Node 0 feeds the top positions with `start`, and a last node is fed by the inputs of a set.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import maximum_flow

    layers, tokens = capacity.shape[:2]
    first, last = 0, 1 + (layers + 1) * tokens

    def node(height: int, token: np.ndarray) -> np.ndarray:
        return np.asarray(1 + height * tokens + token)

    every = np.arange(tokens)
    query, key = np.meshgrid(every, every, indexing="ij")
    sources = [np.full(tokens, first)]
    ends, sizes = [node(layers, every)], [start]
    for height in range(layers):
        sources.append(node(height + 1, query.ravel()))
        ends.append(node(height, key.ravel()))
        sizes.append(capacity[height].ravel())
    found = []
    for target in targets:
        rows = np.concatenate([*sources, node(0, target)])
        columns = np.concatenate([*ends, np.full(len(target), last)])
        whole = np.rint(np.concatenate([*sizes, np.full(len(target), 2.0)]) * UNIT).astype(np.int32)
        graph = coo_array((whole, (rows, columns)), shape=(last + 1, last + 1)).tocsr()
        graph.eliminate_zeros()
        found.append(maximum_flow(graph, first, last).flow_value / UNIT)
    return np.array(found)
