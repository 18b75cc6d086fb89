"""Distances between distributions, in nats."""

from math import log

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def js_divergence(
    log_p: Float[Tensor, "*batch unit"],
    log_q: Float[Tensor, "*batch unit"],
    mask: Bool[Tensor, "*batch unit"] | None = None,
) -> Float[Tensor, "*batch"]:
    """Jensen-Shannon divergence of two distributions given by their logarithms.

    JS(p, q) = KL(p‖m)/2 + KL(q‖m)/2 with m = (p + q)/2 (Serrano & Smith 2019, §3): between 0 and
    ln 2, not its root. A logarithm of −inf is probability 0 and adds nothing, nor do masked units;
    gradients stay finite. Pass float64: near 0 the divergence is of second order.
    """
    if mask is not None:
        log_p, log_q = (x.masked_fill(~mask, -torch.inf) for x in (log_p, log_q))
    nowhere = log_p.isneginf() & log_q.isneginf()
    # Where neither has mass any finite number will do: it is multiplied by probability 0.
    log_m = torch.logaddexp(log_p.masked_fill(nowhere, 0), log_q.masked_fill(nowhere, 0)) - log(2)
    divergence = _expected(log_p, log_m) + _expected(log_q, log_m)
    return (divergence / 2).clamp(min=0)  # rounding leaves about -1e-17 for equal distributions


def _expected(
    log_p: Float[Tensor, "*batch unit"], log_m: Float[Tensor, "*batch unit"]
) -> Float[Tensor, "*batch"]:
    """KL(p‖m); units without mass are set to 0 before the product, so no 0 · inf appears."""
    ratio = log_p.masked_fill(log_p.isneginf(), 0) - log_m
    return (log_p.exp() * ratio).sum(-1)


def total_variation(
    p: Float[Tensor, "*batch class"], q: Float[Tensor, "*batch class"]
) -> Float[Tensor, "*batch"]:
    """Half the sum of absolute differences: between 0 and 1; for two classes |p₁ − q₁|."""
    return (p - q).abs().sum(-1) / 2


def entropy(
    attention: Float[Tensor, "*batch unit"], mask: Bool[Tensor, "*batch unit"]
) -> Float[Tensor, "*batch"]:
    """Entropy of each attention row over unpadded units, divided by its maximum.

    H(a) / log n, with n the number of unpadded units; a row with n = 1 has entropy 0, one with
    none is nan.
    """
    count = mask.sum(-1)
    spread = torch.special.entr(attention.masked_fill(~mask, 0)).sum(-1)
    share: Tensor = spread / count.clamp(min=2).to(attention.dtype).log()
    return share.masked_fill(count == 1, 0).masked_fill(count == 0, torch.nan)
