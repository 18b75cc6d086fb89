"""Pictures of single words and of curves with few points, from tidy tables alone."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heedful.report.drawing import SERIES, SOFT, WIDTH, plain_text
from heedful.report.figures import PageFigure
from heedful.report.panels import _levels, _panels

MOST_WORDS = 60
"""Longer texts are cut in the picture; the CSV has all words."""


def tokens(
    table: pd.DataFrame, *, hue: str = "model", value: str = "probability", whole: str = "sentence"
) -> Figure:
    """A point per word and hue in the order of the text; a dotted line where the whole text lies.

    The table has the columns `position` and `word` beside those named.
    """
    table = table[table["position"] < MOST_WORDS]
    words = table.drop_duplicates("position").sort_values("position")
    figure = PageFigure(figsize=(WIDTH / 72, 250 / 72), dpi=72, layout="constrained")
    axes = figure.subplots()
    for number, name in enumerate(_levels(table, hue)):
        rows = table[table[hue] == name].sort_values("position")
        colour = SERIES[number % len(SERIES)]
        axes.plot(
            rows["position"], rows[value], "o-", color=colour, markersize=3, linewidth=0.7,
            label=plain_text(name),
        )  # fmt: skip
        if len(rows):
            axes.axhline(float(rows[whole].iloc[0]), color=colour, linestyle=":", linewidth=1)
    axes.axhline(0.5, color=SOFT, linewidth=0.4)
    size = 8 if len(words) <= 25 else 6
    labels = [plain_text(word, 14) for word in words["word"]]
    axes.set_xticks(list(words["position"]), labels, rotation=90, fontsize=size)
    axes.set_ylim(-0.02, 1.02)
    axes.set_ylabel("probability of class 1")
    columns = min(len(_levels(table, hue)), 5)
    figure.legend(loc="outside upper left", ncols=columns, fontsize=8.5)
    return figure


def dotted(
    table: pd.DataFrame,
    *,
    x: str,
    y: str,
    hue: str,
    panel: str | None = None,
    mark: str | None = None,
) -> Figure:
    """Points joined by dotted lines in the order of the table; rows with `mark` true are hollow."""

    def one(axes: Axes, part: pd.DataFrame) -> None:
        for number, name in enumerate(_levels(table, hue)):
            rows = part[part[hue] == name]
            colour = SERIES[number % len(SERIES)]
            axes.plot(rows[x], rows[y], ":", color=colour, linewidth=1.2)
            hollow = rows[mark].astype(bool) if mark else pd.Series(False, index=rows.index)
            filled, empty = rows[~hollow], rows[hollow]
            axes.plot(filled[x], filled[y], "o", color=colour, markersize=3.5)
            axes.plot(empty[x], empty[y], "o", color=colour, markersize=4, markerfacecolor="none")
            axes.plot([], [], "o:", color=colour, markersize=3.5, label=plain_text(name))
        axes.set_xlabel(x)
        axes.set_ylabel(y)

    return _panels(table, panel, one, legend=True)


__all__ = ["dotted", "tokens"]
