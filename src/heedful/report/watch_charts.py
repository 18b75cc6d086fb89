"""A watched training as curves: what words tell, and where attention lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.report.canvas import Canvas, canvas
from heedful.report.drawing import ACCENT, GREY, OCHRE, SOFT, VIOLET, WARM, page
from heedful.runs.watched import read_watched
from heedful.statistics.estimates import per_cent

CURVES = {
    "probe ~ bag of words": (WARM, "-"),
    "attention ~ probe": (ACCENT, "-"),
    "attention ~ bag of words": (VIOLET, (0, (4, 2))),
    "chance": (GREY, (0, (2, 2))),
}
PAIR_CURVES = {
    "probe ~ counts": (WARM, "-"),
    "attention ~ probe": (ACCENT, "-"),
    "attention ~ IBM 1": (VIOLET, (0, (4, 2))),
    "attention ~ counts": (OCHRE, (0, (4, 2))),
    "chance": (GREY, (0, (2, 2))),
}
"""The same of a translator, whose words are told by counts; see `dynamics.watch`."""
TITLE = "What words tell and where attention lies, over training"
RISE = 0.02
"""A curve that ends no more than this above its start did not rise."""

Curves = Mapping[str, tuple[str, Any]]
"""Colour and dashes of each curve: first what words tell, then attention, and so on."""


def draw_watched(path: Path, is_narrow: bool = False) -> str:
    """The curves of a `watched.jsonl` as an inline SVG element; empty without one."""
    entries = read_watched(path) if path.is_file() else []
    return draw_entries(entries, is_narrow=is_narrow) if entries else ""


def draw_entries(
    entries: Sequence[Mapping[str, Any]],
    curves: Curves = CURVES,
    words: str = "a bag of words",
    is_narrow: bool = False,
) -> str:
    """The curves of some entries as an inline SVG element."""
    name = "chart-watched" + "-narrow" * is_narrow
    with page(is_narrow):
        return watched(entries, curves).svg(name, TITLE, told(entries, curves, words))


def watched(entries: Sequence[Mapping[str, Any]], curves: Curves = CURVES) -> Canvas:
    """Agreements over steps on the left, entropy of attention on the right."""
    figure, (left, right) = canvas(210, 2, (1.7, 1))
    steps = [entry["step"] for entry in entries]
    for name, (colour, dashes) in curves.items():
        values = [entry[name] for entry in entries]
        width = 1.2 if name == "chance" else 1.8
        left.plot(steps, values, color=colour, ls=dashes, lw=width, label=name)
    right.plot(steps, [entry["entropy of attention"] for entry in entries], color=SOFT, lw=1.8)
    left.title = f"first of one in the other's top {per_cent(0.05)}"
    right.title = "entropy of attention"
    for axes in (left, right):
        axes.y.limits, axes.x.label = (-0.02, 1.04), "training step"
    figure.legend(2)
    return figure


def told(
    entries: Sequence[Mapping[str, Any]], curves: Curves = CURVES, words: str = "a bag of words"
) -> str:
    """What the first two curves show, in a sentence; its numbers are those of the chart."""
    first, last = entries[0], entries[-1]
    probe, attention, *_ = curves
    early, late = (halfway(entries, name) for name in (probe, attention))
    match early, late:
        case None, None:
            order = "neither rose"
        case int(), None:
            order = f"the first is half way up at step {early:,}, the second did not rise"
        case None, int():
            order = f"the second is half way up at step {late:,}, the first did not rise"
        case int(), int():
            how = "after" if late > early else "before" if late < early else "together with"
            order = f"the second is half way up at step {late:,}, {how} the first (step {early:,})"
    return (
        f"From step {first['step']:,} to {last['step']:,} agreement of the probe with {words} "
        f"goes from {first[probe]:.2f} to {last[probe]:.2f}, of attention with the probe from "
        f"{first[attention]:.2f} to {last[attention]:.2f}; {order}."
    )


def halfway(entries: Sequence[Mapping[Any, Any]], name: str) -> int | None:
    """The first step from which a curve stays at least half way from its start to its end.

    A spike that is lost again does not count. None where the curve did not rise.
    """
    values = [entry[name] for entry in entries]
    if values[-1] - values[0] <= RISE:
        return None
    middle = (values[0] + values[-1]) / 2
    below = [place for place, value in enumerate(values) if value < middle]
    return int(entries[below[-1] + 1]["step"])  # the start is below
