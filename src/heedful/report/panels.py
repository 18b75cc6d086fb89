"""Figures of a study from its tidy tables: small panels side by side, one column names the panel.

Every function takes the table of the CSV and the names of its columns, so that the picture can be
drawn again from the CSV alone. Give the columns by `functools.partial`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from heedful.report.drawing import HUSH, INK, LINE, RASTER, SERIES, SOFT, WIDTH, plain_text
from heedful.report.figures import PageFigure

LETTER = 5.0
"""About the width of a letter of a label."""
BOX = ("low", "q1", "median", "q3", "high")
"""Columns of a box: whiskers, quartiles and median."""
DENSE = 2_000
"""More points than this are painted as a picture, which cannot follow the page's colours."""
PAINTED = (RASTER, "#d0703f", "#8fa04f", "#8a76b8", "#c79a2a", "#8b8880")
"""What they are painted with: seen on light and on dark."""


def boxes(
    table: pd.DataFrame,
    *,
    x: str,
    hue: str,
    panel: str | None = None,
    label: str = "",
    limits: tuple[float, float] | None = (0.0, 1.0),
) -> Figure:
    """Box plots from five-number rows (`low q1 median q3 high`): groups of boxes along x."""

    def one(axes: Axes, part: pd.DataFrame) -> None:
        groups, hues = _levels(part, x), _levels(table, hue)
        for number, name in enumerate(hues):
            rows = part[(part[hue] == name) & part["median"].notna()]
            stats = [
                {"whislo": r.low, "q1": r.q1, "med": r.median, "q3": r.q3, "whishi": r.high}
                for r in rows[list(BOX)].itertuples()
            ]
            shift = 0.8 * ((number + 0.5) / len(hues) - 0.5)
            axes.bxp(
                stats,
                positions=[groups.index(value) + shift for value in rows[x]],
                widths=0.8 * 0.7 / len(hues),
                showfliers=False,
                patch_artist=True,
                manage_ticks=False,
                boxprops={"facecolor": SERIES[number % len(SERIES)], "linewidth": 0},
                medianprops={"color": INK, "linewidth": 1.4},
                whiskerprops={"color": SOFT, "linewidth": 0.8},
                capprops={"color": SOFT, "linewidth": 0.8},
            )
            axes.plot([], [], "s", color=SERIES[number % len(SERIES)], label=plain_text(name))
        axes.set_xticks(range(len(groups)), [plain_text(value, 16) for value in groups])
        axes.set_xlim(-0.6, len(groups) - 0.4)
        axes.set_ylabel(label)
        if limits:
            axes.set_ylim(limits[0] - 0.02, limits[1] + 0.02)

    return _panels(table, panel, one, legend=True)


def scatter(
    table: pd.DataFrame,
    *,
    x: str,
    y: str,
    hue: str | None = None,
    panel: str | None = None,
    zero: bool = False,
    share: bool = True,
) -> Figure:
    """One point per row, painted as a picture where there are many; `zero` draws y = 0.

    Without `share` every panel has a y axis of its own.
    """

    is_painted = len(table) > DENSE
    colours = PAINTED if is_painted else SERIES

    def one(axes: Axes, part: pd.DataFrame) -> None:
        for number, name in enumerate(_levels(table, hue)):
            rows = part if hue is None else part[part[hue] == name]
            axes.plot(
                rows[x],
                rows[y],
                ".",
                markersize=3,
                alpha=0.6,
                color=colours[number % len(colours)],
                rasterized=is_painted,
                label=None if hue is None else plain_text(name),
            )
        if zero:
            axes.axhline(0, color=SOFT, linewidth=0.6)
        axes.set_xlabel(x)
        axes.set_ylabel(y)

    return _panels(table, panel, one, legend=hue is not None, share=share)


