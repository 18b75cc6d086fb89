"""Pictures of rated words: a scatter with its parabolas, and a cloud by wordcloud's layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heedful.audits.finding import Finding
from heedful.errors import InputError
from heedful.report.drawing import INK, LINE, SERIES, SOFT, WIDTH, plain_text
from heedful.report.figures import PageFigure
from heedful.report.panels import DENSE, PAINTED, heatmap
from heedful.report.word_charts import LETTER, overlap
from heedful.statistics.regression import SQUARE, curve, quadratic

MARKERS = ("o", "^", "s", "D")
CLOUD = (1600, 800)
"""The cloud's canvas in pixels, as published."""
TALL, SMALL = 0.76, 0.56
"""Height over font size of letters like b and like a."""
_TALL_LETTERS = frozenset("bdfhijklt0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ!?")
NARROW = 0.48
"""Width of a letter over its height in the page's font, at least."""
MOST_WORDS = 120
"""Words in a cloud: more could not be read at the page's width."""


def lexicon(finding: Finding) -> PageFigure:
    """Word averages over ratings with fitted parabolas and bands, the highest words named."""
    drawn = finding.drawn
    figure = PageFigure(figsize=(WIDTH / 72, 290 / 72), dpi=160, layout="constrained")
    axes = figure.subplots()
    points = pd.DataFrame(drawn["points"])
    for number, (name, column) in enumerate(drawn["kinds"].items()):
        _points(axes, points["rating"], points[column], number, name, is_painted=False)
        fitted = drawn["curves"][name]
        _parabola(axes, drawn["grid"], fitted["middle"], fitted["low"], fitted["high"], number)
    named = pd.DataFrame(drawn["named"])
    # A few words of one short text would push all others to the ground.
    most = float(np.quantile(points[list(drawn["kinds"].values())], 0.99)) * 1.2
    named = named[named["ratio"] < most]
    _names(axes, named["word"], named["rating"], named["ratio"], most)
    axes.set_ylim(0, most)
    axes.set_xlabel("rating of the word")
    axes.set_title("mean importance of the word, in even shares of its text", color=SOFT)
    axes.legend(loc="upper center", ncols=2, fontsize=8.5, handletextpad=0.2)
    return figure


def heads(finding: Finding) -> PageFigure:
    """Each head's share of attention on rated words, beside chance."""
    return heatmap(pd.DataFrame(finding.drawn["rows"]), x="head", y="kind", value="share")


def rated_scatter(
    table: pd.DataFrame,
    *,
    x: str,
    scores: Sequence[str],
    panel: str,
    below: float = np.inf,
    label: str = "",
) -> Figure:
    """One panel per corpus: every word's scores over its rating, each with parabola and band.

    Fits are over all words of the table; points from `below` on are not drawn, as published.
    """
    names = list(dict.fromkeys(table[panel]))
    height = 210 if len(names) > 1 else 290
    figure = PageFigure(figsize=(WIDTH / 72, height / 72), dpi=160, layout="constrained")
    grid = figure.subplots(1, len(names), squeeze=False)[0]
    is_painted = len(table) * len(scores) > DENSE
    for axes, name in zip(grid, names, strict=True):
        part = table[table[panel] == name]
        at = np.linspace(part[x].min(), part[x].max(), 80)
        for number, score in enumerate(scores):
            known = part[part[score].notna()]
            shown = known[known[score] < below]
            _points(axes, shown[x], shown[score], number, score, is_painted)
        for number, score in enumerate(scores):
            known = part[part[score].notna()]
            fit = quadratic(known[x], known[score])
            if np.isfinite(fit.term(SQUARE).b):
                _parabola(axes, at, *curve(fit, known[x], at), number)
        axes.set_title(plain_text(name))
        axes.set_xlabel(x)
    grid[0].set_ylabel(label)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=4, handletextpad=0.2)
    return figure


