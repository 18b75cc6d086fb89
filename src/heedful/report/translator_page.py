"""The page of a translator: what it learnt, in which order, and whether attention aligns words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heedful.audits.finding import Finding
from heedful.audits.tables import in_points, percent
from heedful.report.charts import draw
from heedful.report.drawing import ACCENT, GREY, SOFT, WARM, canvas, page_style, svg
from heedful.report.watching import PAIR_CURVES, draw_entries, told
from heedful.statistics.estimates import Estimate

WORDS = "word counts"
FAINT = 0.02
"""Weights below are not painted."""
MEANINGS = {
    "dev loss": "nats per word to write: how surprised the model is by the reference",
    "token accuracy": "next words told rightly while the reference is being written",
    "greedy BLEU": "overlap of n-grams with the reference, the likeliest word taken each time",
    "probe ~ counts": "the source word that met the output word most also tells most about it",
    "attention ~ probe": "the most attended source word is the one that tells most by itself",
    "attention ~ counts": "the most attended source word is the one that met the output word most",
    "attention ~ IBM 1": "the most attended source word is the one that IBM Model 1 would align",
    "entropy of attention": "1 = spread evenly over the source, 0 = all on one word",
}
"""What each column of the curves' table says."""


def render_translator(found: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """The page as HTML that opens from disk: no script, no network, all text escaped."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    finding = Finding.from_json(found["audit"])
    curves = found["curves"]
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_read("translator.html")).render(
        css=Markup(_read("page.css")),
        title=" → ".join(record["configuration"]["files"][:2]),
        found=found,
        numbers=_numbers(found),
        stages=Markup(draw_entries(curves, PAIR_CURVES, WORDS)),
        stages_told=told(curves, PAIR_CURVES, WORDS),
        learning=Markup(draw_learning(curves, found["most frequent share"]["value"])),
        columns=[{"name": name, "meaning": meaning} for name, meaning in MEANINGS.items()],
        moments=[_moment(entry) for entry in curves],
        finding=finding,
        chart=Markup(draw(finding)) if finding.measures else "",
        measures=[
            {"name": m.name, "of": m.method, "value": str(m.estimate), "n": m.estimate.n}
            for m in finding.measures
        ],
        examples=[_matrix(one) for one in found["examples"]],
        settings=_settings(record),
    )


def _numbers(found: Mapping[str, Any]) -> list[dict[str, str]]:
    """The numbers of the first screen, each with what it says."""

    def estimate(name: str) -> Estimate:
        return Estimate.from_json(found[name])

    return [
        {
            "name": "BLEU",
            "value": str(estimate("bleu")),
            "meaning": "Overlap of the translations' n-grams with the references', 0 to 100 "
            "(sacrebleu, beam 5), on the dev pairs, which also chose the kept weights.",
        },
        {
            "name": "token accuracy",
            "value": percent(estimate("token accuracy")),
            "meaning": "Next pieces told rightly while the reference is being written, "
            "on the same dev pairs.",
        },
        {
            "name": "most frequent piece",
            "value": percent(estimate("most frequent share")),
            "meaning": f"What always writing “{found['most frequent']}” would get right: a model "
            "no better than this learnt nothing.",
        },
        {
            "name": "aligned beyond chance",
            "value": in_points(estimate("beyond chance")),
            "meaning": "How much more often than a random source piece the most attended one is "
            f"aligned ({found['alignment']}).",
        },
    ]


def draw_learning(curves: Sequence[Mapping[str, Any]], usual: float) -> str:
    """Loss, and token accuracy with BLEU, over steps; dotted what the most frequent word gets."""
    with page_style("chart-learning"):
        figure = _learning(curves, usual)
        last = curves[-1]
        said = (
            f"Dev loss from {curves[0]['dev_loss']:.2f} to {last['dev_loss']:.2f}, token accuracy "
            f"from {curves[0]['dev_accuracy']:.2f} to {last['dev_accuracy']:.2f}."
        )
        return svg(figure, "chart-learning", "Loss, accuracy and BLEU", said)


def _learning(curves: Sequence[Mapping[str, Any]], usual: float) -> Figure:
    figure, (left, right) = canvas(210, 2)
    steps = [entry["step"] for entry in curves]

    def line(axes: Axes, key: str, label: str, colour: str, scale: float = 1.0) -> None:
        values = [math.nan if e.get(key) is None else e[key] * scale for e in curves]
        axes.plot(steps, values, color=colour, lw=1.8, label=label)

    line(left, "loss", "training loss", WARM)
    line(left, "dev_loss", "dev loss", ACCENT)
    line(right, "dev_accuracy", "token accuracy", ACCENT)
    line(right, "greedy bleu", "greedy BLEU / 100", WARM, 0.01)
    right.axhline(usual, color=GREY, lw=1.2, ls=(0, (2, 2)), label="most frequent piece")
    left.set_title("nats per word", color=SOFT)
    right.set_ylim(-0.02, 1.04)
    for axes in (left, right):
        axes.set_xlabel("training step")
    figure.legend(loc="outside lower left", ncols=3, handlelength=1.4, columnspacing=1.2)
    return figure


def _moment(entry: Mapping[str, Any]) -> dict[str, Any]:
    """One line of the curves' table; agreements are told beyond chance."""
    beyond = [name for name in PAIR_CURVES if name != "chance"]
    keys = {"dev loss": "dev_loss", "token accuracy": "dev_accuracy", "greedy BLEU": "greedy bleu"}
    cells = []
    for name in MEANINGS:
        value = entry[keys.get(name, name)] - (entry["chance"] if name in beyond else 0)
        digits = 1 if name == "greedy BLEU" else 2
        cells.append(f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−"))
    return {"step": f"{entry['step']:,}", "cells": cells}


def _matrix(example: Mapping[str, Any]) -> dict[str, Any]:
    """Attention of one pair as rows of cells, links marked."""
    links = {(unit, step) for unit, step in example["links"]}
    rows = [
        {
            "word": _shown(word),
            "cells": [
                {
                    "weight": f"{weight:.2f}",
                    "paint": f"{weight if weight >= FAINT else 0:.2f}",
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


def _shown(piece: str) -> str:
    """A piece as a reader knows it: a blank before a word's first piece is not shown."""
    return piece.removeprefix("▁") or "␣"


def _settings(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How it was made: one line per setting."""
    configuration = record["configuration"]
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


def _read(name: str) -> str:
    return files("heedful.report").joinpath("templates", name).read_text("utf-8")