def lines(
    table: pd.DataFrame,
    *,
    x: str,
    y: str,
    hue: str | None = None,
    each: str | None = None,
    panel: str | None = None,
    log: bool = False,
    share: bool = True,
    dashed: str | None = None,
) -> Figure:
    """Curves by hue, one line per value of `each` (seeds); `y low` and `y high` make a band.

    `dashed` names a hue whose lines are broken. A `log` axis that has a 0 is linear up to the
    smallest other value.
    """

    def one(axes: Axes, part: pd.DataFrame) -> None:
        for number, name in enumerate(_levels(table, hue)):
            rows = part if hue is None else part[part[hue] == name]
            colour = SERIES[number % len(SERIES)]
            style = (0, (4, 2)) if dashed is not None and name == dashed else "-"
            runs = [rows] if each is None else [run for _, run in rows.groupby(each, sort=False)]
            for run in runs:
                width = 1.4 if each is None else 0.8
                axes.plot(run[x], run[y], color=colour, linewidth=width, linestyle=style)
                if f"{y} low" in run:
                    ends = run[f"{y} low"], run[f"{y} high"]
                    axes.fill_between(run[x], *ends, color=colour, alpha=0.18, linewidth=0)
            if hue is not None:
                axes.plot([], [], color=colour, linestyle=style, label=plain_text(name))
        if log:
            _logarithmic(axes, table[x])
        axes.set_xlabel(x)
        axes.set_ylabel(y)

    return _panels(table, panel, one, legend=hue is not None, share=share)


def _logarithmic(axes: Axes, values: pd.Series[float]) -> None:
    """Sets a logarithmic x axis.

    The default writes powers of ten in TeX, which the page does not set; within less than a power
    of ten it writes every mark.
    """
    least, most = values[values > 0].min(), values.max()
    if (values == 0).any():
        axes.set_xscale("symlog", linthresh=least, linscale=0.5)
        powers = range(math.ceil(math.log10(least)), math.floor(math.log10(most)) + 1)
        axes.set_xticks([0, *(10.0**power for power in powers)], minor=False)
        axes.xaxis.set_major_formatter(
            lambda value, _: f"{value:g}" if value < 1000 else f"{value / 1000:g}k"
        )
    else:
        axes.set_xscale("log")
        subs = (1, 2, 5) if math.log10(most / least) < 2 else (1,)
        axes.xaxis.set_major_locator(LogLocator(subs=subs))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.xaxis.set_minor_formatter(NullFormatter())


def bars(table: pd.DataFrame, *, x: str, y: str, hue: str, panel: str | None = None) -> Figure:
    """Points with their intervals (`y low`, `y high`), one row per x, hues beside each other."""

    def one(axes: Axes, part: pd.DataFrame) -> None:
        groups, hues = _levels(table, x), _levels(table, hue)  # panels share an axis
        for number, name in enumerate(hues):
            rows = part[part[hue] == name]
            places = [groups.index(value) + 0.5 * number / len(hues) - 0.12 for value in rows[x]]
            colour = SERIES[number % len(SERIES)]
            axes.hlines(places, rows[f"{y} low"], rows[f"{y} high"], color=colour, linewidth=1.4)
            axes.plot(rows[y], places, "o", markersize=4, color=colour, label=plain_text(name))
        axes.axvline(0, color=SOFT, linewidth=0.6)
        axes.set_yticks(range(len(groups)), [plain_text(value, 22) for value in groups])
        axes.set_ylim(len(groups) - 0.4, -0.6)
        axes.set_xlabel(y)

    tall = 16 * max(len(_levels(table, x)), 4)
    return _panels(table, panel, one, legend=True, height=tall)


def heatmap(
    table: pd.DataFrame,
    *,
    x: str,
    y: str,
    value: str,
    panel: str | None = None,
    digits: int = 2,
    share: bool = True,
) -> PageFigure:
    """A cell per row, darker for larger values, with the number written in it.

    Without `share` every panel has rows and a darkest value of its own.
    """

    def one(axes: Axes, part: pd.DataFrame) -> None:
        columns, rows = _levels(part, x), _levels(part, y)
        most = float((table if share else part)[value].abs().max()) or 1.0
        whole = not share and bool((part[value] % 1 == 0).all())
        for cell in part[[x, y, value]].itertuples(index=False):
            place = columns.index(cell[0]), rows.index(cell[1])
            strength = 0.0 if pd.isna(cell[2]) else min(abs(float(cell[2])) / most, 1.0)
            square = {"width": 0.96, "height": 0.96, "linewidth": 0}
            corner = place[0] - 0.48, place[1] - 0.48
            axes.add_patch(_rectangle(corner, facecolor=HUSH, **square))
            colour = SERIES[0] if cell[2] >= 0 else SERIES[1]
            axes.add_patch(_rectangle(corner, facecolor=colour, alpha=0.75 * strength, **square))
            text = "–" if pd.isna(cell[2]) else f"{cell[2]:.{0 if whole else digits}f}"
            axes.text(*place, text, ha="center", va="center", fontsize=8)
        across = [plain_text(name, 10) for name in columns]
        axes.set_xticks(range(len(columns)), across)
        beside = max(len(plain_text(name, 16)) for name in rows)
        room = (WIDTH / min(len(_levels(table, panel)), 3) - beside * LETTER) / len(columns)
        if max(map(len, across)) * LETTER > room:  # side by side they would run into each other
            axes.tick_params(axis="x", rotation=40)
        axes.set_yticks(range(len(rows)), [plain_text(name, 16) for name in rows])
        axes.set_xlim(-0.5, len(columns) - 0.5)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.spines[:].set_visible(False)

    return _panels(table, panel, one, legend=False, share=share)


