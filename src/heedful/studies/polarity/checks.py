"""What the polarity paper says without showing: that L2 was used, that Adam does alike, that V·W
decides the gap between the classes.

The strength of L2 is never given and the supplement says that Adam gives the same patterns
(polarity.md §2.8): one table each, at λ = 10. V·W is looked at for each λ alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from heedful.reproduction.results import Step
from heedful.reproduction.study import Made, Plan
from heedful.reproduction.tables import row
from heedful.reproduction.view import View, Views
from heedful.statistics import Estimate, over_seeds
from heedful.studies.polarity import steps, word_steps
from heedful.studies.polarity.figures import needs_grid
from heedful.studies.polarity.measures import Run, separation
from heedful.studies.polarity.word_steps import Member, Tables
from heedful.training import TrainConfig

STRENGTHS = (1e-5, 1e-4, 1e-3)
"""Of L2; the last is that of the grid."""
DECAYED = ("dp-l", "dp-a", "ad")
ADAM_RATE = 1e-3


def _other(plan: Plan, corpus: str, model: str, name: str, config: TrainConfig) -> Step[Tables]:
    """λ = 10 of a model, every seed, trained differently."""
    members = [
        Member("10", steps.recipe(plan, corpus, model, "10"), seed) for seed in plan.seeds
    ]  # fmt: skip
    return word_steps.scored(steps.text(plan, corpus), name, members, config, ("10",))


def decayed(plan: Plan, corpus: str, model: str, strength: float) -> Step[Tables]:
    """The model with this strength of L2; that of the grid is the grid's."""
    if strength == STRENGTHS[-1]:
        return steps.grid(plan, corpus, model)
    config = replace(steps.training(plan, model), weight_decay=strength)
    return _other(plan, corpus, model, f"{model},l2={strength:g}", config)


def by_adam(plan: Plan, corpus: str) -> Step[Tables]:
    """DP trained by Adam."""
    config = replace(
        steps.training(plan, "dp"), optimiser="adam", learning_rate=ADAM_RATE, rate_decay=0.0
    )
    return _other(plan, corpus, "dp", "dp,adam", config)


def needs_strengths(plan: Plan, corpus: str) -> list[Step[Any]]:
    """Every model at every strength."""
    found = [decayed(plan, corpus, m, s) for m in DECAYED for s in STRENGTHS]
    return [*needs_grid(())(plan, corpus), *found]


def needs_adam(plan: Plan, corpus: str) -> list[Step[Any]]:
    """DP by either optimiser."""
    return [*needs_grid(["dp"])(plan, corpus), by_adam(plan, corpus)]


def patterns(view: View, found: Tables) -> dict[str, Estimate]:
    """Accuracies and POL-1 to POL-3 at λ = 10, one number per seed."""
    trained = found["runs"][found["runs"]["setting"] == "10"]
    words = found["words"][found["words"]["setting"] == "10"]
    words = steps.with_classes(view, words)
    runs = [Run(seed, words[words["seed"] == seed]) for seed in view.seeds]
    negative, positive = steps.class_names(view)
    told = {
        "dev": over_seeds(100 * trained["dev"]),
        "accuracy": over_seeds(100 * trained["accuracy"]),
        "right signs": over_seeds([_right_signs(run, positive, negative) for run in runs]),
        "neutral over class words": over_seeds(
            [_neutral(run, (positive, negative)) for run in runs]
        ),
    }
    for role, name in (("positive", positive), ("negative", negative)):
        told[f"AUC of {role}"] = over_seeds([separation(run, name).value for run in runs])
    return told


def _right_signs(run: Run, positive: str, negative: str) -> float:
    right = pd.concat([run.of(positive)["polarity"] > 0, run.of(negative)["polarity"] < 0])
    return float(right.mean())


def _neutral(run: Run, names: Iterable[str]) -> float:
    polar = pd.concat([run.of(name) for name in names])["polarity"].abs().median()
    return float(run.of("neutral")["polarity"].abs().median() / polar)


def strengths(views: Views) -> Made:
    """X-2: accuracy and patterns by strength of L2."""

    def of(view: View) -> list[dict[str, Any]]:
        return [
            row(
                {"corpus": view.corpus, "model": steps.TITLES[model], "L2": f"{strength:g}"},
                **patterns(view, view.of(decayed, model, strength)),
            )
            for model in DECAYED
            for strength in STRENGTHS
        ]

    table = views.table(of)
    told = []
    for (corpus, model), rows in table.groupby(["corpus", "model"], sort=False):
        best = rows.sort_values("dev").iloc[-1]
        spread = np.ptp(rows["accuracy"])
        told.append(f"{corpus} {model} {best['L2']} (test accuracies differ by {spread:.1f})")
    aucs = [
        f"{r['model']} at {r['L2']} {r['AUC of positive']:.2f} and {r['AUC of negative']:.2f}"
        for _, r in table.iterrows()
    ]
    said = f"Best on dev: {'; '.join(told)}. AUC of attention scores against neutral words: "
    return Made(table, sentence=f"{said}{'; '.join(aucs)}.")


def optimisers(views: Views) -> Made:
    """X-3: DP by Adagrad and by Adam."""

    def of(view: View) -> list[dict[str, Any]]:
        trained = {
            "adagrad": steps.grid(view.plan, view.corpus, "dp"),
            "adam": by_adam(view.plan, view.corpus),
        }
        return [
            row(
                {"corpus": view.corpus, "optimiser": name},
                **patterns(view, view[one]),
            )
            for name, one in trained.items()
        ]

    table = views.table(of)
    told = [
        f"{r['optimiser']} {r['accuracy']:.1f} %, right signs {r['right signs']:.2f}, AUC "
        f"{r['AUC of positive']:.2f} and {r['AUC of negative']:.2f}"
        for _, r in table.iterrows()
    ]
    return Made(table, sentence="; ".join(told) + ".")


def gaps(views: Views) -> Made:
    """X-4: V·W over training beside the gap of attention scores, for each λ alone.

    Over all λ the two are not comparable: scores shrink as λ grows and V·W does not, so that ranks
    over λ can fall where within every λ they rise.
    """

    def of(view: View) -> list[dict[str, Any]]:
        negative, positive = steps.class_names(view)
        runs = view.of(steps.grid, "dp")["runs"]
        runs = runs.assign(gap=runs[f"attention/{positive}"] - runs[f"attention/{negative}"])
        found = []
        for scale in steps.SCALES:
            rows = runs[runs["setting"] == scale]
            alike = np.sign(rows["V·W mean"]) == np.sign(rows["gap"])
            counts = {"runs": len(rows), "same sign": int(alike.sum())}
            ranks = rows["V·W mean"].rank().corr(rows["gap"].rank())
            keys = {"corpus": view.corpus, "λ": scale} | counts | {"rank correlation": ranks}
            measured = {"V·W": over_seeds(rows["V·W mean"]), "gap": over_seeds(rows["gap"])}
            found.append(row(keys, **measured))
        return found

    table = views.table(of)
    told = []
    for corpus, rows in table[table["λ"].astype(float) >= 10].groupby("corpus", sort=False):
        told.append(
            f"{corpus} {rows['same sign'].sum()} of {rows['runs'].sum()} runs, mean rank "
            f"correlation over seeds within a λ {rows['rank correlation'].mean():.2f}"
        )
    return Made(table, sentence=f"From λ = 10 on the gap has V·W's sign: {'; '.join(told)}.")
