"""The page of a translator: what it learnt, in which order, and whether attention aligns words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from heedful.audits.alignment import (
    BASELINES,
    BEYOND,
    CHANCE,
    HIT,
    MASS,
    MOST,
    ON_MARKS,
    baselines,
)
from heedful.audits.finding import Finding
from heedful.audits.tables import in_points, percent
from heedful.report.axes import Axes
from heedful.report.canvas import Canvas, canvas
from heedful.report.drawing import ACCENT, GREEN, GREY, INK, OCHRE, WARM
from heedful.report.html import asset, template
from heedful.report.method_charts import ends
from heedful.report.method_charts import lines as axes_lines
from heedful.report.watch_charts import PAIR_CURVES, RISE, draw_entries, told
from heedful.statistics.estimates import Estimate, per_cent

WORDS = "counts of pieces that meet"
ROWS = {HIT: "aligned", MASS: "attention's mass, aligned", ON_MARKS: "attention's top on <s>, </s>"}
"""How the chart of the audit names its rows."""
FAINT = 0.02
"""Weights below are not painted."""
MEANINGS = {
    "dev loss": "nats per piece to write: how surprised the model is by the reference",
    "token accuracy": "next pieces told rightly while the reference is being written",
    "greedy BLEU": "overlap of n-grams with the reference, the likeliest piece taken each time",
    "probe ~ counts": "the source piece that met the output piece most also tells most about it",
    "attention ~ probe": "the most attended source piece is the one that tells most by itself",
    "attention ~ counts": "the most attended source piece is the one that met the output piece "
    "most",
    "attention ~ IBM 1": "the most attended source piece is the one that IBM Model 1 would align",
    "chance": "what a source piece drawn at random would reach in the four columns with ~",
    "entropy of attention": "1 = spread evenly over the source, 0 = all on one piece",
}
"""What each column of the curves' table says."""