def growth(table: pd.DataFrame) -> Figure:
    """How the scores of chosen words grew, and the terms that pushed them (from a `FlowLog`).

    A row per word; polarity and its terms, then attention and its terms, over epochs.
    """
    chosen = list(dict.fromkeys(table["word"]))
    figure = Figure(figsize=(WIDTH / 72, (110 * len(chosen) + 40) / 72), dpi=72)
    figure.set_layout_engine("constrained")
    grid = figure.subplots(len(chosen), 4, squeeze=False, sharex=True)
    for line, word in enumerate(chosen):
        rows = table[table["word"] == word]
        for column, score in enumerate(("polarity", "attention")):
            own, pushed = grid[line][2 * column], grid[line][2 * column + 1]
            own.plot(rows["epoch"], rows[score], color=INK, lw=1.6)
            own.axhline(0, color=LINE, lw=0.7)
            pushed.axhline(0, color=LINE, lw=0.7)
            terms = [c for c in table if str(c).startswith(f"{score} ")]
            for number, term in enumerate(terms):
                name = str(term).removeprefix(f"{score} ")
                colour = SERIES[number % len(SERIES)]
                pushed.plot(rows["epoch"], rows[term], color=colour, lw=1.2, label=name)
            if not line:
                own.set_title(score, color=SOFT)
                pushed.set_title("its terms", color=SOFT)
                pushed.legend(fontsize=7, handlelength=1, labelspacing=0.2)
        grid[line][0].set_ylabel(plain_text(word, 16))
    for axes in grid.flat:
        axes.tick_params(labelsize=7)
    for axes in grid[-1]:
        axes.set_xlabel("epoch")
    return figure


def _panels(
    table: pd.DataFrame,
    panel: str | None,
    one: Callable[[Axes, pd.DataFrame], None],
    legend: bool,
    share: bool = True,
    height: int = 0,
) -> PageFigure:
    """A grid of panels, at most three in a row, in the order of the table."""
    names = _levels(table, panel)
    columns = min(len(names), 3 if len(names) != 4 else 2)
    rows = -(-len(names) // columns)
    height = max(height, 190 if columns == 1 else 150) * rows + 24 * legend
    figure = PageFigure(figsize=(WIDTH / 72, height / 72), dpi=72, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharey=share)
    flat: Sequence[Any] = list(grid.flat)
    for axes, name in zip(flat, names, strict=False):
        part = table if panel is None else table[table[panel] == name]
        one(axes, part)
        if panel is not None:
            axes.set_title(plain_text(name, 60 // columns))
    for number, axes in enumerate(flat):
        if share and number % columns:
            axes.set_ylabel("")
    for axes in flat[len(names) :]:
        axes.set_visible(False)
    if legend and names:
        handles, labels = flat[0].get_legend_handles_labels()
        if labels:
            entry = max(map(len, labels)) * LETTER + 40  # with its line and the space around it
            columns = min(len(labels), 4, max(int(WIDTH / entry), 1))
            further = -(-len(labels) // columns) - 1  # lines beyond the one already counted
            figure.set_figheight((height + 13 * further) / 72)
            figure.legend(handles, labels, loc="outside upper left", ncols=columns, fontsize=8.5)
    return figure


def _levels(table: pd.DataFrame, column: str | None) -> list[Any]:
    """The values of a column in the order in which they appear."""
    return [""] if column is None else list(dict.fromkeys(table[column]))


def _rectangle(corner: tuple[float, float], **settings: Any) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(corner, **settings)


__all__ = ["BOX", "boxes", "growth", "heatmap", "lines", "scatter"]
