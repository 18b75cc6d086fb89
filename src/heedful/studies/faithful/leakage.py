"""How far the decision has leaked from the attended words into the others.

See docs/studies/faithful.md, "Controls of our own".

The leakage index is the share of units that, attended alone, would decide as the document does.
Here by distance to the most attended unit: what attention did not look at should not know the
answer.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64, Int

from heedful.audits.confidence import NEAR
from heedful.audits.finding import frame
from heedful.importance import Importance
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel, alone

DISTANCES = (0, 1, 2, 3, 5, 9, 17)
"""Where bins of distance start, in units; the last one is open."""
STEPS = 50


def distance_names() -> list[str]:
    """The bins in words: `0`, `1`, `2`, `3-4`, …"""
    ends = [*DISTANCES[1:], None]
    return [
        f"{a}+" if b is None else str(a) if b == a + 1 else f"{a}-{b - 1}"
        for a, b in zip(DISTANCES, ends, strict=True)
    ]


def rows(
    model: AttentiveModel, reading: Reading, importance: Importance, seed: int
) -> pd.DataFrame:
    """The units of each document that decide alike, by distance to its most attended unit.

    `alike` and `there` list, for every bin of distance, how many units decide alike and how many
    there are; `undecided` is the share of units within 0.1 of even odds when attended alone.
    """
    logits, mask = alone(model, reading), reading.mask
    agrees = (logits.argmax(-1) == reading.decision[:, None]) & mask
    top = reading.attention.masked_fill(~mask, -1).argmax(-1, keepdim=True)
    away = (torch.arange(mask.shape[1], device=mask.device) - top).abs()
    bounds = torch.tensor(DISTANCES, device=mask.device)
    place = torch.bucketize(away, bounds, right=True) - 1
    empty = torch.zeros(len(mask), len(DISTANCES), dtype=torch.long, device=mask.device)
    even = (logits.softmax(-1) - 1 / logits.shape[-1]).abs().amax(-1)
    undecided = ((even <= NEAR) & mask).sum(-1).double() / reading.units
    return frame(
        reading.names,
        alike=empty.scatter_add(1, place, agrees.long()).to(torch.int32).cpu().numpy(),
        there=empty.scatter_add(1, place, mask.long()).to(torch.int32).cpu().numpy(),
        undecided=undecided.cpu().numpy(),
    )


def refitted_bias(
    margins: Float64[np.ndarray, " instance"], labels: Int[np.ndarray, " instance"]
) -> float:
    """The shift b that makes σ(margin + b) fit two-class labels best, by Newton's method.

    Flat attention may only move the logits past the threshold. What is lost even after the bias was
    fitted again, on other documents than those scored, is lost information.
    The loss is convex in b; where one class is absent or the margins separate the classes without
    need of a shift, the steps are bounded and b stays finite.
    """
    is_second = labels == 1
    shift = 0.0
    for _ in range(STEPS):
        probability = 1 / (1 + np.exp(-np.clip(margins + shift, -500, 500)))
        slope = float((probability - is_second).mean())
        curvature = float((probability * (1 - probability)).mean())
        step = float(np.clip(slope / max(curvature, 1e-6), -5, 5))
        shift -= step
        if abs(step) < 1e-10:
            break
    return shift
