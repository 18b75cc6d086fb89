"""One picture for each finding, drawn from what the finding keeps for it."""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.audits.finding import Finding
from heedful.errors import InputError
from heedful.report.axes import Axes
from heedful.report.canvas import Canvas, canvas
from heedful.report.drawing import (
    ACCENT,
    GREY,
    HUSH,
    INK,
    LINE,
    RASTER,
    SERIES,
    SOFT,
    WARM,
    columns,
    fitted,
    page,
    plain_text,
    width,
    worded,
)
from heedful.report.method_charts import (
    EMPHASISED,
    ROW,
    colours_of,
    ends,
    lines,
    points,
    randomisation,
    share_labels,
    violation,
)
from heedful.report.word_charts import words
from heedful.statistics.estimates import per_cent

if TYPE_CHECKING:
    from heedful.report.figures import PageFigure

SHORT, LONG = 17, 28
"""Room of a cell that holds a number in hundredths, and one with its point."""
DENSE = 400
"""Scatters with more points become a picture inside the SVG."""
MOST_BARS = 24
"""A plain chart shows at most so many measures; the table has them all."""


def draw(finding: Finding, is_narrow: bool = False) -> str:
    """The finding's chart as an inline SVG element, for a page or narrow for a phone.

    A chart of unknown name, or one without data, is a plain chart of the finding's measures. Data
    that is not what this version draws is an error.
    """
    name = "chart-" + re.sub(r"[^a-z0-9]+", "-", finding.audit.lower()).strip("-")
    name += "-narrow" * is_narrow
    with page(is_narrow):
        chart = CHARTS.get(finding.chart, measures) if finding.drawn else measures
        return chart(finding).svg(name, finding.question, finding.answer)


def draw_training(metrics: Path, is_narrow: bool = False) -> str:
    """The training curve of a `metrics.jsonl` as an inline SVG element; empty without one."""
    if not metrics.is_file():
        return ""
    history = _history(metrics)
    if not history:
        return ""
    name = "chart-training" + "-narrow" * is_narrow
    with page(is_narrow):
        return training(history).svg(name, "Training curve", _told(history))


def _history(metrics: Path) -> list[dict[str, Any]]:
    """The evaluations of a `metrics.jsonl`, one object per line."""
    history = []
    for number, line in enumerate(metrics.read_bytes().splitlines(), 1):
        try:
            entry = json.loads(line) if line.strip() else None
        except ValueError as error:  # bad JSON, or bytes that are not text
            raise InputError(
                f"{metrics}, line {number}, is damaged ({error}); train the model again, or delete "
                "the file to have the page without its training curve."
            ) from None
        if entry is not None and not isinstance(entry, dict):
            raise InputError(
                f"{metrics}, line {number}: expected a JSON object, got {type(entry).__name__}; "
                "train the model again, or delete the file."
            )
        history += [entry] if entry else []
    return history


def measures(finding: Finding) -> Canvas:
    """Every measure as a point with its interval; the first ones where there are many.

    What is above 1 would press shares together on one axis, and is left to the table of numbers.
    """
    known = [m for m in finding.measures if math.isfinite(m.estimate.value)]
    shares = [m for m in known if abs(m.estimate.value) <= 1]
    kept = (shares if len(shares) > 1 else known)[:MOST_BARS]
    is_one = len({m.name for m in kept}) == 1
    named = [
        f"{m.name}, {m.method}" if m.method and not is_one else m.method or m.name for m in kept
    ]
    names = [textwrap.fill(plain_text(name, 78), 26) for name in named]
    row = ROW + 12 * max((name.count("\n") for name in names), default=0)
    figure, (axes,) = canvas(max(len(kept), 1) * row + 46)
    if not kept:
        return _nothing(figure, axes)
    points(axes, names, [ends(m.estimate.to_json()) for m in kept])
    axes.y.mark(range(len(names)), names)
    if len(shares) > 1 and all(m.estimate.value >= 0 for m in kept):
        axes.x.is_share = True
    return figure


