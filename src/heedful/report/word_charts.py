"""Pictures of words: a scatter with names, a cloud, and how chosen words grew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heedful.audits.finding import Finding
from heedful.report.drawing import (
    GREY,
    INK,
    LINE,
    SERIES,
    SOFT,
    WIDTH,
    PageFigure,
    columns,
    fitted,
    plain_text,
    width,
)

CLOUD_HEIGHT, HEADING = 190, 24
LETTER = 0.6
"""Width of a letter over its height, about; words are laid out by it."""


def words(finding: Finding) -> Figure:
    """Attention score against polarity with the telling words named, and a cloud of the highest."""
    drawn = finding.drawn
    figure = PageFigure(
        figsize=(width() / 72, (CLOUD_HEIGHT + 270) / 72), dpi=200, layout="constrained"
    )
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(270, CLOUD_HEIGHT)).flat
    top, bottom = above.subplots(), below.subplots()  # the cloud has the room beside the scale too
    colours = _colours(drawn["classes"])
    _scatter(top, drawn, colours)
    _cloud(bottom, drawn["cloud"], colours)
    handles, labels = top.get_legend_handles_labels()
    above.legend(handles, labels, loc="outside upper left", ncols=columns(4), handletextpad=0.1)
    return figure


def _colours(classes: Sequence[str]) -> dict[str, str]:
    return {name: SERIES[k % 5] for k, name in enumerate(classes)} | {"neutral": INK, "": GREY}


def _scatter(axes: Axes, drawn: Mapping[str, Any], colours: Mapping[str, str]) -> None:
    points = pd.DataFrame(drawn["points"])
    axes.axhline(0, color=LINE, lw=0.8)
    axes.axvline(0, color=LINE, lw=0.8)
    for name in (*drawn["classes"], "neutral", ""):
        rows = points[points["class"] == name]
        if len(rows):
            label = plain_text(name, 18) if name else "other words"
            size = 5 + 3 * np.log1p(rows["times"])
            alpha = 0.75 if name in drawn["classes"] else 0.4
            axes.scatter(
                rows["polarity"], rows["score"], s=size, lw=0, alpha=alpha, color=colours[name],
                label=label,
            )  # fmt: skip
    named = points[points["word"].isin(drawn["named"])]
    across = float(np.ptp(points["polarity"])) or 1.0
    height = float(np.ptp(points["score"])) or 1.0
    taken: list[tuple[float, float, float, float]] = []
    for row in named.to_dict("records"):
        text = plain_text(row["word"], 16)
        # The scale takes a fifth of the width.
        x, y = row["polarity"] / across * 0.8 * width(), row["score"] / height * 230
        box = (x, y, x + LETTER * 8.5 * len(text), y + 10)
        if any(overlap(box, other) for other in taken):
            continue  # a word that cannot be read hides two
        taken.append(box)
        axes.annotate(
            text, (row["polarity"], row["score"]), (2, 2), textcoords="offset points",
            fontsize=8.5, color=INK,
        )  # fmt: skip
    last = plain_text(drawn["classes"][-1], 16)
    meant = f"towards {last} →" if drawn["is_binary"] else "of its strongest class"
    axes.set_xlabel(f"polarity of the word alone ({meant})")
    axes.set_title("attention score of the word alone", color=SOFT)


def _cloud(axes: Axes, cloud: Mapping[str, Sequence[Any]], colours: Mapping[str, str]) -> None:
    """The words with the highest scores, the higher the larger, around the middle."""
    axes.set_axis_off()
    axes.set(xlim=(0, width()), ylim=(0, CLOUD_HEIGHT - HEADING))
    axes.set_title(
        fitted("highest attention scores, coloured by the class they speak for"), color=SOFT
    )
    scores = np.array(cloud["score"], dtype=float)
    spread = float(np.ptp(scores)) or 1.0
    sizes = 9 + 15 * ((scores - scores.min()) / spread)
    for word, size, x, y, towards in _placed(cloud["word"], sizes, cloud["towards"]):
        colour = colours.get(towards, GREY)
        # It has its place already: measuring it for the margins would take most of the drawing.
        axes.text(
            x, y, word, fontsize=size, color=colour, ha="center", va="center", in_layout=False
        )


def _placed(
    words: Sequence[str], sizes: Sequence[float], towards: Sequence[str]
) -> list[tuple[str, float, float, float, str]]:
    """Each word at the first free place on a spiral from the middle; those without one are left."""
    room = np.array([width(), CLOUD_HEIGHT - HEADING])
    turn = np.arange(0, 140, 0.25)
    away = np.stack([1.9 * turn * np.cos(turn) * 1.6, 0.7 * turn * np.sin(turn)], 1)
    spiral = room / 2 + away
    taken, found = np.zeros((0, 4)), []
    for given, size, to in zip(words, sizes, towards, strict=True):
        text = plain_text(given, 18)
        half = np.array([LETTER * size * len(text) + 6, size + 3]) / 2
        low, high = spiral - half, spiral + half
        is_free = (low >= 0).all(1) & (high <= room).all(1)
        apart = (low[:, None] >= taken[:, 2:]) | (taken[:, :2] >= high[:, None])
        is_free &= apart.any(2).all(1)
        if is_free.any():
            place = int(is_free.argmax())
            taken = np.vstack([taken, [*low[place], *high[place]]])
            found.append((text, float(size), *spiral[place].tolist(), to))
    return found


def overlap(one: tuple[float, float, float, float], two: tuple[float, float, float, float]) -> bool:
    """Whether two boxes (left, bottom, right, top) share any of their area."""
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]


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
