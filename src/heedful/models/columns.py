"""The product of an attention matrix with a vector from above, without the matrix.

What tracing and rollout need of a layer is never its attention P = softmax(QKᵀ · scale) but

    c_k = Σ_q P_qk r_q,

how much of what the queries hold, r, comes from each key. For O = P V the gradient of ⟨R, O⟩ with
respect to V is Pᵀ R: so the backward pass of fused attention on a dummy value gives every head's
product exactly, in memory linear in the number of tokens.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

NARROW = 8
"""Width of the dummy value where a kernel takes values of another width than its queries."""
LIFT = 1024.0
"""Shares of one unit are multiplied by this in float16, which holds nothing below 6e-5 well."""


def column_product(
    query: Float[Tensor, "batch head query dim"],
    key: Float[Tensor, "batch head key dim"],
    above: Float[Tensor, "batch head query"],
    *,
    mask: Bool[Tensor, "..."] | Float[Tensor, "..."] | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> Float[Tensor, "batch head key"]:
    """Σ_q P_qk r_q for every key of every head, in the dtype of `above`.

    `mask` is that of torch's `scaled_dot_product_attention`: True where a key may be attended, or a
    number added to the scores, broadcastable to [batch head query key]; at least one key must be
    left to every query. `scale` is 1/√dim unless given. The sum over keys is the sum of `above`.

    >>> query, key = torch.zeros(1, 1, 2, 4), torch.zeros(1, 1, 2, 4)  # attention is uniform
    >>> column_product(query, key, torch.tensor([[[0.9, 0.1]]]))
    tensor([[[0.5000, 0.5000]]])
    """
    query, key = query.detach(), key.detach()
    if mask is not None:
        # Left as small as it was given: the kernels broadcast it themselves, without N² numbers.
        mask = mask.detach()[(None,) * (4 - mask.dim())]
        mask = mask if mask.dtype == torch.bool else mask.to(query.dtype)
    lift = LIFT if query.dtype == torch.float16 else 1.0
    with torch.enable_grad():
        value = query.new_zeros(*key.shape[:3], _width(query, mask)).requires_grad_()
        attended = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=is_causal, scale=scale
        )
    received = torch.zeros_like(attended)
    received[..., 0] = above.detach() * lift
    (gradient,) = torch.autograd.grad(attended, value, received)
    return gradient[..., 0].to(above.dtype) / lift


def _width(query: Tensor, mask: Tensor | None) -> int:
    """The width of the dummy value that the fused kernels accept.

    The flash kernels (all of a CPU, and a GPU's without a mask) want that of the queries; with a
    mask a GPU takes the memory-efficient kernel, which accepts a narrow value.
    """
    return NARROW if query.is_cuda and mask is not None else query.shape[-1]