def render_translator(found: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """The page as HTML that opens from disk: no script, no network, all text escaped."""
    from markupsafe import Markup

    finding = Finding.from_json(found["audit"])
    curves = found["curves"]
    return template("translator.html").render(
        css=Markup(asset("page.css")),
        title=" → ".join(record["configuration"]["files"][:2]),
        found=found,
        numbers=_numbers(found, finding),
        stages=Markup(draw_entries(curves, PAIR_CURVES, WORDS)),
        stages_told=told(curves, PAIR_CURVES, WORDS),
        learning=Markup(draw_learning(curves, found["most frequent share"]["value"])),
        columns=[{"name": name, "meaning": meaning} for name, meaning in MEANINGS.items()],
        moments=[_moment(entry) for entry in curves],
        finding=finding,
        chart=Markup(draw_audit(finding)) if finding.measures else "",
        most=per_cent(MOST),
        rise=RISE,
        faint=FAINT,
        shades=("0.1", "0.25", "0.5", "0.75", "1"),
        measures=[
            {"name": m.name, "of": m.method, "value": str(m.estimate), "n": m.estimate.n}
            for m in finding.measures
        ],
        examples=[_matrix(one) for one in found["examples"]],
        settings=_settings(found, record),
    )


def _numbers(found: Mapping[str, Any], finding: Finding) -> dict[str, str]:
    """The numbers of the first screen; the template says what each means."""

    def estimate(name: str) -> Estimate:
        return Estimate.from_json(found[name])

    best = next(iter(baselines(finding)), CHANCE)
    return {
        "bleu": str(estimate("bleu")),
        "accuracy": percent(estimate("token accuracy")),
        "usual": percent(estimate("most frequent share")),
        "usual_piece": _shown(found["most frequent"]),
        "baseline": best,
        "beyond": in_points(finding.get(BEYOND, best) or estimate("beyond chance")),
    }


def draw_learning(curves: Sequence[Mapping[str, Any]], usual: float) -> str:
    """Loss, and token accuracy with BLEU, over steps; dotted what the most frequent piece gets."""
    last = curves[-1]
    said = (
        f"Dev loss from {curves[0]['dev_loss']:.2f} to {last['dev_loss']:.2f}, token accuracy "
        f"from {curves[0]['dev_accuracy']:.2f} to {last['dev_accuracy']:.2f}."
    )
    return _learning(curves, usual).svg("chart-learning", "Loss, accuracy and BLEU", said)


def _learning(curves: Sequence[Mapping[str, Any]], usual: float) -> Canvas:
    figure, (left, right) = canvas(210, 2)
    steps = [entry["step"] for entry in curves]

    def line(axes: Axes, key: str, label: str, colour: str, scale: float = 1.0) -> None:
        values = [math.nan if e.get(key) is None else e[key] * scale for e in curves]
        axes.plot(steps, values, color=colour, lw=1.8, label=label)

    # One colour, one meaning; grey is, as in the chart beside, what needs no model.
    line(left, "loss", "training loss", OCHRE)
    line(left, "dev_loss", "dev loss", GREEN)
    line(right, "dev_accuracy", "token accuracy", INK)
    line(right, "greedy bleu", "greedy BLEU / 100", WARM, 0.01)
    right.axhline(usual, color=GREY, lw=1.2, ls=(0, (2, 2)), label="most frequent piece")
    left.y.label, left.y.limits = "nats per piece", (0, None)
    right.y.label, right.y.limits = "share, or BLEU / 100", (-0.02, 1.04)
    for axes in (left, right):
        axes.x.label = "training step"
    figure.legend(3)
    return figure


def draw_audit(finding: Finding) -> str:
    """The shares of the audit with their intervals, from 0 to 1; dashed the bound of a yes."""
    shown = [m for m in finding.measures if m.name in ROWS]
    names = [ROWS[m.name] + (f": {m.method}" if m.name == HIT else "") for m in shown]
    figure, (axes,) = canvas(len(shown) * 26 + 50)
    axes.axvline(MOST, color=GREY, lw=1.2, ls=(0, (2, 2)))
    for row, one in enumerate(shown):
        value, low, high = ends(one.estimate.to_json())
        colour = GREY if one.method in BASELINES else ACCENT
        axes.plot([low, high], [row, row], color=colour, lw=2, alpha=0.5)
        axes.points(value, row, color=colour, ms=5)
    axes_lines(axes, names)
    axes.y.mark(range(len(names)), names)  # whole, not cut
    axes.x.limits, axes.x.is_share = (0, 1), True
    axes.x.label = "of the output pieces, or of their attention"
    return figure.svg("chart-alignment", finding.question, finding.answer)


def _moment(entry: Mapping[str, Any]) -> dict[str, Any]:
    """One line of the curves' table, with the numbers that the chart draws."""
    keys = {"dev loss": "dev_loss", "token accuracy": "dev_accuracy", "greedy BLEU": "greedy bleu"}
    cells = []
    for name in MEANINGS:
        value = entry[keys.get(name, name)]
        digits = 1 if name == "greedy BLEU" else 2
        cells.append(f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−"))
    return {"step": f"{entry['step']:,}", "cells": cells}


def _matrix(example: Mapping[str, Any]) -> dict[str, Any]:
    """Attention of one pair as rows of cells, links marked."""
    links = {(unit, step) for unit, step in example["links"]}
    rows = [
        {
            "word": _shown(word),
            "starts": _starts_word(word),
            "cells": [
                {
                    "weight": f"{weight:.2f}",
                    "paint": f"{weight if weight >= FAINT else 0:.2f}",
                    "marks": " ".join(
                        name
                        for name, is_so in (
                            ("linked", (unit, step) in links),
                            ("starts", _starts_word(example["units"][unit])),
                        )
                        if is_so
                    ),
                    "is_linked": (unit, step) in links,
                }
                for unit, weight in enumerate(weights)
            ],
        }
        for step, (word, weights) in enumerate(
            zip(example["words"], example["attention"], strict=True)
        )
    ]
    return {"units": [_shown(unit) for unit in example["units"]], "rows": rows}


def _starts_word(piece: str) -> bool:
    """Whether a word begins here; the marks of start and end stand for themselves."""
    return piece.startswith("▁") or piece in ("<s>", "</s>")


def _shown(piece: str) -> str:
    """A piece as a reader knows it: a blank before a word's first piece is not shown."""
    return piece.removeprefix("▁") or "␣"


def _settings(found: Mapping[str, Any], record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How it was made: one line per setting."""
    configuration = dict(record["configuration"])
    asked = configuration.pop("pieces")
    configuration |= {"pieces asked for": asked, "pieces used": f"{found['pieces']:,}"}
    configuration |= {"alignment": found["alignment"]}
    flat = {name: value for name, value in configuration.items() if not isinstance(value, Mapping)}
    for part in ("model", "train"):
        flat |= dict(configuration[part])
    told = [(name.replace("_", " "), _value(value)) for name, value in flat.items()]
    about = {"device": record.get("device"), "commit": record.get("commit")}
    about |= {"best step": record.get("best_step"), "made": str(record.get("created", ""))[:19]}
    about |= dict(record.get("versions", {}))
    return told + [(name, _value(value)) for name, value in about.items()]


def _value(value: Any) -> str:
    if value is None:
        return "–"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
