"""Attention traced down the layers of short sentences: all at once, against a loop over them."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.cases import Disagreement
from benchmarks.table import Row
from benchmarks.timing import side_by_side
from heedful.models.tracing import Explicit, Fused, trace

LAYERS, HEADS, DIM, WORDS = 6, 8, 64, 20
"""Those of the tracing study, on sentences of the mean length of SST."""


def trace_row(sentences: int, repeats: int) -> Row:
    """Tracing from the attention of all layers, against a loop over sentences, heads and layers."""
    generator = torch.Generator().manual_seed(0)

    def drawn() -> Tensor:
        return torch.randn(sentences, HEADS, WORDS, DIM, generator=generator)

    layers = [Fused(drawn(), drawn()) for _ in range(LAYERS)]
    matrices = [layer.matrix() for layer in layers]
    start = torch.randn(sentences, WORDS, generator=generator).softmax(-1)
    given = [Explicit(matrix) for matrix in matrices]
    timed = side_by_side(
        {
            "ours": lambda: trace(given, start).total,
            "from queries": lambda: trace(layers, start).total,
            "loop": lambda: loop(matrices, start),
        },
        repeats,
    )
    for name in ("ours", "from queries"):
        if not torch.allclose(timed[name].result, timed["loop"].result, atol=1e-5):
            raise Disagreement(f"the trace ({name}) differs from the loop over sentences.")
    ours, theirs = timed["ours"].seconds, timed["loop"].seconds
    whole = 1e3 * timed["from queries"].seconds
    return Row(
        f"trace, {sentences} sentences of {WORDS} words, {LAYERS} layers, {HEADS} heads, float32",
        1e3 * ours,
        theirs / ours,
        "loop over sentences, heads and layers",
        f"{theirs / ours / 20:.1f} times the limit of 20: one product per layer instead of "
        f"{sentences * HEADS * LAYERS:,}. Both start from the attention; with softmax and products "
        f"of queries and keys the whole trace takes {whole:.0f} ms.",
        naive=1e3 * theirs,
        at_least=20,
    )


def loop(
    matrices: list[Float[Tensor, "batch head query key"]], start: Float[Tensor, "batch token"]
) -> Float[Tensor, "batch token"]:
    """The same trace one sentence, head and layer at a time, as the published code does."""
    found = []
    for row, pooling in enumerate(start):
        total = torch.zeros_like(pooling)
        for head in range(HEADS):
            share = pooling
            for matrix in reversed(matrices):
                share = share @ matrix[row, head]
            total = total + share
        found.append(total)
    return torch.stack(found)
