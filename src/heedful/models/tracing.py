"""Attention followed from the top of a stack of layers down to the input, without matrices.

One unit of attention starts where a decision is read (the pooling weights, one row, or evenly) and
every layer hands what a position holds to the positions it attends:

    A^l = A^(l+1) (ρ I + (1 - ρ) α^l)

for each head apart, or with the heads of a layer averaged. Layer-wise attention tracing (LAT) is
(ρ = 0, separate, pooling), attention rollout to a target (ρ = ½, averaged, a row): settings of one
function (docs/studies/tracing.md, "Tracing", "Relation to rollout"). Rows of attention sum to one,
so nothing is lost or made on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from heedful.corpora.batches import Batch
from heedful.errors import InputError, UnsupportedModel, unknown
from heedful.models.columns import column_product
from heedful.models.verbs import evaluating

LOSSES = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""How much of a unit rounding may lose on the way down, by the precision of the layers."""
HEADS = ("separate", "averaged")
FEW = 2**22
"""Attention weights of a layer, over batch and heads, up to which the matrix itself is made."""


class Layer(Protocol):
    """The attention of one layer, as far as tracing needs it."""

    @property
    def dtype(self) -> torch.dtype:
        """The precision its products are computed in."""

    @property
    def heads(self) -> int:
        """Number of heads."""

    def columns(self, above: Float[Tensor, "batch head query"]) -> Float[Tensor, "batch head key"]:
        """Σ_q P_qk r_q for every head."""

    def matrix(self) -> Float[Tensor, "batch head query key"]:
        """The attention itself, for pictures and entropies of texts that are short enough."""


@dataclass(frozen=True, eq=False)
class Fused:
    """A layer by its queries and keys: products run on fused attention, no matrix is made."""

    query: Float[Tensor, "batch head query dim"]
    key: Float[Tensor, "batch head key dim"]
    mask: Bool[Tensor, "..."] | Float[Tensor, "..."] | None = None
    """True where a key may be attended, or a number added to the scores."""
    is_causal: bool = False
    scale: float | None = None
    """1/√dim unless given."""

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the queries."""
        return self.query.dtype

    @property
    def heads(self) -> int:
        """Number of heads."""
        return self.query.shape[1]

    def columns(self, above: Float[Tensor, "batch head query"]) -> Float[Tensor, "batch head key"]:
        """Σ_q P_qk r_q for every head, by the value-gradient of fused attention.

        Short texts go by the matrix, which is there sooner than the way around it.
        """
        numbers = self.query.shape[:3].numel() * self.key.shape[2]
        if numbers <= FEW and self.dtype in (torch.float32, torch.float64):
            return Explicit(self.matrix()).columns(above)
        return column_product(
            self.query, self.key, above,
            mask=self.mask, is_causal=self.is_causal, scale=self.scale,
        )  # fmt: skip

    def matrix(self) -> Float[Tensor, "batch head query key"]:
        """softmax(QKᵀ · scale + mask)."""
        scale = self.query.shape[-1] ** -0.5 if self.scale is None else self.scale
        scores = self.query @ self.key.transpose(-1, -2) * scale
        if self.mask is not None:
            is_allowed = self.mask.dtype == torch.bool
            scores = (
                scores.masked_fill(~self.mask, -torch.inf) if is_allowed else scores + self.mask
            )
        if self.is_causal:
            allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
            scores = scores.masked_fill(~allowed, -torch.inf)
        return scores.softmax(-1)


@dataclass(frozen=True, eq=False)
class Explicit:
    """A layer by its attention matrices, where a model gives nothing else."""

    attention: Float[Tensor, "batch head query key"]

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the attention."""
        return self.attention.dtype

    @property
    def heads(self) -> int:
        """Number of heads."""
        return self.attention.shape[1]

    def columns(self, above: Float[Tensor, "batch head query"]) -> Float[Tensor, "batch head key"]:
        """Σ_q P_qk r_q for every head, by the matrices."""
        product = above[..., None, :].to(self.attention) @ self.attention
        return product[..., 0, :].to(above)

    def matrix(self) -> Float[Tensor, "batch head query key"]:
        """The attention itself."""
        return self.attention


class LayerStack(NamedTuple):
    """What the layers of a model did with a batch, and where its decision is read."""

    layers: tuple[Layer, ...]
    """From the lowest to the highest."""
    pooling: Float[Tensor, "batch token"]
    """How the decision weighs the top positions: the pooling weights, or one row (`[CLS]`)."""
    mask: Bool[Tensor, "batch token"]
    """True where there is a token."""
    place: Int[Tensor, "batch piece"] | None = None
    """Where each token of the batch stands, if the layers also see others: special tokens."""

    def of_batch(self, values: Float[Tensor, "batch *rows token"]) -> Float[Tensor, "..."]:
        """What the layers' positions hold, at the tokens of the batch alone."""
        if self.place is None:
            return values
        place = self.place.view(len(values), *[1] * (values.dim() - 2), -1)
        return values.gather(-1, place.expand(*values.shape[:-1], -1))


