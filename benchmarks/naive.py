"""The same questions asked the slow way: what the fast answers are timed and checked against."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from captum.attr import FeatureAblation
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.audits.searched_adversary import CANDIDATES, LEARNING_RATE, PENALTY, SPREAD
from heedful.models import AttentionClassifier, Reading
from heedful.statistics.divergence import js_divergence, total_variation


class Site(NamedTuple):
    """The attended values and the head after them, in one precision."""

    values: Float[Tensor, "batch unit dim"]
    attention: Float[Tensor, "batch unit"]
    weight: Float[Tensor, "class dim"]
    bias: Float[Tensor, "class"]


def site(model: AttentionClassifier, reading: Reading, dtype: torch.dtype) -> Site:
    """What a loop over removals works on."""
    head = model.head.weight.detach(), model.head.bias.detach()
    weight, bias = (x.to(dtype) for x in head)
    return Site(reading.values.to(dtype), reading.attention.to(dtype), weight, bias)


def removal_loop(
    at: Site, order: Int[Tensor, "batch ranking unit"]
) -> Int[Tensor, "batch ranking"]:
    """Units removed at the first flip of each ranking, -1 for never; one document at a time.

    Every step is taken, also after the first flip. Documents are of full length.
    """
    rows = [
        [
            _one_ranking(values, attention, at.weight, at.bias, ranking.tolist())
            for ranking in orders
        ]
        for values, attention, orders in zip(at.values, at.attention, order, strict=True)
    ]
    return torch.tensor(rows)


def _one_ranking(
    values: Tensor, attention: Tensor, weight: Tensor, bias: Tensor, ranking: list[int]
) -> int:
    left, nothing = attention.clone(), torch.zeros_like(values[0])
    decided = int((weight @ (left @ values) + bias).argmax())
    first = -1
    for step, unit in enumerate(ranking, 1):
        left[unit] = 0
        context = (left / left.sum()) @ values if step < len(ranking) else nothing
        if int((weight @ context + bias).argmax()) != decided and first < 0:
            first = step
    return first


def batched_loop(
    at: Site, order: Int[Tensor, "batch ranking unit"]
) -> Int[Tensor, "batch ranking"]:
    """The same, all documents of the batch at once."""
    first = torch.full(order.shape[:2], -1)
    steps = order.shape[2]
    for ranking in range(order.shape[1]):
        left = at.attention.clone()
        decided = (torch.bmm(left[:, None], at.values)[:, 0] @ at.weight.T + at.bias).argmax(-1)
        for step in range(1, steps + 1):
            left.scatter_(1, order[:, ranking, step - 1 : step], 0)
            kept = left / left.sum(-1, keepdim=True) if step < steps else left
            logits = torch.bmm(kept[:, None], at.values)[:, 0] @ at.weight.T + at.bias
            flips = (logits.argmax(-1) != decided) & (first[:, ranking] < 0)
            first[:, ranking] = torch.where(flips, step, first[:, ranking])
    return first


def ablation(
    attention: Float[Tensor, "batch unit"],
    attended: Callable[[Float[Tensor, "batch unit"]], Float[Tensor, "batch class"]],
    decision: Int[Tensor, " batch"],
) -> Float[Tensor, "batch unit"]:
    """captum: what the decided class's logit loses when a weight is set to 0, rest renormalised."""

    def forward(weights: Tensor) -> Tensor:
        return attended(weights / weights.sum(-1, keepdim=True))

    found: Tensor = FeatureAblation(forward).attribute(attention, target=decision)
    return found


def published_search(
    at: Site, mask: Bool[Tensor, "batch unit"], tolerance: float, steps: int
) -> Float[Tensor, "batch candidate unit"]:
    """The attention that each candidate ends with (Jain & Wallace 2019, §4.2.2).

    Candidates climb by automatic differentiation and AMSGrad; the last iterate counts, wherever it
    is.
    """
    generator = torch.Generator().manual_seed(0)
    shape = (len(mask), CANDIDATES, mask.shape[1])
    logits = (SPREAD * torch.randn(shape, generator=generator)).to(at.values).requires_grad_()
    optimiser = torch.optim.Adam([logits], lr=LEARNING_RATE, amsgrad=True)
    trained = (torch.bmm(at.attention[:, None], at.values) @ at.weight.T + at.bias).softmax(-1)
    log_trained = at.attention.log()[:, None]
    first, second = torch.triu_indices(CANDIDATES, CANDIDATES, 1)

    def log_attention() -> Tensor:
        return logits.masked_fill(~mask[:, None], -torch.inf).log_softmax(-1)

    with torch.enable_grad():
        for _ in range(steps):
            log_rows = log_attention()
            output = (torch.bmm(log_rows.exp(), at.values) @ at.weight.T + at.bias).softmax(-1)
            jsd = js_divergence(log_rows, log_trained)
            tvd = total_variation(output, trained)
            apart = js_divergence(log_rows[:, first], log_rows[:, second]).sum(-1)
            gain = jsd.sum(-1) + apart / (CANDIDATES * (CANDIDATES - 1))
            penalty = PENALTY / CANDIDATES * (tvd - tolerance).clamp_min(0).sum(-1)
            optimiser.zero_grad()
            (penalty - gain).sum().backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return log_attention().exp().detach()
