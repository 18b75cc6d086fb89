"""What published studies measured: the scale that a number of ours is read against."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from heedful.audits.finding import Finding
from heedful.statistics.estimates import per_cent


class PublishedValues(NamedTuple):
    """Published values of what one measure of a finding tells."""

    measure: str
    method: str
    caption: str
    values: tuple[tuple[str, float], ...]
    """Model and corpus, and the number measured there."""
    source: str
    is_cost: bool = False
    """Whether what is told is the loss, where the measure is the change."""


_SERRANO = "Serrano and Smith 2019, Table 2"
_TUTEK = "Tutek and Šnajder 2020"
SCALES: dict[str, tuple[PublishedValues, ...]] = {
    "single-erasure": (
        PublishedValues(
            "top flips",
            "attention",
            "Decisions that change when attention to the most attended unit is removed",
            (
                ("HAN, Yahoo Answers", 0.092),
                ("HAN, Amazon", 0.103),
                ("HAN, Yelp", 0.104),
                ("HAN, IMDB", 0.144),
            ),
            f"{_SERRANO}: hierarchical models that attend to sentences; sums of its cells.",
        ),
    ),
    "substitution": (
        PublishedValues(
            "macro F1",
            "uniform - trained",
            "What uniform attention costs, F1 (below 0: a gain)",
            (
                ("BiLSTM, SST", 0.028),
                ("BiLSTM with tying, SST", 0.070),
                ("BiLSTM, IMDB", 0.100),
                ("BiLSTM with tying, IMDB", 0.562),
            ),
            f"{_TUTEK}, Table 1, additive attention; theirs is the F1 of one class, ours of all.",
            is_cost=True,
        ),
        PublishedValues(
            "macro F1",
            "permuted - trained",
            "What shuffled attention costs, F1 (below 0: a gain)",
            (
                ("BiLSTM, SST", 0.050),
                ("BiLSTM with tying, SST", 0.180),
                ("BiLSTM, IMDB", 0.134),
                ("BiLSTM with tying, IMDB", 0.433),
            ),
            f"{_TUTEK}, Table 1, additive attention; theirs is the F1 of one class, ours of all.",
            is_cost=True,
        ),
    ),
    "confidence": (
        PublishedValues(
            "single-unit confidence",
            "correct",
            "Mean probability of a correct decision on one unit alone",
            (
                ("BiLSTM, SST", 0.712),
                ("BiLSTM with tying, SST", 0.586),
                ("BiLSTM, AG News", 0.887),
                ("BiLSTM with tying, AG News", 0.615),
            ),
            f"{_TUTEK}, Table 3, additive attention; the lower, the more a word speaks for itself.",
        ),
    ),
}
"""By audit. Tying penalises the distance of each state from its own word's embedding."""


def scales_of(finding: Finding) -> list[dict[str, Any]]:
    """The scales of a finding with our own number among the published ones, ready to be drawn.

    Places are per cent of an axis that starts or ends at 0 and holds every number.
    """
    drawn = []
    for scale in SCALES.get(finding.audit, ()):
        ours = finding.get(scale.measure, scale.method)
        if ours is None or not math.isfinite(ours.value):
            continue
        value = ours.value
        low, high = (e if math.isfinite(e) else value for e in (ours.low, ours.high))
        if scale.is_cost:
            value, low, high = -value, -high, -low
        numbers = [value for _, value in scale.values] + [low, high, 0.0]
        start, end = min(numbers), max(numbers)
        span = (end - start) or 1.0

        def place(value: float, start: float = start, span: float = span) -> float:
            return round(100 * (value - start) / span, 2)

        rows = [
            {
                "label": "this model",
                "is_ours": True,
                "at": place(value),
                "low": place(low),
                "width": round(place(high) - place(low), 2),
                "shown": f"{_percent(value)} [{_bare(low)}, {_bare(high)}]",
            }
        ]
        rows += [
            {
                "label": label,
                "is_ours": False,
                "at": place(value),
                "width": 0,
                "shown": _percent(value),
            }
            for label, value in scale.values
        ]
        drawn.append({"caption": scale.caption, "rows": rows, "source": scale.source})
    return drawn


def _percent(share: float) -> str:
    return per_cent(share, 1).replace("-", "−")


def _bare(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:.1f}".replace("-", "−")  # adding 0 turns -0.0 into 0.0