def erasure(finding: Finding) -> Canvas:
    """Box plots of the fraction removed before the decision flips, one line per ranking."""
    boxes = {n: b for n, b in finding.drawn["boxes"].items() if b["n"]}
    if not boxes:
        return measures(finding)
    figure, (axes,) = canvas(len(boxes) * ROW + 52)
    for line, (name, box) in enumerate(boxes.items()):
        colour = ACCENT if name == EMPHASISED else GREY
        axes.plot([box["low"], box["high"]], [line, line], color=colour, lw=1)
        spread = box["q3"] - box["q1"]
        axes.box(box["q1"], line - 0.28, spread, 0.56, color=colour, alpha=0.35)
        axes.plot([box["median"]] * 2, [line - 0.28, line + 0.28], color=colour, lw=2.2)
    lines(axes, list(boxes))
    axes.x.limits, axes.x.is_share = (-0.01, 1.01), True
    axes.x.label = fitted(
        f"of a text without attention when the decision changes ({per_cent(1)} = never)"
    )
    return figure


def single_erasure(finding: Finding) -> Canvas:
    """ΔJS against Δα of each document, and who flips: the top unit, a random one, both, neither."""
    drawn = finding.drawn
    table = drawn["contingency"][drawn["ranking"]]
    figure, (left, right) = canvas(232, 2, (1.5, 1))
    x, y = (np.array(drawn[k], dtype=float) for k in ("delta_attention", "delta_js"))
    is_dense = len(x) > DENSE
    colour = RASTER if is_dense else ACCENT
    left.axhline(0, color=LINE, lw=1)
    left.scatter(x, y, s=7, alpha=0.6, color=colour, is_painted=is_dense)
    left.y.colour = INK
    left.x.label = "Δ attention, top − other"
    left.title = "Δ JS divergence of the output"
    _contingency(right, table)
    return figure


def substitution(finding: Finding) -> Canvas:
    """Scores under the trained, uniform and permuted attention, with intervals."""
    scores = finding.drawn["scores"]
    if not scores:
        changed = finding.drawn["changed"]
        figure, (axes,) = canvas(len(changed) * ROW * 1.4 + 52)
        points(axes, list(map(worded, changed)), [ends(e) for e in changed.values()])
        axes.x.label, axes.x.is_share = "decisions that change", True
        return figure
    names = list(next(iter(scores.values())))[:8]
    figure, (axes,) = canvas(len(names) * 3 * 13 + 72)
    colours = dict(zip(scores, (INK, ACCENT, WARM), strict=False))
    for line, name in enumerate(names):
        for place, (edit, found) in enumerate(scores.items()):
            value, low, high = ends(found[name])
            at = line + (place - 1) * 0.26
            axes.plot([low, high], [at, at], color=colours[edit], lw=1.6, alpha=0.55)
            label = None if line else worded(edit)
            axes.points(value, at, color=colours[edit], ms=5, label=label)
    lines(axes, names)
    axes.x.is_share = True
    figure.legend(columns(3), is_above=True)
    return figure


def concentration(finding: Finding) -> Canvas:
    """Histograms of entropy and of the largest weight over documents."""
    figure, (left, right) = canvas(180, 2)
    _histogram(left, finding.drawn["entropy"], "entropy, of its maximum")
    _histogram(right, finding.drawn["largest weight"], "largest weight")
    left.title = "documents"
    return figure


def confidence(finding: Finding) -> Canvas:
    """Histograms of the decision's probability on single units, and of its mean per document."""
    figure, (left, right) = canvas(180, 2)
    _histogram(left, finding.drawn["units"], "probability on one unit alone")
    _histogram(right, finding.drawn["documents"], "mean over a document")
    left.title, right.title = "units", "documents"
    return figure


