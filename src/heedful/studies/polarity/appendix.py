"""Tables of the polarity study beyond the paper's: what it says without showing, what a draw does.

The strength of L2 is never given and the supplement says that Adam gives the same patterns
(docs/studies/polarity.md, "Training"): one table each, at λ = 10. V·W, said to decide the gap
between the classes, is looked at for each λ alone. IMDB and 20News II lie below the paper at large
λ, DP at λ = 0.001 above it; the paper has one split and one start, here each is drawn again (X-5,
X-6).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from heedful.report import panels
from heedful.reproduction.results import Step
from heedful.reproduction.study import Made, Needs, Plan
from heedful.reproduction.tables import gathered, row, row_by_row
from heedful.reproduction.view import View, Views
from heedful.statistics import Estimate, new_draw, over_seeds
from heedful.statistics.association import spearman_of_few
from heedful.studies.polarity import corpora, steps, word_steps
from heedful.studies.polarity import printed as paper
from heedful.studies.polarity.figures import Make, needs_grid, scatter
from heedful.studies.polarity.measures import (
    ScoredRun,
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
    return word_steps.scored(corpora.text(plan, corpus), name, members, config, ("10",), (), local)


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


def patterns(view: View, found: Tables) -> dict[str, Estimate]:
    """Accuracies and POL-1 to POL-3 at λ = 10, one number per seed."""
    trained, words = (_chosen(view.plan, found[name]) for name in ("runs", "words"))
    runs = by_seed(steps.with_classes(view, words))
    negative, positive = steps.class_names(view)
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


def preferred(view: View, model: str) -> float:
    """The strength of L2 with the best dev accuracy at λ = 10, mean over seeds."""

    def dev(strength: float) -> float:
        runs = view.of(decayed, model, strength)["runs"]
        return float(_chosen(view.plan, runs)["dev"].mean())

    return max(STRENGTHS, key=dev)


def at_preferred(model: str, columns: Mapping[str, str]) -> Make:
    """A scatter at λ = 10 with the strength of L2 that dev prefers."""

    def trained(view: View, model: str) -> Tables:
        return view.of(decayed, model, preferred(view, model))

    def make(views: Views) -> Made:
        made = scatter(model, ("10",), columns, trained)(views)
        chosen = views.each(lambda view: preferred(view, model))
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


def _right_signs(run: ScoredRun, positive: str, negative: str) -> float:
    right = pd.concat([run.of(positive)["polarity"] > 0, run.of(negative)["polarity"] < 0])
    return float(right.mean())


def _neutral(run: ScoredRun, names: Iterable[str]) -> float:
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
    best_on_dev = []
    for (corpus, model), rows in table.groupby(["corpus", "model"], sort=False):
        best = rows.sort_values("dev").iloc[-1]
        spread = np.ptp(rows["accuracy"])
        best_on_dev.append(
            f"{corpus} {model} {best['L2']} (test accuracies differ by {spread:.1f})"
        )
    aucs = row_by_row(table, "{model} at {L2} {AUC of positive:.2f} and {AUC of negative:.2f}")
    said = f"Best on dev: {'; '.join(best_on_dev)}. AUC of attention scores against neutral words: "
    return Made(table, sentence=f"{said}{aucs}.")


def optimisers(views: Views) -> Made:
    """X-3: DP by Adagrad and by Adam."""

    def of(view: View) -> list[dict[str, Any]]:
        trained = {"adagrad": view.of(steps.grid, "dp"), "adam": view.of(by_adam)}
        return [
            row({"corpus": view.corpus, "optimiser": name}, **patterns(view, one))
            for name, one in trained.items()
        ]

    table = views.table(of)
    said = "{optimiser} {accuracy:.1f} %, right signs {right signs:.2f}, AUC "
    said += "{AUC of positive:.2f} and {AUC of negative:.2f}"
    return Made(table, sentence=row_by_row(table, said) + ".")


def gaps(views: Views) -> Made:
    """X-4: V·W over training beside the gap of attention scores, for each λ alone.

    Over all λ the two are not comparable: scores shrink as λ grows and V·W does not, so that ranks
    over λ can fall where within every λ they rise. The last row has them, λ V·W against the gap.
    """

    def of(view: View) -> list[dict[str, Any]]:
        runs = gaps_of(view)
        found = []
        for scale in steps.SCALES:
            rows = runs[runs["setting"] == scale]
            alike = np.sign(rows["V·W mean"]) == np.sign(rows["gap"])
            keys: dict[str, Any] = {"corpus": view.corpus, "λ": scale}
            keys |= {"runs": len(rows), "same sign": int(alike.sum())}
            ranks = spearman_of_few(rows["V·W mean"], rows["gap"])
            measured = {"rank correlation": ranks, "V·W": over_seeds(rows["V·W mean"])}
            found.append(row(keys, **measured, gap=over_seeds(rows["gap"])))
        alike = np.sign(runs["V·W mean"]) == np.sign(runs["gap"])
        keys = {"corpus": view.corpus, "λ": "all"}
        keys |= {"runs": len(runs), "same sign": int(alike.sum())}
        pooled = {"rank correlation": pooled_alignment(view)}
        return [*found, row(keys, **pooled)]

    table = views.table(of)
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


REDRAWN = ("imdb", "20news-2", "planted")
"""Corpora split again: those below the paper, and what stands in for them at smoke scale."""


def needs_redrawn(plan: Plan, corpus: str) -> list[Step[Any]]:
    """The grid of every model on our split, and its large λ on splits drawn again."""
    found = [steps.redrawn(plan, corpus, model) for model in steps.MODELS]
    return [*needs_grid(steps.MODELS)(plan, corpus), *found]


def _printed(corpus: str, model: str) -> dict[str, float]:
    """The paper's accuracies by λ; none for a stand-in."""
    table = paper.accuracies()
    rows = table[(table["corpus"] == corpus) & (table["model"] == model)]
    return dict(zip(rows["λ"], rows["accuracy"], strict=True))


