"""The exact adversary against the published gradient search, on documents as short as SST's."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from benchmarks.cases import Disagreement
from benchmarks.naive import published_search, site
from benchmarks.sizes import Sizes
from benchmarks.subjects import batch_of, bilstm
from benchmarks.table import Row
from benchmarks.timing import side_by_side
from heedful.audits.exact_adversary import TOLERANCE, Adversary, farthest
from heedful.audits.searched_adversary import search
from heedful.models import alone, read
from heedful.runs.randomness import keys
from heedful.statistics.divergence import js_divergence, total_variation

BATCH = 32
"""Documents per call, as in the published code."""
MEAN, DEVIATION, SHORTEST, LONGEST = 19, 9, 2, 56
"""Words of an SST test sentence."""
ROUNDING = 1e-9
"""Nats that a search may seem farther by, when both are measured in float64."""


def margins(
    attention: Float[Tensor, "batch unit"],
    said: Float[Tensor, "batch unit class"],
    mask: Bool[Tensor, "batch unit"],
    searched: Float[Tensor, "batch candidate unit"],
) -> Float[Tensor, "batch candidate"]:
    """How much farther the exact adversary is than where each candidate of a search ended.

    In nats and in float64, whatever the search ran in. A search may end outside the tolerance:
    the exact adversary then gets as much, the bound max(ε, TVD of that candidate).
    """
    rows = searched.double() / searched.double().sum(-1, keepdim=True)
    trained = torch.bmm(attention[:, None], said).softmax(-1)
    tvd = total_variation(torch.bmm(rows, said).softmax(-1), trained)
    exact = farthest(attention, said, mask).jsd[:, None].repeat(1, rows.shape[1])
    for row, candidate in (tvd > TOLERANCE).nonzero().tolist():
        bound = float(tvd[row, candidate])
        exact[row, candidate] = farthest(attention[[row]], said[[row]], mask[[row]], bound).jsd[0]
    return exact - js_divergence(rows.log(), attention.log()[:, None])


def short_rows(sizes: Sizes) -> list[Row]:
    """Exact against searched: with automatic differentiation, and with the gradient written out."""
    generator = torch.Generator().manual_seed(0)
    drawn = MEAN + DEVIATION * torch.randn(sizes.short_documents, generator=generator)
    lengths = sorted(drawn.round().int().clamp(SHORTEST, LONGEST).tolist())
    model = bilstm(2)
    batches = [batch_of(lengths[i : i + BATCH], seed=i) for i in range(0, len(lengths), BATCH)]
    readings = [read(model, batch) for batch in batches]
    said = [alone(model, r).masked_fill(~r.mask[..., None], 0) for r in readings]
    sites = [site(model, r, torch.float32) for r in readings]
    starts = [torch.from_numpy(keys(0, r.names, "adversary search")) for r in readings]

    def exact() -> list[Adversary]:
        return [farthest(r.attention, s, r.mask) for r, s in zip(readings, said, strict=True)]

    def written_out() -> list[Adversary]:
        return [
            search(r.attention, s, r.mask, k, steps=sizes.steps)
            for r, s, k in zip(readings, said, starts, strict=True)
        ]

    def published() -> list[Tensor]:
        return [
            published_search(at, r.mask, TOLERANCE, sizes.steps)
            for at, r in zip(sites, readings, strict=True)
        ]

    timed = side_by_side(
        {"exact": exact, "written out": written_out, "published": published}, sizes.slow_repeats
    )
    worst = {
        "published": torch.cat(
            [
                margins(r.attention, s, r.mask, ended).amin(-1)
                for r, s, ended in zip(readings, said, timed["published"].result, strict=True)
            ]
        ),
        # Ours keeps the best attention within the tolerance, and is nan where it met none.
        "written out": torch.cat(
            [
                found.jsd - met.jsd
                for found, met in zip(
                    timed["exact"].result, timed["written out"].result, strict=True
                )
            ]
        ),
    }
    for name, margin in worst.items():
        if bool((margin < -ROUNDING).any()):
            raise Disagreement(f"the {name} search went farther than the exact adversary.")
    seconds = timed["exact"].seconds
    per_document = 1e6 * seconds / len(lengths)
    rows = []
    for name, short, why in (
        ("published", "the published search", "the search by automatic differentiation, float32"),
        ("written out", "our own search", "our search, its gradient written out on unit logits"),
    ):
        ratio = timed[name].seconds / seconds
        margin = worst[name][worst[name].isfinite()]
        rows.append(
            Row(
                f"exact adversary, {len(lengths)} documents of about {MEAN} words, 2 classes, "
                f"against {sizes.steps} steps of {short}",
                1e3 * seconds,
                ratio,
                "gradient search",
                f"{ratio / 50:.1f} times the limit of 50, against {why}. {per_document:.0f} µs per "
                "document: one look at each pair of units instead of hundreds of steps. At the "
                "bound max(ε, the TVD that the search reached) it is less adversarial on none of "
                f"the {len(margin)} documents (of {len(lengths)}) for which the search has an "
                f"answer, and {float(margin.mean()):.2g} nats farther on average.",
                naive=1e3 * timed[name].seconds,
                at_least=50,
            )
        )
    return rows