@runtime_checkable
class Traceable(Protocol):
    """A model whose layers can be followed down to its tokens."""

    def layers_of(self, batch: Batch) -> LayerStack:
        """The layers' attention over the batch; called by `layers_of`, without dropout."""


def layers_of(model: object, batch: Batch) -> LayerStack:
    """What the layers of a model did with a batch; a model without layers is refused by name."""
    if not isinstance(model, Traceable):
        raise UnsupportedModel(
            f"{type(model).__name__} has no stack of attention layers to trace; its attention is "
            "one row over the units already."
        )
    with evaluating(model):
        return model.layers_of(batch)


@dataclass(frozen=True, eq=False)
class Trace:
    """One unit of attention at every height."""

    shares: Float[Tensor, "height batch head token"]
    """Height 0 is the input (A^1), height l the input of layer l + 1, the last one the start. With
    heads averaged there is one."""

    @property
    def input(self) -> Float[Tensor, "batch head token"]:
        """A^1: what each head's chain leaves on the input."""
        return self.shares[0]

    @property
    def total(self) -> Float[Tensor, "batch token"]:
        """A^x: the sum over heads, which adds up to their number."""
        return self.shares[0].sum(1)


def trace(
    layers: Sequence[Layer],
    start: Float[Tensor, "batch token"],
    *,
    residual: float = 0.0,
    heads: Literal["separate", "averaged"] = "separate",
) -> Trace:
    """Where one unit of attention that begins as `start` ends up, at every height.

    `residual` is ρ, what each position keeps to itself. Shares have the dtype of `start`. Raises
    when a layer loses or makes attention: then its rows are no attention over these tokens.

    >>> falls_back = torch.tensor([[[[1.0, 0.0], [0.5, 0.5]]]])  # the second attends to both
    >>> found = trace([Explicit(falls_back)] * 2, torch.tensor([[0.0, 1.0]]))
    >>> found.total
    tensor([[0.7500, 0.2500]])
    """
    if not layers:
        raise InputError("tracing needs at least one layer of attention, got none.")
    if not 0 <= residual <= 1:
        raise InputError(f"the residual weight lies between 0 and 1, got {residual:g}.")
    if heads not in HEADS:
        raise unknown("way to treat heads", heads, HEADS)
    start = start.detach()
    count = layers[-1].heads
    here = start[:, None].expand(-1, count if heads == "separate" else 1, -1)
    heights = [here]
    for layer in reversed(layers):
        if heads == "averaged":
            received = layer.columns(here.expand(-1, layer.heads, -1)).mean(1, keepdim=True)
        else:
            received = layer.columns(here)
        here = residual * here + (1 - residual) * received if residual else received
        heights.append(here)
    shares = torch.stack(heights[::-1])
    _check(shares, layers)
    return Trace(shares)


def _check(shares: Float[Tensor, "height batch head token"], layers: Sequence[Layer]) -> None:
    """Raises unless every height of every head holds what the start held."""
    sums = shares.double().sum(-1)
    lost = (sums - sums[-1]).abs().amax((1, 2))
    allowed = max(_loss(layer.dtype) for layer in layers)
    if not float(lost.max()) <= allowed:  # also when it is not a number
        wrong = int((~(lost <= allowed)).nonzero()[-1])
        raise UnsupportedModel(
            f"attention of layer {wrong} does not hand on what it holds (off by "
            f"{float(lost[wrong]):.2g} of one): its rows do not sum to one over the tokens."
        )


def _loss(dtype: torch.dtype) -> float:
    """How much rounding may lose; products in TF32 keep as many bits as those of float16."""
    if dtype == torch.float32 and torch.get_float32_matmul_precision() != "highest":
        dtype = torch.float16
    return LOSSES.get(dtype, 1e-4)


def lat(stack: LayerStack) -> Trace:
    """Layer-wise attention tracing: heads apart, no residual, from where the decision is read."""
    return trace(stack.layers, stack.pooling)


def rollout(stack: LayerStack) -> Trace:
    """Attention rollout to a target: heads averaged, half kept by the residual stream."""
    return trace(stack.layers, stack.pooling, residual=0.5, heads="averaged")


def evenly(mask: Bool[Tensor, "batch token"]) -> Float64[Tensor, "batch token"]:
    """The start of a trace from all positions alike."""
    return mask.double() / mask.sum(-1, keepdim=True)
