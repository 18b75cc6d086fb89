"""How much of where a trace began is left lower down, and how alike the states become.

A layer's attention is a matrix P whose rows are distributions. Whatever two traces hold above it,
below they differ (in total variation) by at most δ(P) times as much, δ(P) being the largest total
variation between two of its rows (Dobrushin's coefficient). Of a whole chain of layers, δ is how
far apart two traces can be at all that begin at the top: 0 means that the start is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.models.tracing import LayerStack, Trace, evenly, trace


def contraction(
    rows: Float[Tensor, "batch head query key"], mask: Bool[Tensor, "batch query"]
) -> Float[Tensor, "batch head"]:
    """δ: the largest total variation between two rows of real queries; 0 of a single row."""
    apart = torch.cdist(rows, rows, p=1) / 2
    both = mask[:, None, :, None] & mask[:, None, None, :]
    found: Tensor = apart.masked_fill(~both, 0).amax((-2, -1))
    return found


def forgetting(stack: LayerStack, traced: Trace) -> dict[str, Float[Tensor, " batch"]]:
    """Means over heads for each document; `l` is a layer, the lowest is 1, the highest L.

    `contraction l`: δ of the layer; `chain l`: δ of all layers from the top down to l together;
    `apart l`: total variation on the input between the trace and one that begins at all positions
    alike above layer l, for l = 0 the even distribution itself.
    """
    mask = stack.mask
    found: dict[str, Tensor] = {}
    chain: Tensor | None = None
    for number in range(len(stack.layers), 0, -1):
        rows = stack.layers[number - 1].matrix()
        chain = rows if chain is None else chain @ rows
        found[f"contraction {number}"] = contraction(rows, mask).mean(1)
        found[f"chain {number}"] = contraction(chain, mask).mean(1)
    start = evenly(mask).to(traced.input)
    for number in range(len(stack.layers) + 1):
        begun = trace(stack.layers[:number], start).input if number else start[:, None]
        found[f"apart {number}"] = (traced.input - begun).abs().sum(-1).mean(1) / 2
    return dict(sorted(found.items()))


def cosine(
    states: Float[Tensor, "batch token dim"], mask: Bool[Tensor, "batch token"]
) -> Float[Tensor, " batch"]:
    """Mean cosine between the states of two different tokens; nan of a single token.

    A state of length 0 has the cosine 0 with every other.
    """
    unit = nn.functional.normalize(states, dim=-1).masked_fill(~mask[..., None], 0)
    count = mask.sum(-1).to(states)
    own = unit.square().sum((1, 2))
    return (unit.sum(1).square().sum(-1) - own) / (count * (count - 1))


@contextmanager
def streams(layers: Sequence[nn.Module] | nn.ModuleList) -> Iterator[list[Tensor]]:
    """Lends a list that the next pass fills: what the lowest layer reads, what each layer gives."""
    seen: list[Tensor] = []
    hooks = [layers[0].register_forward_pre_hook(lambda layer, given: seen.append(given[0]))]
    hooks += [
        one.register_forward_hook(lambda layer, given, out: seen.append(out)) for one in layers
    ]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()
