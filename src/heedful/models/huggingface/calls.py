"""One call of attention inside a forward pass: what it was given, and what can be made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from heedful.errors import UnsupportedModel

HIDDEN = -3e4
"""Scores below this are hidden keys: models mask by -65504 or far less, and no score is so low."""
UNDERSTOOD = frozenset({"position_ids", "cache_position"})
"""Tensors that the library passes on to attention and that attention itself does not use."""
CHANGING = ("s_aux", "head_mask")
"""Arguments that change the weights in a way that is not rebuilt here."""


@dataclass(frozen=True, eq=False)
class Call:
    """The queries, keys and values of one attention, with grouped keys expanded."""

    number: int
    """Place among the calls of one forward pass: models may share one module among layers."""
    query: Float[Tensor, "batch head query dim"]
    key: Float[Tensor, "batch head key dim"]
    value: Float[Tensor, "batch head key dim"]
    mask: Bool[Tensor, "..."] | Float[Tensor, "..."] | None
    """True where a key may be attended, or a number added to the scores."""
    bias: Float[Tensor, "..."] | None
    """What the model adds to the scores by relative position."""
    is_causal: bool
    """Keys after the query are hidden although no mask says so."""
    scale: float
    dropout: float
    is_fused: bool
    """Whether the model runs on fused kernels, so that its output should come from these."""
    module: nn.Module = field(repr=False)
    cap: float | None = None
    """Scores are bent so that none is larger: cap · tanh(score / cap)."""

    def scores(
        self, queries: slice | Tensor = slice(None)
    ) -> Float[Tensor, "batch head query key"]:
        """Scores before the softmax; of a range of queries, or of one position of each text."""
        query, rows = self.query, _rows(self.query.shape[2], queries, self.query.device)
        if isinstance(queries, slice):
            query = query[:, :, queries]
        else:
            query = query.gather(
                2, queries.view(-1, 1, 1, 1).expand(-1, query.shape[1], 1, query.shape[3])
            )
        scores = query @ self.key.transpose(2, 3) * self.scale
        if self.cap is not None:
            scores = self.cap * torch.tanh(scores / self.cap)
        for added in (self.bias, self.mask):
            if added is None:
                continue
            added = _of_rows(added, queries, len(query))
            hides = added.dtype == torch.bool
            scores = scores.masked_fill(~added, -torch.inf) if hides else scores + added
        if self.is_causal:
            position = torch.arange(self.key.shape[2], device=query.device)
            scores = scores.masked_fill(position > rows[..., None], -torch.inf)
        return scores

    def weights(self) -> Float[Tensor, "batch head query key"]:
        """The attention of every head."""
        return softmax(self.scores()).to(self.query.dtype)

    def mixed(
        self, weights: Float[Tensor, "batch head query key"]
    ) -> Float[Tensor, "batch query head dim"]:
        """What the layer hands on when it attends so."""
        weights = functional.dropout(weights, p=self.dropout, training=self.dropout > 0)
        return (weights.to(self.value.dtype) @ self.value).transpose(1, 2).contiguous()

    def output(self) -> Float[Tensor, "batch query head dim"]:
        """What the layer hands on by itself, from the kernels that the model runs on."""
        if not self.is_fused or self.cap is not None:
            return self.mixed(self.weights())
        mask = self.mask
        if self.bias is not None:
            mask = self.bias if mask is None else _added(self.bias, mask)
        attended = functional.scaled_dot_product_attention(
            self.query,
            self.key,
            self.value,
            attn_mask=mask,
            dropout_p=self.dropout,
            is_causal=self.is_causal,
            scale=self.scale,
        )
        return attended.transpose(1, 2).contiguous()


def call_of(
    number: int,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    is_fused: bool,
    given: Mapping[str, Any],
) -> Call:
    """The call, from what the library's attention interface passes to its functions."""
    strange = [
        name
        for name, value in given.items()
        if (isinstance(value, Tensor) and name not in UNDERSTOOD | {"position_bias"})
        or (name in CHANGING and value is not None)
    ]
    if strange:
        raise UnsupportedModel(
            f"{type(module).__name__} passes {', '.join(strange)} to its attention, which heedful "
            "would have to ignore; this architecture is not supported (docs/architectures.md)."
        )
    causal = given.get("is_causal")
    causal = getattr(module, "is_causal", True) if causal is None else causal
    groups = query.shape[1] // key.shape[1]
    scale = given.get("scaling")
    return Call(
        number=number,
        query=query,
        key=key.repeat_interleave(groups, 1) if groups > 1 else key,
        value=value.repeat_interleave(groups, 1) if groups > 1 else value,
        mask=mask,
        bias=given.get("position_bias"),
        # Only fused attention leaves a causal mask out; the eager one always has it written out.
        is_causal=bool(is_fused and mask is None and query.shape[2] > 1 and causal),
        scale=query.shape[-1] ** -0.5 if scale is None else float(scale),
        dropout=float(given.get("dropout") or 0.0),
        is_fused=is_fused,
        module=module,
        cap=given.get("softcap"),
    )


def softmax(scores: Float[Tensor, "... key"]) -> Float[Tensor, "... key"]:
    """Attention of the scores, in float32 at least."""
    dtype = torch.float64 if scores.dtype == torch.float64 else torch.float32
    return scores.softmax(-1, dtype=dtype)


def _rows(length: int, queries: slice | Tensor, device: torch.device) -> Tensor:
    """Positions of the queries in use, to compare with those of keys."""
    if isinstance(queries, slice):
        return torch.arange(length, device=device)[queries]
    return queries.view(-1, 1, 1)


def _of_rows(added: Tensor, queries: slice | Tensor, batch: int) -> Tensor:
    """The part of a mask or bias [batch|1 head|1 query|1 key] that belongs to the queries."""
    if added.shape[2] == 1:
        return added
    if isinstance(queries, slice):
        return added[:, :, queries]
    added = added.expand(batch, -1, -1, -1)
    index = queries.view(-1, 1, 1, 1).expand(-1, added.shape[1], 1, added.shape[3])
    return added.gather(2, index)


def _added(bias: Tensor, mask: Tensor) -> Tensor:
    return bias.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else bias + mask