def splits(views: Views) -> Made:
    """X-5: accuracy at large λ on our split and over splits drawn again, beside the paper's.

    "One more" is where the accuracy of one more split lies with a chance of 95 %: a printed number
    inside can be the split's doing.
    """

    def of(place: str) -> list[dict[str, Any]]:
        corpus, model = place.split(", ")
        ours = views.on(corpus).of(steps.grid, model)["runs"]
        again = views.on(corpus).of(steps.redrawn, model)["runs"]
        found = []
        for scale in steps.LARGE_SCALES:
            fixed, drawn = (100 * t.loc[t["setting"] == scale, "accuracy"] for t in (ours, again))
            keys = {"corpus": corpus, "model": steps.TITLES[model], "λ": scale}
            measured = {"our split": over_seeds(fixed, 0, 100)}
            measured |= {"redrawn": over_seeds(drawn, 0, 100)}
            more, printed = new_draw(drawn).cut(0, 100), _printed(corpus, model).get(scale)
            numbers = {"one more low": more.low, "one more high": more.high, "paper": printed}
            if printed is not None:
                numbers["paper is inside"] = more.low <= printed <= more.high
            found.append(row(keys, **measured) | numbers)
        return found

    places = [f"{view.corpus}, {model}" for view in views for model in steps.MODELS]
    table = gathered(views.results.each(places, of))
    told = [
        _told(views.on(str(corpus)), list(dict.fromkeys(rows["model"])))
        for corpus, rows in table[table["paper"].notna()].groupby("corpus", sort=False)
    ]
    said = " ".join(told) or "The paper has no numbers for this corpus."
    return Made(table, sentence=said)


def from_the_paper(view: View, titles: Sequence[str]) -> pd.Series[float]:
    """How far each split lies from the paper, in points, mean over models and large λ."""
    apart = []
    for model in (m for m in steps.MODELS if steps.TITLES[m] in titles):
        runs = view.of(steps.redrawn, model)["runs"]
        printed = runs["setting"].map(_printed(view.corpus, model))
        apart.append(pd.DataFrame({"seed": runs["seed"], "away": 100 * runs["accuracy"] - printed}))
    whole = pd.concat(apart)
    return whole.groupby("seed")["away"].mean()


def _told(view: View, titles: Sequence[str]) -> str:
    away = from_the_paper(view, titles)
    mean, more = over_seeds(away), new_draw(away)
    holds = "can be" if more.low <= 0 <= more.high else "is not"
    return (
        f"{view.corpus} ({', '.join(titles)}): splits drawn again lie {mean} points from the paper "
        f"on average (s.d. {away.std(ddof=1):.2f}), one more in {_range(more)}: the difference "
        f"{holds} the split's doing."
    )


def _range(estimate: Estimate) -> str:
    return f"[{estimate.low:+.1f}, {estimate.high:+.1f}]"


def needs_starts(plan: Plan, corpus: str) -> list[Step[Any]]:
    """DP at λ = 0.001 from every start."""
    return [*needs_grid([])(plan, corpus), steps.started(plan, corpus)]


def starts(views: Views) -> Made:
    """X-6: accuracy of DP at λ = 0.001 by the starting scale of its word vectors."""

    def of(view: View) -> Iterator[dict[str, Any]]:
        runs = view.of(steps.started)["runs"]
        printed = _printed(view.corpus, "dp").get(steps.SMALLEST)
        for name in steps.STARTS:
            values = 100 * runs.loc[runs["setting"] == name, "accuracy"]
            accuracy = over_seeds(values, 0, 100)
            one = row({"corpus": view.corpus, "start": name}, accuracy=accuracy)
            away = None if printed is None else accuracy.value - printed
            yield one | {"paper": printed, "minus paper": away}

    table = views.table(of)
    told = []
    for corpus, rows in table[table["paper"].notna()].groupby("corpus", sort=False):
        near = rows.iloc[int(rows["minus paper"].astype(float).abs().argmin())]
        told.append(f"{corpus} {near['start']} ({near['minus paper']:+.1f})")
    said = f"Nearest to the paper: {'; '.join(told)}." if told else "No numbers in the paper."
    draw = partial(panels.bars, x="start", y="accuracy", hue="corpus")
    return Made(table, draw, said)
