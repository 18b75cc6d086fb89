"""Pictures that list importance methods: line by line with intervals, or as curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from heedful.audits.finding import Finding
from heedful.report.axes import Axes
from heedful.report.canvas import Canvas, canvas
from heedful.report.drawing import (
    ACCENT,
    BLUE,
    GREEN,
    GREY,
    LINE,
    OCHRE,
    ROSE,
    WARM,
    WIDTH,
    columns,
    last_part,
    plain_text,
    width,
)

ROW = 21
"""Height of one line of a chart that lists methods."""
LETTER = 5.5
"""About the width of a letter of a label."""
EMPHASISED = "attention"
OTHERS = (WARM, BLUE, OCHRE, ROSE, GREEN)
"""Colours of curves beside attention's: so many can be told apart."""


def violation(finding: Finding) -> Canvas:
    """How often each method's first unit belies its claim, beside chance, and what it is worth."""
    drawn, names = finding.drawn, finding.drawn["methods"]
    figure, (left, right) = canvas(len(names) * ROW + 62, 2)
    points(left, names, [ends(bar) for bar in drawn["violations"]])
    for line, chance in enumerate(drawn["chance"]):
        if chance is not None:
            left.plot([chance] * 2, [line - 0.3, line + 0.3], color=WARM, lw=1.4)
    left.x.limits = min(0.0, left.x.ends[0]), None
    left.title, left.x.is_share = "claims belied (tick: by chance)", True
    right.axvline(0, color=LINE, lw=1)
    points(right, names, [ends(bar) for bar in drawn["effect as claimed"]])
    share_labels(right)
    low, high = right.x.ends
    right.x.limits = max(low, -1.02), min(high, 1.02)
    right.title, right.x.is_share = "probability moved as claimed", True
    return figure


def randomisation(finding: Finding) -> Canvas:
    """How much of each method's order is left as weights are drawn anew from the top down."""
    drawn = finding.drawn
    steps = drawn["down to"]
    figure, (axes,) = canvas(270)
    axes.axhline(0, color=LINE, lw=1)
    last = {name: ends(drawn["τ"][name][-1])[0] for name in drawn["methods"]}
    colours = colours_of(sorted(last, key=lambda name: -np.nan_to_num(last[name], nan=-9)))
    for name in drawn["methods"]:
        values = [ends(estimate)[0] for estimate in drawn["τ"][name]]
        axes.plot(range(len(steps) + 1), [1.0, *values], "o", **colours[name], ms=3)
    names = [plain_text(".".join(step.split(".")[-2:]), 18) for step in steps]
    room = width() / (len(names) + 1)
    is_tight = any(len(name) * LETTER > room for name in names)
    axes.x.mark(range(len(steps) + 1), ["as trained", *names], 35 if is_tight else 0)
    axes.x.label = "weights drawn anew, from the top down to"
    axes.title = "Kendall τ with the order on the trained model"
    axes.y.has_grid, axes.y.has_line = True, False
    figure.legend(columns(3))
    return figure


def colours_of(methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """How each method's curve is drawn, of those that matter first in the order given.

    Attention stands out, random is dashed; the first others have a colour each, and what is left
    when colours are used up is one faint bundle, so that no two curves look alike.
    """
    others = [name for name in methods if name not in (EMPHASISED, "random")]
    colours = dict(zip(others, OTHERS, strict=False)) | {EMPHASISED: ACCENT, "random": GREY}
    bundle = others[len(OTHERS) :]
    styles: dict[str, dict[str, Any]] = {}
    for name in methods:
        is_first, is_named = name == EMPHASISED, name in colours
        styles[name] = {
            "color": colours.get(name, GREY),
            "lw": 2.4 if is_first else 1.4 if is_named else 0.8,
            "ls": (0, (3, 2)) if name == "random" else "-",
            "zorder": 3 if is_first else 2 if is_named else 1,
            "alpha": 1 if is_named else 0.4,
            "label": plain_text(name, 20) if is_named else None,
        }
    if bundle:
        styles[bundle[0]]["label"] = f"{len(bundle)} others"
    return styles


def points(axes: Axes, names: Sequence[str], found: Sequence[tuple[float, float, float]]) -> None:
    """One line per name: a point with its interval; attention stands out."""
    stands_out = np.array([n == EMPHASISED or EMPHASISED not in names for n in names], dtype=bool)
    for colour, is_here in ((GREY, ~stands_out), (ACCENT, stands_out)):
        rows = np.flatnonzero(is_here)
        value, low, high = np.array(found, dtype=float).reshape(-1, 3)[rows].T
        axes.hlines(rows, low, high, color=colour, lw=2, alpha=0.5)
        axes.points(value, rows, color=colour, ms=5)
    lines(axes, names)


def lines(axes: Axes, names: Sequence[str]) -> None:
    """Names from top to bottom on the left, a faint grid, no frame."""
    axes.y.mark(range(len(names)), [last_part(name) for name in names])
    axes.y.limits, axes.y.has_line = (len(names) - 0.4, -0.6), False
    axes.x.has_grid = True
    axes.y.colours = {line: ACCENT for line, name in enumerate(names) if name == EMPHASISED}


def share_labels(axes: Axes) -> None:
    """Leaves out the names of lines that stand on the panel to the left, where there is one."""
    if width() == WIDTH:
        axes.y.names = [""] * len(axes.y.names or ())


def ends(estimate: Mapping[str, Any]) -> tuple[float, float, float]:
    """Value, low and high, with the value in place of an end that is missing."""
    value = math.nan if estimate["value"] is None else float(estimate["value"])
    low, high = (value if e is None else float(e) for e in (estimate["low"], estimate["high"]))
    return value, low, high
