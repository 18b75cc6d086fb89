"""What the polarity paper says without showing: that L2 was used, that Adam does alike, that V·W
decides the gap between the classes.

The strength of L2 is never given and the supplement says that Adam gives the same patterns
(polarity.md §2.8): one table each, at λ = 10. V·W is looked at for each λ alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from heedful.reproduction.results import Results, Step
from heedful.reproduction.study import Made, Needs, Plan
from heedful.reproduction.tables import gathered, row
from heedful.statistics import Estimate, over_seeds
from heedful.statistics.association import spearman_of_few
from heedful.studies.polarity import steps, word_steps
from heedful.studies.polarity.figures import Make, needs_grid, scatter
from heedful.studies.polarity.measures import (
    Run,
    by_seed,
    gaps_of,
    pooled_alignment,
    separation,
    shares,
)
from heedful.studies.polarity.word_steps import Tables
from heedful.training import TrainConfig

STRENGTHS = (1e-5, 1e-4, 1e-3)
"""Of L2; the last is that of the grid."""
DECAYED = ("dp-l", "dp-a", "ad")
ADAM_RATE = 1e-3


def _other(plan: Plan, corpus: str, model: str, name: str, config: TrainConfig) -> Step[Tables]:
    """λ = 10 of a model, a few seeds, trained differently."""
    members = steps.members(plan, corpus, model, ("10",), _seeds(plan))
    local = ("10",) if model == "dp-l" else ()
    return word_steps.scored(steps.text(plan, corpus), name, members, config, ("10",), (), local)


def _seeds(plan: Plan) -> tuple[int, ...]:
    """Those of what stands beside the grid, and of the grid where it stands beside it."""
    return plan.seeds[: steps.FEW]


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


def patterns(results: Results, plan: Plan, corpus: str, found: Tables) -> dict[str, Estimate]:
    """Accuracies and POL-1 to POL-3 at λ = 10, one number per seed."""
    trained, words = (_chosen(plan, found[name]) for name in ("runs", "words"))
    runs = by_seed(steps.with_classes(results, plan, corpus, words))
    negative, positive = steps.class_names(results, plan, corpus)
    neutral = [_neutral(run, (positive, negative)) for run in runs]
    told = {
        "dev": over_seeds(100 * trained["dev"], 0, 100),
        "accuracy": over_seeds(100 * trained["accuracy"], 0, 100),
        "right signs": shares([_right_signs(run, positive, negative) for run in runs]),
        "neutral over class words": over_seeds(neutral, 0),
    }
    for role, name in (("positive", positive), ("negative", negative)):
        told[f"AUC of {role}"] = shares([separation(run, name).value for run in runs])
    return told


def _chosen(plan: Plan, table: pd.DataFrame) -> pd.DataFrame:
    """λ = 10 of the seeds that every training has."""
    return table[(table["setting"] == "10") & table["seed"].isin(_seeds(plan))]


def preferred(results: Results, plan: Plan, corpus: str, model: str) -> float:
    """The strength of L2 with the best dev accuracy at λ = 10, mean over seeds."""

    def dev(strength: float) -> float:
        runs = results[decayed(plan, corpus, model, strength)]["runs"]
        return float(_chosen(plan, runs)["dev"].mean())

    return max(STRENGTHS, key=dev)


def at_preferred(model: str, columns: Mapping[str, str]) -> Make:
    """A scatter at λ = 10 with the strength of L2 that dev prefers."""

    def make(results: Results, plan: Plan) -> Made:
        def grid(plan: Plan, corpus: str, model: str) -> Step[Tables]:
            return decayed(plan, corpus, model, preferred(results, plan, corpus, model))

        made = scatter(model, ("10",), columns, grid)(results, plan)
        chosen = results.each(plan.corpora, lambda c: preferred(results, plan, c, model))
        named = ", ".join(f"{corpus} {strength:g}" for corpus, strength in chosen.items())
        said = f"At the strength of L2 that dev prefers: {named}. {made.sentence}"
        return replace(made, sentence=said)

    return make


def needs_preferred(model: str) -> Needs:
    """One model at every strength."""

    def needs(plan: Plan, corpus: str) -> list[Step[Any]]:
        found = [decayed(plan, corpus, model, strength) for strength in STRENGTHS]
        return [*needs_grid(())(plan, corpus), *found]

    return needs


def _right_signs(run: Run, positive: str, negative: str) -> float:
    right = pd.concat([run.of(positive)["polarity"] > 0, run.of(negative)["polarity"] < 0])
    return float(right.mean())


def _neutral(run: Run, names: Iterable[str]) -> float:
    polar = pd.concat([run.of(name) for name in names])["polarity"].abs().median()
    return float(run.of("neutral")["polarity"].abs().median() / polar)


def strengths(results: Results, plan: Plan) -> Made:
    """X-2: accuracy and patterns by strength of L2."""

    def of(corpus: str) -> list[dict[str, Any]]:
        return [
            row(
                {"corpus": corpus, "model": steps.TITLES[model], "L2": f"{strength:g}"},
                **patterns(results, plan, corpus, results[decayed(plan, corpus, model, strength)]),
            )
            for model in DECAYED
            for strength in STRENGTHS
        ]

    table = gathered(results.each(plan.corpora, of))
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


def optimisers(results: Results, plan: Plan) -> Made:
    """X-3: DP by Adagrad and by Adam."""

    def of(corpus: str) -> list[dict[str, Any]]:
        trained = {"adagrad": steps.grid(plan, corpus, "dp"), "adam": by_adam(plan, corpus)}
        return [
            row(
                {"corpus": corpus, "optimiser": name},
                **patterns(results, plan, corpus, results[one]),
            )
            for name, one in trained.items()
        ]

    table = gathered(results.each(plan.corpora, of))
    told = [
        f"{r['optimiser']} {r['accuracy']:.1f} %, right signs {r['right signs']:.2f}, AUC "
        f"{r['AUC of positive']:.2f} and {r['AUC of negative']:.2f}"
        for _, r in table.iterrows()
    ]
    return Made(table, sentence="; ".join(told) + ".")


def gaps(results: Results, plan: Plan) -> Made:
    """X-4: V·W over training beside the gap of attention scores, for each λ alone.

    Over all λ the two are not comparable: scores shrink as λ grows and V·W does not, so that ranks
    over λ can fall where within every λ they rise. The last row has them, λ V·W against the gap.
    """

    def of(corpus: str) -> list[dict[str, Any]]:
        runs = gaps_of(results, plan, corpus)
        found = []
        for scale in steps.SCALES:
            rows = runs[runs["setting"] == scale]
            alike = np.sign(rows["V·W mean"]) == np.sign(rows["gap"])
            keys: dict[str, Any] = {"corpus": corpus, "λ": scale}
            keys |= {"runs": len(rows), "same sign": int(alike.sum())}
            ranks = spearman_of_few(rows["V·W mean"], rows["gap"])
            measured = {"rank correlation": ranks, "V·W": over_seeds(rows["V·W mean"])}
            found.append(row(keys, **measured, gap=over_seeds(rows["gap"])))
        alike = np.sign(runs["V·W mean"]) == np.sign(runs["gap"])
        keys = {"corpus": corpus, "λ": "all"}
        keys |= {"runs": len(runs), "same sign": int(alike.sum())}
        pooled = {"rank correlation": pooled_alignment(results, plan, corpus)}
        return [*found, row(keys, **pooled)]

    table = gathered(results.each(plan.corpora, of))
    told = []
    for corpus, rows in table.groupby("corpus", sort=False):
        large = rows[rows["λ"].isin(steps.LARGE_SCALES)]
        pooled = rows.loc[rows["λ"] == "all", "rank correlation"].item()
        told.append(
            f"{corpus} {large['same sign'].sum()} of {large['runs'].sum()} runs, mean rank "
            f"correlation over seeds within a λ {large['rank correlation'].mean():.2f}, pooled "
            f"over all λ {pooled:+.2f}"
        )
    return Made(table, sentence=f"From λ = 10 on the gap has V·W's sign: {'; '.join(told)}.")