def agreement(finding: Finding) -> Canvas:
    """A heat map of Kendall's τ between every two importance methods."""
    names = finding.drawn["methods"]
    matrix = np.array(finding.drawn["Kendall τ"], dtype=float)
    room = (width() - 105) / len(names)  # beside the names on the left
    figure, (axes,) = canvas(len(names) * min(max(room, 16), 26) + 86)
    for i, j in np.ndindex(*matrix.shape):
        value = float(matrix[i, j])
        if i == j or not math.isfinite(value):
            _cell(axes, j, i, HUSH, 1.0)
            continue
        _cell(axes, j, i, ACCENT if value >= 0 else WARM, 0.06 + 0.64 * abs(value))
        if room >= SHORT:  # the table has the numbers
            # Adding 0 turns -0.0 into 0.0.
            shown = f"{round(value, 2) + 0.0:.2f}" if room > LONG else f"{round(100 * value)}"
            size = 9 if room > LONG else 7.5
            shown = shown.replace("-", "−")
            axes.text(j, i, shown, size=size)
    axes.title = f"Kendall τ{'' if room > LONG else ', in hundredths'}"
    shown_names = [plain_text(n, 18) for n in names]
    axes.x.mark(range(len(names)), shown_names, 90 if room < LONG else 35)
    axes.y.mark(range(len(names)), shown_names)
    _table(axes, len(names))
    return figure


def evidence(finding: Finding) -> Canvas:
    """How well each method finds the known evidence: AUPRC, token F1 and mass on it."""
    kinds = [kind for kind in ("AUPRC", "token F1", "mass on evidence") if kind in finding.drawn]
    names = finding.drawn["methods"]
    figure, panels = canvas(len(names) * ROW + 62, len(kinds))
    for panel, (axes, kind) in enumerate(zip(panels, kinds, strict=True)):
        points(axes, names, [ends(bar) for bar in finding.drawn[kind]])
        axes.x.limits = 0, 1
        axes.x.mark([0, 0.5, 1], ["0", "½", "1"])
        axes.title = kind
        if panel:
            share_labels(axes)
    return figure


def adversary(finding: Finding) -> Canvas:
    """How far attention can move while the output stays, and what a search finds of it."""
    drawn = finding.drawn
    has_search = bool(drawn["searched"])
    figure, panels = canvas(190, 1 + has_search)
    _histogram(panels[0], drawn["exact_jsd"], "farthest attention with the same output (JSD)")
    panels[0].title = "documents"
    panels[0].axvline(drawn["largest"], color=SOFT, lw=1, ls=(0, (2, 2)))
    if has_search:
        is_dense = len(drawn["exact"]) > DENSE
        right, top = panels[1], drawn["largest"]
        right.plot([0, top], [0, top], color=LINE, lw=1)
        right.scatter(
            drawn["exact"],
            drawn["searched"],
            s=9,
            alpha=0.7,
            color=RASTER if is_dense else ACCENT,
            is_painted=is_dense,
        )
        right.x.label = "exact"
        right.title = "found by gradient search"
    return figure


def input_erasure(finding: Finding) -> Canvas:
    """What removing the top words, and keeping only them, costs the decision, by method."""
    drawn = finding.drawn
    mode, *_ = (name for name in drawn if name not in ("methods", "shares"))
    kinds = [kind for kind in ("comprehensiveness", "sufficiency", "flips") if kind in drawn[mode]]
    figure, panels = canvas(250, len(kinds))
    shares = [100 * share for share in drawn["shares"]]
    worth = {name: _worth(drawn[mode], name) for name in drawn["methods"]}
    styles = colours_of(sorted(worth, key=lambda name: -worth[name]))
    for axes, kind in zip(panels, kinds, strict=True):
        for name, found in drawn[mode][kind].items():
            style = styles[name] | ({} if axes is panels[0] else {"label": None})
            axes.plot(shares, [ends(estimate)[0] for estimate in found], **style)
        axes.title = kind
        axes.x.label = "% of words"
        axes.y.has_grid, axes.y.has_line, axes.y.colour = True, False, SOFT
    figure.legend(columns(3))
    return figure


def _worth(drawn: Mapping[str, Mapping[str, Any]], method: str) -> float:
    """Comprehensiveness less sufficiency of a method, as far as they were drawn."""
    signs = {"comprehensiveness": 1, "sufficiency": -1}
    found = [
        sign * ends(estimate)[0]
        for kind, sign in signs.items()
        for estimate in drawn.get(kind, {}).get(method, ())
    ]
    return float(np.nansum(found))


