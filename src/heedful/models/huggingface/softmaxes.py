"""Attention seen from outside: the softmax over keys, and torch's own attention functions.

For models off the library's attention interface. Whatever computes scores [batch head query key]
and takes their softmax is attention, and so are `scaled_dot_product_attention` and the function
behind `nn.MultiheadAttention`, which are computed here step by step.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from heedful.errors import UnsupportedModel
from heedful.models.huggingface.calls import call_of

Scores = Float[Tensor, "batch head query key"]
Change = Callable[[int, Scores], Float[Tensor, "batch head query key"]]
"""From the number of a call and its scores to the weights that are used."""
SOFTMAXES = (torch.softmax, functional.softmax, Tensor.softmax)
MULTIHEAD = inspect.signature(functional.multi_head_attention_forward)
"""What the function behind `nn.MultiheadAttention` is given."""


class Softmaxes(TorchFunctionMode):
    """Puts `change` where a model takes the softmax of its scores, while it is entered."""

    def __init__(self, number: Callable[[], int], change: Change) -> None:
        super().__init__()
        self.number, self.change = number, change
        self.was_fast = True

    def __enter__(self) -> Softmaxes:
        # The fast path of torch's own encoder layer computes attention where nobody sees it.
        self.was_fast = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        torch.backends.mha.set_fastpath_enabled(self.was_fast)

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in SOFTMAXES and args[0].dim() == 4:
            scores = args[0]
            return self.change(self.number(), scores).to(kwargs.get("dtype") or scores.dtype)
        if func is functional.scaled_dot_product_attention and args[0].dim() == 4:
            return self._fused(*args, **kwargs)
        if func is functional.multi_head_attention_forward:
            given = MULTIHEAD.bind(*args, **kwargs)
            given.apply_defaults()
            return self._multihead(SimpleNamespace(**given.arguments))
        return func(*args, **kwargs)

    def _fused(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        given = {"scaling": scale, "is_causal": is_causal, "dropout": dropout_p}
        call = call_of(self.number(), nn.Identity(), query, key, value, attn_mask, True, given)
        return call.mixed(self.change(call.number, call.scores())).transpose(1, 2)

    def _multihead(self, given: Any) -> tuple[Tensor, Tensor | None]:
        """`nn.MultiheadAttention`: projections, our attention, projection."""
        query, key, value = _projected(given)
        mask = _mask(given, query)
        dropout = given.dropout_p if given.training else 0.0
        arguments = {"dropout": dropout, "is_causal": False}
        call = call_of(self.number(), nn.Identity(), query, key, value, mask, True, arguments)
        weights = self.change(call.number, call.scores())
        mixed = call.mixed(weights).transpose(0, 1).flatten(2)
        output = functional.linear(mixed, given.out_proj_weight, given.out_proj_bias)
        averaged = weights.mean(1) if given.average_attn_weights else weights
        return output, averaged if given.need_weights else None


def _projected(given: Any) -> list[Float[Tensor, "batch head position dim"]]:
    """Queries, keys and values by head."""
    strange = (given.bias_k, given.bias_v, given.static_k, given.static_v)
    if given.query.dim() != 3 or given.add_zero_attn or any(one is not None for one in strange):
        raise UnsupportedModel(
            "This MultiheadAttention adds keys of its own (bias_k, add_zero_attn) or reads one "
            "text without a batch axis; neither is supported."
        )
    packed = (given.q_proj_weight, given.k_proj_weight, given.v_proj_weight)
    weights = packed if given.in_proj_weight is None else given.in_proj_weight.chunk(3)
    biases = (None,) * 3 if given.in_proj_bias is None else given.in_proj_bias.chunk(3)
    inputs = (given.query, given.key, given.value)
    found = []
    for source, weight, bias in zip(inputs, weights, biases, strict=True):
        assert weight is not None
        made = functional.linear(source, weight, bias)  # [position batch dim]
        length, texts, _ = made.shape
        found.append(made.view(length, texts, given.num_heads, -1).permute(1, 2, 0, 3))
    return found


def _mask(given: Any, query: Tensor) -> Float[Tensor, "batch head|1 query|1 key"] | None:
    """Both masks as one number added to the scores."""
    added: Tensor | None = None
    if given.attn_mask is not None:
        added = _as_numbers(given.attn_mask, query)
        texts, heads = query.shape[:2]
        added = added.view(-1, *added.shape[-2:]) if added.dim() > 2 else added[None]
        shape = (texts, heads) if len(added) == texts * heads else (len(added), 1)
        added = added.view(*shape, *added.shape[-2:])
    if given.key_padding_mask is not None:
        padding = _as_numbers(given.key_padding_mask, query)[:, None, None]
        added = padding if added is None else added + padding
    return added


def _as_numbers(mask: Tensor, like: Tensor) -> Tensor:
    """-inf where a mask of truth values hides a key; here True hides."""
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill(
        mask, -torch.inf
    )
