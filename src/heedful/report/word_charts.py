"""Pictures of words: a scatter with names, and a cloud."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from heedful.audits.finding import Finding
from heedful.report.axes import Axes
from heedful.report.canvas import Canvas
from heedful.report.drawing import (
    GREY,
    INK,
    LINE,
    SERIES,
    columns,
    fitted,
    plain_text,
    width,
)

SCATTER_HEIGHT, CLOUD_HEIGHT, HEADING, LEGEND = 270, 190, 24, 20
LETTER = 0.6
"""Width of a letter over its height, about; words are laid out by it."""


def words(finding: Finding) -> Canvas:
    """Attention score against polarity with the telling words named, and a cloud of the highest."""
    drawn = finding.drawn
    figure = Canvas(SCATTER_HEIGHT + CLOUD_HEIGHT + LEGEND, (SCATTER_HEIGHT, CLOUD_HEIGHT), (1,))
    top, bottom = figure.axes
    colours = _colours(drawn["classes"])
    _scatter(top, drawn, colours)
    _cloud(bottom, drawn["cloud"], colours)
    figure.legend(columns(4), is_above=True)
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
                rows["polarity"], rows["score"], s=size, alpha=alpha, color=colours[name],
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
        axes.text(row["polarity"], row["score"], text, size=8.5, beside=2)
    last = plain_text(drawn["classes"][-1], 16)
    meant = f"towards {last} →" if drawn["is_binary"] else "of its strongest class"
    axes.x.label = f"polarity of the word alone ({meant})"
    axes.title = "attention score of the word alone"


def _cloud(axes: Axes, cloud: Mapping[str, Sequence[Any]], colours: Mapping[str, str]) -> None:
    """The words with the highest scores, the higher the larger, around the middle."""
    axes.is_off = True
    axes.x.limits, axes.y.limits = (0, width()), (0, CLOUD_HEIGHT - HEADING)
    axes.title = fitted("highest attention scores, coloured by the class they speak for")
    scores = np.array(cloud["score"], dtype=float)
    spread = float(np.ptp(scores)) or 1.0
    sizes = 9 + 15 * ((scores - scores.min()) / spread)
    for word, size, x, y, towards in _placed(cloud["word"], sizes, cloud["towards"]):
        axes.text(x, y, word, size=size, color=colours.get(towards, GREY))


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