def training(history: Sequence[Mapping[str, Any]]) -> Canvas:
    """Loss on the training and dev documents, and the dev score, over epochs."""
    figure, (left, right) = canvas(200, 2)
    epoch = [entry.get("epoch", place + 1) for place, entry in enumerate(history)]
    panels = {left: ("loss", "dev_loss"), right: ("dev_accuracy", "dev_macro_f1")}
    colours = iter(SERIES)
    for axes, keys in panels.items():
        for key, colour in zip(keys, colours, strict=False):
            if key in history[0]:
                values = [math.nan if e.get(key) is None else e[key] for e in history]
                label = {"loss": "train"}.get(key, key.replace("_", " ").replace(" f1", " F1"))
                axes.plot(epoch, values, color=colour, lw=1.8, label=label)
        axes.x.label = "epoch"
    left.title, right.title = "loss", "score"
    figure.legend(columns(4))
    return figure


def _histogram(axes: Axes, drawn: Mapping[str, Any], label: str) -> None:
    edges, counts = np.array(drawn["edges"]), drawn["counts"]
    axes.bars(edges, counts, 0.9, color=ACCENT)
    axes.x.label, axes.x.limits = label, (edges[0], edges[-1])
    axes.x.most = axes.y.most = 5
    axes.y.has_grid, axes.y.has_line, axes.y.colour = True, False, SOFT


def _contingency(axes: Axes, table: Mapping[str, int]) -> None:
    """The 2×2 table as four shaded cells with their shares."""
    total = sum(table.values()) or 1
    cells = {"both": (0, 0), "only_top": (1, 0), "only_random": (0, 1), "neither": (1, 1)}
    for name, (x, y) in cells.items():
        share = table[name] / total
        colour = WARM if name == "only_random" else ACCENT if name != "neither" else GREY
        _cell(axes, x, y, colour, 0.14 + 0.36 * share)
        axes.text(x, y, per_cent(share, 1), weight="bold")
    axes.x.mark([0, 1], ["flips", "stays"])
    axes.y.mark([0, 1], ["flips", "stays"])
    axes.x.label = "other without attention"
    axes.title = "top unit without attention"
    _table(axes, 2)


def _table(axes: Axes, count: int) -> None:
    """Makes axes those of a table with so many lines and columns."""
    axes.x.limits, axes.y.limits = (-0.5, count - 0.5), (count - 0.5, -0.5)
    axes.x.has_line = axes.y.has_line = False
    axes.x.tick = 0


def _cell(axes: Axes, x: float, y: float, colour: str, alpha: float) -> None:
    axes.box(x - 0.48, y - 0.48, 0.96, 0.96, color=colour, alpha=alpha)


def _nothing(figure: Canvas, axes: Axes) -> Canvas:
    axes.is_off = True
    # In the middle of the figure: beside axes of no size it would fall off a narrow page.
    figure.said = "Nothing to draw: no number is defined."
    return figure


def lexicon(finding: Finding) -> PageFigure:
    """Word averages over ratings; what matplotlib draws is imported where it is drawn."""
    from heedful.report import figures, lexicon_charts

    with figures.page_style():
        return lexicon_charts.lexicon(finding)


def heads(finding: Finding) -> PageFigure:
    """Each head's share of attention on rated words, beside chance."""
    from heedful.report import figures, lexicon_charts

    with figures.page_style():
        return lexicon_charts.heads(finding)


def _told(history: Sequence[Mapping[str, Any]]) -> str:
    last = {name: value for name, value in history[-1].items() if isinstance(value, int | float)}
    ends = ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in last.items())
    return f"{len(history)} evaluations; at the last one: {ends}."


CHARTS: dict[str, Callable[[Finding], Canvas | PageFigure]] = {
    "adversary": adversary,
    "agreement": agreement,
    "concentration": concentration,
    "confidence": confidence,
    "erasure": erasure,
    "evidence": evidence,
    "heads": heads,
    "input_erasure": input_erasure,
    "lexicon": lexicon,
    "randomisation": randomisation,
    "single_erasure": single_erasure,
    "substitution": substitution,
    "violation": violation,
    "words": words,
}
