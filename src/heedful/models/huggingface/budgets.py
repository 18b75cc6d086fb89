"""How much a model reads at once, so that what is kept of its layers fits into memory."""

from __future__ import annotations

from typing import Any

from torch import nn

from heedful.models.huggingface.attending import pretrained_parts
from heedful.models.huggingface.layout import Layout

READ_TOKENS = 2**14
"""Tokens of a corpus that are read together."""
MOST_BYTES = 2**32
"""What the passes over one batch may keep of all layers."""
KEPT_STATES = 16
"""Vectors of the width of a state that a layer keeps of each token for a backward pass."""


def batch_tokens(model: nn.Module, layout: Layout, longest: int) -> int:
    """Tokens, padding included, that are best read together, in texts of at most `longest`.

    A model off the attention interface shows its layers as matrices, which must fit.
    """
    if layout.is_on_interface:
        return READ_TOKENS
    matrices = len(layout.layers) * _largest(model, "num_attention_heads")
    return max(min(MOST_BYTES // (4 * matrices * longest), READ_TOKENS), 1)


def gradient_tokens(model: nn.Module, layout: Layout) -> int:
    """Tokens whose way to the decision can be kept for a backward pass to the inputs."""
    table: Any = layout.table
    dim: int = max(_largest(model, "hidden_size"), int(table.weight.shape[-1]))
    return max(MOST_BYTES // (4 * KEPT_STATES * len(layout.layers) * dim), 1)


def _largest(model: nn.Module, size: str) -> int:
    """A size of the model by its configuration; 1 where it does not say."""
    return max((int(getattr(p.config, size, 1)) for p in pretrained_parts(model)), default=1)