def clouds(table: pd.DataFrame, *, word: str, size: str, panel: str) -> Figure:
    """One cloud per panel, words as large as their rank by `size`; the layout is wordcloud's.

    Words are laid out in the font of wordcloud and written in that of the page, which is narrower.
    """
    names = list(dict.fromkeys(table[panel]))
    height = WIDTH * CLOUD[1] / CLOUD[0] + 18
    figure = Figure(figsize=(WIDTH / 72, height * len(names) / 72), dpi=72)
    for number, name in enumerate(names):
        part = table[table[panel] == name]
        frequencies = dict(zip(part[word].astype(str), part[size].astype(float), strict=True))
        bottom = 1 - (number + 1) / len(names)
        axes = figure.add_axes((0.0, bottom, 1.0, (1 - 18 / height) / len(names)))
        axes.set_axis_off()
        axes.set(xlim=(0, CLOUD[0]), ylim=(CLOUD[1], 0))
        axes.set_title(plain_text(name), fontsize=9)
        taken: list[tuple[float, float, float, float]] = []
        for place, (text, font, (top, left)) in enumerate(cloud_layout(frequencies)):
            # The layout counts from the top of the ink; letters are drawn from their base line.
            rise = TALL if set(text) & _TALL_LETTERS else SMALL
            box = (left, top, left + NARROW * font * len(text), top + rise * font)
            if any(overlap(box, other) for other in taken):
                continue  # wordcloud puts small words into the hollows of its own font's letters
            taken.append(box)
            axes.text(
                left, top + rise * font, plain_text(text, 24), fontsize=font * WIDTH / CLOUD[0],
                ha="left", va="baseline", color=SERIES[place % 5], clip_on=True,
            )  # fmt: skip
    return figure


def cloud_layout(
    frequencies: Mapping[str, float], most: int = MOST_WORDS
) -> list[tuple[str, int, tuple[int, int]]]:
    """Words with font size and place (top, left), sized by rank alone.

    Frequencies become whole hundredths first, as published; those of 0 are left out.
    """
    try:
        from wordcloud import WordCloud
    except ImportError as error:
        raise InputError(
            "Word clouds need the package wordcloud (pip install heedful[lexicon])."
        ) from error
    whole = {word: int(100 * value) for word, value in frequencies.items() if value >= 0.01}
    if not whole:
        return []
    cloud = WordCloud(
        width=CLOUD[0], height=CLOUD[1], relative_scaling=0, max_words=most, random_state=0,
        background_color="white", prefer_horizontal=1.0, min_font_size=20, max_font_size=150,
        margin=6,
    )  # fmt: skip
    cloud.generate_from_frequencies(whole)
    return [
        (word, int(font), (int(place[0]), int(place[1])))
        for (word, _), font, place, _, _ in cloud.layout_
    ]


def _points(axes: Axes, x: Any, y: Any, number: int, name: str, is_painted: bool) -> None:
    axes.plot(
        x, y, MARKERS[number % len(MARKERS)], markersize=2.6, alpha=0.4, markeredgewidth=0,
        color=_colour(number, PAINTED if is_painted else SERIES), rasterized=is_painted,
        label=plain_text(name),
    )  # fmt: skip


def _parabola(axes: Axes, at: Any, middle: Any, low: Any, high: Any, number: int) -> None:
    """A fit with its band; the second one is broken, so that one that it covers shows through."""
    colour = _colour(number, SERIES)
    axes.fill_between(at, low, high, color=colour, alpha=0.25, linewidth=0)
    if not number:
        axes.plot(at, middle, color=INK, linewidth=2.6)
    style = (0, (3, 3)) if number else "-"
    axes.plot(at, middle, color=colour, linewidth=1.6, linestyle=style)


def _colour(number: int, colours: Sequence[str]) -> str:
    """As published: the first score warm (red there), the second one cold (blue)."""
    return colours[{0: 1, 1: 0}.get(number, number) % len(colours)]


def _names(axes: Axes, words: Any, x: Any, y: Any, most: float) -> None:
    """Words beside their points, those that would cover another left out."""
    width = float(np.ptp(axes.get_xlim())) or 1.0
    taken: list[tuple[float, float, float, float]] = []
    for word, rating, value in zip(words, x, y, strict=True):
        text = plain_text(word, 16)
        left, bottom = rating / width * WIDTH, value / (most or 1.0) * 230
        box = (left, bottom, left + LETTER * 8 * len(text), bottom + 9)
        if any(overlap(box, other) for other in taken):
            continue
        taken.append(box)
        axes.annotate(
            text, (rating, value), (2, 2), textcoords="offset points", fontsize=8, color=INK
        )
    axes.axhline(1, color=LINE, lw=0.8)
