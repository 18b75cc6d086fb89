"""The same rates by automatic differentiation, and as the supplement prints them.

The first is what the terms of `flow` are held against; the second shows that three printed
formulas are slips (docs/studies/polarity.md, "Errata"). Neither is fast.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import torch
from jaxtyping import Float64, Int
from torch import Tensor
from torch.func import functional_call, jvp
from torch.nn import functional

from heedful.corpora.batches import batches
from heedful.corpora.encoded import Encoded
from heedful.dynamics.flow import Flow, parts_of
from heedful.dynamics.scores import words_alone
from heedful.models.classifier import AttentionClassifier


class Rates(NamedTuple):
    """ṡ and ȧ of every word."""

    polarity: Float64[Tensor, "word output"]
    attention: Float64[Tensor, " word"]


def gradients(model: AttentionClassifier, encoded: Encoded) -> dict[str, Tensor]:
    """∇ℓ of the mean cross-entropy over the whole split, in float64, by parameter."""
    exact = copy.deepcopy(model).double().eval()
    for batch in batches(encoded, 256):
        batch = batch.to(exact.head.weight.device)
        loss = functional.cross_entropy(exact(batch).logits, batch.labels, reduction="sum")
        (loss / len(encoded)).backward()  # type: ignore[no-untyped-call]
    return {
        name: torch.zeros_like(p) if p.grad is None else p.grad
        for name, p in exact.named_parameters()
    }


def rates(model: AttentionClassifier, encoded: Encoded) -> Rates:
    """ṡ and ȧ as the derivative of the scores along −∇ℓ; any flat model without recurrence."""
    exact = copy.deepcopy(model).double().eval()
    weights = {name: p.detach() for name, p in exact.named_parameters()}
    against = {name: -value for name, value in gradients(model, encoded).items()}
    ids = torch.arange(len(model.vocabulary), device=model.head.weight.device)

    def scores(weights: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        attended = functional_call(exact, weights, (words_alone(ids),)).attended
        return attended.values[:, 0] @ weights["head.weight"].T, attended.scores[:, 0]

    found: Any = jvp(scores, (weights,), (against,))
    return Rates(*found[1])


def printed_dot_products(
    model: AttentionClassifier, found: Flow, chosen: Int[Tensor, " chosen"]
) -> Float64[Tensor, "chosen chosen"]:
    """dΩ/dτ with the supplement's extra 1/λ in A_ik, whose a_k holds it already: wrong."""
    m, scale = len(found.reading.labels), parts_of(model).scale
    said = found.scores.logits[:, int(model.config.one_logit) :]
    one_way = torch.outer(found.rho[chosen], found.scores.scores[chosen]) / scale
    one_way = (one_way + found.pi[chosen] @ said[chosen].T) / m
    return one_way + one_way.T


def printed_classes(model: AttentionClassifier, found: Flow) -> Rates:
    """The supplement's multi-class rates: no α in two sums of ṡ, 1/λ for 1/λ² in ȧ: wrong."""
    parts, reading = parts_of(model), found.reading
    m, scale = len(reading.labels), parts.scale
    said = found.scores.logits[:, int(model.config.one_logit) :]
    error = found.error[reading.document]
    logits = reading.logits[:, int(model.config.one_logit) :]
    pi = torch.zeros_like(said).index_add(0, reading.word, error)
    against = ((said[reading.word] - logits[reading.document]) * error).sum(1)
    rho = torch.zeros_like(found.rho).index_add(0, reading.word, against)
    own = rho[:, None] * (parts.head @ parts.query) / scale + pi @ (parts.head @ parts.head.T)
    polarity = own / m + found.polarity["C"]
    attention = found.attention["D"] + found.attention["E"] + found.attention["F"] * scale
    return Rates(polarity, attention)
