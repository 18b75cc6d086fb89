"""Pictures that list importance methods: line by line with intervals, or as curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heedful.audits.finding import Finding
from heedful.report.drawing import (
    ACCENT,
    BLUE,
    GREEN,
    GREY,
    LINE,
    OCHRE,
    ROSE,
    SOFT,
    WARM,
    canvas,
    columns,
    last_part,
    plain_text,
    share_labels,
    width,
)
from heedful.statistics.estimates import per_cent

ROW = 21
"""Height of one line of a chart that lists methods."""
LETTER = 5.5
"""About the width of a letter of a label."""
EMPHASISED = "attention"
OTHERS = (WARM, BLUE, OCHRE, ROSE, GREEN)
"""Colours of curves beside attention's: so many can be told apart."""


def violation(finding: Finding) -> Figure:
    """How often each method's first unit belies its claim, beside chance, and what it is worth."""
    drawn, names = finding.drawn, finding.drawn["methods"]
    figure, (left, right) = canvas(len(names) * ROW + 62, 2)
    points(left, names, [ends(bar) for bar in drawn["violations"]])
    for line, chance in enumerate(drawn["chance"]):
        if chance is not None:
            left.plot([chance] * 2, [line - 0.3, line + 0.3], color=WARM, lw=1.4)
    left.set_xlim(left=min(0.0, left.get_xlim()[0]))
    left.set_title("claims belied (tick: by chance)", color=SOFT)
    as_percent(left.xaxis)
    right.axvline(0, color=LINE, lw=1)
    points(right, names, [ends(bar) for bar in drawn["effect as claimed"]])
    share_labels(right)
    low, high = right.get_xlim()
    right.set_xlim(max(low, -1.02), min(high, 1.02))
    right.set_title("probability moved as claimed", color=SOFT)
    as_percent(right.xaxis)
    return figure


def randomisation(finding: Finding) -> Figure:
    """How much of each method's order is left as weights are drawn anew from the top down."""
    drawn = finding.drawn
    steps = drawn["down to"]
    figure, (axes,) = canvas(270)
    axes.axhline(0, color=LINE, lw=1)
    last = {name: ends(drawn["τ"][name][-1])[0] for name in drawn["methods"]}
    colours = colours_of(sorted(last, key=lambda name: -np.nan_to_num(last[name], nan=-9)))
    for name in drawn["methods"]:
        values = [ends(estimate)[0] for estimate in drawn["τ"][name]]
        axes.plot(range(len(steps) + 1), [1.0, *values], **colours[name], marker="o", ms=3)
    names = [plain_text(".".join(step.split(".")[-2:]), 18) for step in steps]
    room = width() / (len(names) + 1)
    is_tight = any(len(name) * LETTER > room for name in names)
    turn: dict[str, Any] = {"rotation": 35, "ha": "right"} if is_tight else {}
    axes.set_xticks(range(len(steps) + 1), ["as trained", *names], **turn)
    axes.set_xlabel("weights drawn anew, from the top down to")
    axes.set_title("Kendall τ with the order on the trained model", color=SOFT)
    axes.yaxis.grid(True, color=LINE, lw=0.7)
    axes.spines["left"].set_visible(False)
    figure.legend(loc="outside lower left", ncols=columns(3), handlelength=1.4, columnspacing=1.2)
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
        # As one path each: a hundred lines of their own take several times as long to draw.
        axes.hlines(rows, low, high, color=colour, lw=2, alpha=0.5, capstyle="round")
        axes.plot(value, rows, "o", color=colour, ms=5)
    lines(axes, names)


def lines(axes: Axes, names: Sequence[str]) -> None:
    """Names from top to bottom on the left, a faint grid, no frame."""
    axes.set_yticks(range(len(names)), [last_part(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.spines["left"].set_visible(False)
    axes.xaxis.grid(True, color=LINE, lw=0.7)
    axes.set_axisbelow(True)
    for label, name in zip(axes.get_yticklabels(), names, strict=True):
        if name == EMPHASISED:
            label.set_color(ACCENT)


def ends(estimate: Mapping[str, Any]) -> tuple[float, float, float]:
    """Value, low and high, with the value in place of an end that is missing."""
    value = math.nan if estimate["value"] is None else float(estimate["value"])
    low, high = (value if e is None else float(e) for e in (estimate["low"], estimate["high"]))
    return value, low, high


def as_percent(axis: Any) -> None:
    """Marks an axis in per cent."""
    axis.set_major_formatter(lambda value, _: per_cent(value))
