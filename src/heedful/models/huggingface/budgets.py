"""How much a model reads at once, so that what is kept of its layers fits into memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from heedful.models.huggingface.attending import pretrained_parts
from heedful.models.huggingface.layout import Layout

READ_TOKENS = 2**14
"""Tokens of a corpus that are read together."""
READ_WORK = 2**29
"""Tokens × weights of the layers that are read together on a processor: what is asked about them
takes some seconds there, so that an audit is never silent for long."""
CACHED_TOKENS = 2**11
"""Tokens in one pass on a processor: with more, the states of a layer leave its caches."""
PASS_TOKENS = 2**17
"""Tokens in one pass on a card; where they do not fit, half of them are tried."""
MOST_BYTES = 2**32
"""What the passes over one batch may keep of all layers."""
KEPT_STATES = 16
"""Vectors of the width of a state that a layer keeps of each token for a backward pass."""


def pass_tokens(device: torch.device) -> int:
    """Tokens, padding included, of texts that are read again, in one pass."""
    return CACHED_TOKENS if device.type == "cpu" else PASS_TOKENS


def batch_tokens(model: nn.Module, layout: Layout, longest: int, device: torch.device) -> int:
    """Tokens, padding included, that are best read together, in texts of at most `longest`.

    A model off the attention interface shows its layers as matrices, which must fit.
    """
    most = READ_TOKENS
    if device.type == "cpu":
        weights = sum(one.numel() for layer in layout.layers for one in layer.parameters())
        most = min(most, READ_WORK // max(weights, 1))
    if not layout.is_on_interface:
        matrices = len(layout.layers) * _largest(model, "num_attention_heads")
        most = min(most, MOST_BYTES // (4 * matrices * longest))
    return max(most, 1)


def gradient_tokens(model: nn.Module, layout: Layout, device: torch.device) -> int:
    """Tokens whose way to the decision can be kept for a backward pass to the inputs."""
    table: Any = layout.table
    dim: int = max(_largest(model, "hidden_size"), int(table.weight.shape[-1]))
    # A card has room for more; where it has not, half is tried.
    room = MOST_BYTES if device.type == "cpu" else max(MOST_BYTES, _memory(device) // 8)
    most = room // (4 * KEPT_STATES * len(layout.layers) * dim)
    return max(min(most, CACHED_TOKENS) if device.type == "cpu" else most, 1)


def _memory(device: torch.device) -> int:
    """Bytes of a card, and 0 on another device."""
    if device.type != "cuda":
        return 0
    return int(torch.cuda.get_device_properties(device).total_memory)


def _largest(model: nn.Module, size: str) -> int:
    """A size of the model by its configuration; 1 where it does not say."""
    return max((int(getattr(p.config, size, 1)) for p in pretrained_parts(model)), default=1)
