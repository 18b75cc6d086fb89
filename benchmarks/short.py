"""The exact adversary against the published gradient search, on documents as short as SST's."""

from __future__ import annotations

import torch

from benchmarks.cases import Disagreement
from benchmarks.naive import Met, published_search, site
from benchmarks.sizes import Sizes
from benchmarks.subjects import batch_of, bilstm
from benchmarks.table import Row
from benchmarks.timing import side_by_side
from heedful.audits.exact_adversary import TOLERANCE, Adversary, farthest
from heedful.audits.searched_adversary import search
from heedful.models import alone, read
from heedful.runs.randomness import keys

BATCH = 32
"""Documents per call, as in the published code."""
MEAN, DEVIATION, SHORTEST, LONGEST = 19, 9, 2, 56
"""Words of an SST test sentence."""
CHECKED = 32


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

    def published() -> list[Met]:
        return [
            published_search(at, r.mask, TOLERANCE, sizes.steps)
            for at, r in zip(sites, readings, strict=True)
        ]

    timed = side_by_side(
        {"exact": exact, "written out": written_out, "published": published}, sizes.slow_repeats
    )
    for found, met in zip(timed["exact"].result, timed["written out"].result, strict=True):
        if bool((met.jsd > found.jsd + 1e-9).any()):
            raise Disagreement("the gradient search went farther than the exact adversary.")
    # The published search may end outside the tolerance: there the exact one gets its bound.
    checked = 0
    for r, s, met in zip(readings, said, timed["published"].result, strict=True):
        for row in range(min(len(r.mask), max(CHECKED - checked, 0))):
            bound = max(TOLERANCE, float(met.tvd[row]) + 1e-6)
            best = farthest(r.attention[[row]], s[[row]], r.mask[[row]], bound)
            if float(met.jsd[row]) > float(best.jsd) + 1e-4:  # the search is in float32
                raise Disagreement("the published search went farther than the exact adversary.")
            checked += 1
    seconds = timed["exact"].seconds
    per_document = 1e6 * seconds / len(lengths)
    rows = []
    for name, short, why in (
        ("published", "the published search", "the search by automatic differentiation, float32"),
        ("written out", "our own search", "our search, its gradient written out on unit logits"),
    ):
        ratio = timed[name].seconds / seconds
        rows.append(
            Row(
                f"exact adversary, {len(lengths)} documents of about {MEAN} words, 2 classes, "
                f"against {sizes.steps} steps of {short}",
                1e3 * seconds,
                ratio,
                "gradient search",
                f"{ratio / 50:.1f} times the limit of 50, against {why}. {per_document:.0f} µs per "
                "document: one look at each pair of units instead of hundreds of steps; never less "
                "adversarial than the search at the same bound.",
                naive=1e3 * timed[name].seconds,
                at_least=50,
            )
        )
    return rows
