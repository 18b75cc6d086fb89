"""The figures of the faithful study: adversary curves, single words, leakage and length."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import log
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heedful.report.drawing import SERIES, SOFT, WIDTH, plain_text
from heedful.report.figures import PageFigure
from heedful.report.panels import _levels, _panels, lines
from heedful.reproduction.results import Skipped, Step
from heedful.reproduction.study import Artifact, Made, Plan
from heedful.reproduction.tables import row
from heedful.reproduction.view import View, Views
from heedful.statistics import classification_scores, over_seeds
from heedful.studies.faithful.models import (
    DEEP,
    EDITS,
    MAIN,
    SMOKE,
    VARIANTS,
    Setting,
    few,
    seeds_of,
)
from heedful.studies.faithful.printed import PAPER
from heedful.studies.faithful.steps import adversaries, imitated, instances, measured
from heedful.studies.faithful.tables import each_model, models, steps_of

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


ATTACKED = (*MAIN, "diabetes")
COLLAPSED = 0.05
"""An adversary whose test F1 of either class is below this decides one class only."""
MOST = {"JSD": log(2), "TVD": 1.0, "F1": 1.0}
"""What adversaries are measured by, and its largest value."""
BINS = 5
"""Bins of length with equally many documents."""
NEGATIONS = frozenset(("not", "n't", "no", "never", "nothing", "neither", "nor", "without"))


def curve_of(view: View, variant: str, divergence: str = "jsd") -> pd.DataFrame:
    """The adversaries of a variant, one row for each λ and seed: mean distances and F1 on test."""
    tables = view.of(imitated, variant, divergence)
    rows = []
    for strength in adversaries(view.plan, variant, divergence):
        for seed, one in tables[f"{strength:g}"].groupby("seed"):
            decided = one["decision"].to_numpy(dtype=np.int64)[None]
            f1 = classification_scores(decided, one["label"].to_numpy(), 2).f1[0, 0]
            distances = {"JSD": float(one["jsd"].mean()), "TVD": float(one["tvd"].mean())}
            collapsed = {"F1": float(f1[1]), "collapsed": bool(f1.min() < COLLAPSED)}
            rows.append({"λ": strength, "seed": seed} | distances | collapsed)
    return pd.DataFrame(rows)


def adversary_needs(plan: Plan, corpus: str) -> list[Step[Any]]:
    """All adversaries of a corpus under the divergence of the definition."""
    return [imitated(plan, corpus, variant) for variant in VARIANTS]


def _curves(views: Views) -> Made:

    def one(view: View, asked: Setting) -> list[dict[str, Any]]:
        found = []
        for strength, seeds in curve_of(view, asked.variant).groupby("λ"):
            keys = {"corpus": view.corpus, "model": asked.variant, "λ": strength}
            means = {n: over_seeds(seeds[n].to_list(), 0, most) for n, most in MOST.items()}
            found.append(row(keys, **means, collapsed=int(seeds["collapsed"].sum())))
        return found

    table = each_model(views, models(attentions=("+",)), one)
    draw = partial(dotted, x="JSD", y="TVD", hue="model", panel="corpus", mark="collapsed")
    collapsed, every = int(table["collapsed"].sum()), len(table) * len(few(views.plan))
    return Made(
        table,
        draw,
        "What an adversary pays in output (TVD) for moving attention (JSD), means over seeds: the "
        f"steeper, the more fragile; {collapsed} of {every} adversaries collapsed (hollow where "
        "any of the seeds' did).",
        (
            "Adversaries are chosen on dev, not on training loss; TVD is the whole definition.",
            "Intervals run over seeds, which differ far more than documents do.",
        ),
    )


def _is_right(one: pd.DataFrame) -> pd.Series[Any]:
    return (one["sentence"] > 0.5) == (one["label"] == 1)


def _most_leaking(by: dict[str, pd.DataFrame], text: pd.DataFrame) -> pd.Series[Any]:
    gold = by["base"]["mean"] - by["tying"]["mean"]
    return gold.where(_is_right(by["base"]) & _is_right(by["tying"]))


def _misread(by: dict[str, pd.DataFrame], text: pd.DataFrame) -> pd.Series[Any]:
    negated = text.groupby("instance")["word"].agg(lambda words: bool(NEGATIONS & set(words)))
    sure = (by["base"]["sentence"] - 0.5).abs()
    return (sure + negated.astype(float)).where(~_is_right(by["base"]))


def _clear(by: dict[str, pd.DataFrame], text: pd.DataFrame) -> pd.Series[Any]:
    rows = [1 - (one["sentence"] - one["label"]).abs() for one in by.values()]
    return pd.concat(rows, axis=1).min(axis=1)


def _longest(by: dict[str, pd.DataFrame], text: pd.DataFrame) -> pd.Series[Any]:
    return text.groupby("instance")["position"].max().astype(float)


def _unsure(by: dict[str, pd.DataFrame], text: pd.DataFrame) -> pd.Series[Any]:
    return -(by["base"]["sentence"] - 0.5).abs()


def _surer(by: dict[str, pd.DataFrame], text: pd.DataFrame) -> pd.Series[Any]:
    right = {name: 1 - (one["sentence"] - one["label"]).abs() for name, one in by.items()}
    return pd.concat([right["tying"], right["mlm"]], axis=1).max(axis=1) - right["base"]


Chooser = Callable[[dict[str, pd.DataFrame], pd.DataFrame], "pd.Series[Any]"]


def _sentence(chooser: Chooser, shown: tuple[str, ...], views: Views) -> Made:

    corpus = next(iter(views.corpora), None)
    if corpus is None:
        raise Skipped("no corpus with single sentences at hand")
    tables = {
        variant: views.on(corpus).of(measured, Setting(variant), 0)["sentences"]
        for variant in ("base", "concat", "residual", "tying", "mlm")
    }
    by = {}
    for variant, table in tables.items():
        gold = np.where(table["label"] == 1, table["probability"], 1 - table["probability"])
        grouped = table.assign(mean=gold).groupby("instance")
        by[variant] = grouped.agg({"label": "first", "sentence": "first", "mean": "mean"})
    fitness = chooser(by, tables["base"])
    if not fitness.notna().any():
        raise Skipped("none of the first sentences is of this kind")
    name = str(fitness.idxmax())
    rows = [
        table[table["instance"] == name].assign(model=variant)
        for variant, table in tables.items()
        if variant in shown
    ]
    table = pd.concat(rows, ignore_index=True)
    decided = {v: float(by[v]["sentence"].loc[name]) for v in shown}
    said = ", ".join(f"{variant} {value:.2f}" for variant, value in decided.items())
    label = int(by["base"]["label"].loc[name])
    return Made(table, tokens, f"Label {label}; probability of class 1 of the whole text: {said}.")


def _leakage(views: Views) -> Made:
    def one(view: View, asked: Setting) -> list[dict[str, Any]]:
        seeds = seeds_of(view.plan, view.corpus, asked)
        parts = [view.of(measured, asked, s)["distance"] for s in seeds]
        by = [part.set_index("distance") for part in parts]
        shares = pd.DataFrame([seed["alike"] / seed["units"] for seed in by])
        words = pd.concat(parts).groupby("distance", sort=False)["units"].sum()
        return [
            row(
                {"corpus": view.corpus, "model": asked.variant, "distance": str(distance)},
                **{"words that decide alike": over_seeds(shares[distance], 0, 1)},
                words=int(count),
            )
            for distance, count in words.items()
        ]

    table = each_model(views, models(attentions=("+",)), one)
    draw = partial(lines, x="distance", y="words that decide alike", hue="model", panel="corpus")
    said = "Share of words that alone would decide as the text, by distance to the top word."
    return Made(table, draw, said)


def _lengths(views: Views) -> Made:
    def one(view: View, asked: Setting) -> list[dict[str, Any]]:
        found = instances(view, asked)
        parts = [table.set_index("instance") for table in found]
        bins = pd.qcut(parts[0]["units"], BINS, duplicates="drop")
        changes = {
            f"changed by {edit}": pd.DataFrame(
                [part.groupby(bins, observed=True)[f"{edit}_changes"].mean() for part in parts]
            )
            for edit in EDITS
        }
        keys = {"corpus": view.corpus, "model": asked.variant}
        return [
            row(
                keys | {"words": float(part["units"].mean())},
                **{name: over_seeds(seeds[length], 0, 1) for name, seeds in changes.items()},
                documents=len(part),
            )
            for length, part in parts[0].groupby(bins, observed=True)
        ]

    table = each_model(views, models(attentions=("+",)), one)
    draw = partial(lines, x="words", y="changed by permuted", hue="model", panel="corpus", log=True)
    return Made(table, draw, "Decisions that shuffled attention changes, by length of the text.")


_SENTENCE_NEEDS = steps_of(models(attentions=("+",)))
_ON = (SMOKE, "sst")


def _words(id: str, chooser: Chooser, shown: tuple[str, ...] = VARIANTS) -> Artifact:
    return PAPER.artifact(id, partial(_sentence, chooser, shown), _SENTENCE_NEEDS, _ON)


FIGURES = (
    PAPER.artifact("F1", _curves, adversary_needs, ATTACKED),
    _words("F2", _most_leaking, ("base", "tying")),
    _words("F3", _misread),
    _words("F4", _clear),
    _words("F5", _longest),
    _words("F6", _unsure),
    _words("F7", _surer),
    PAPER.artifact("X7", _leakage, steps_of(models(attentions=("+",))), DEEP),
    PAPER.artifact("X8", _lengths, steps_of(models(attentions=("+",))), DEEP),
)
