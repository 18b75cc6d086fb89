"""What of the polarity study hangs on a draw: the split of a corpus (X-5), the start (X-6).

IMDB and 20News II lie below the paper at large λ, DP at λ = 0.001 above it. The paper has one split
and one start; here each is drawn again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd

from heedful.report import panels
from heedful.reproduction.results import Results, Step
from heedful.reproduction.study import Made, Plan
from heedful.reproduction.tables import gathered, row
from heedful.statistics import Estimate, new_draw, over_seeds
from heedful.studies.polarity import printed as paper
from heedful.studies.polarity import steps
from heedful.studies.polarity.figures import needs_grid

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


def splits(results: Results, plan: Plan) -> Made:
    """X-5: accuracy at large λ on our split and over splits drawn again, beside the paper's.

    "One more" is where the accuracy of one more split lies with a chance of 95 %: a printed number
    inside can be the split's doing.
    """

    def of(place: str) -> list[dict[str, Any]]:
        corpus, model = place.split(", ")
        ours = results[steps.grid(plan, corpus, model)]["runs"]
        again = results[steps.redrawn(plan, corpus, model)]["runs"]
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

    places = [f"{corpus}, {model}" for corpus in plan.corpora for model in steps.MODELS]
    table = gathered(results.each(places, of))
    told = [
        _told(results, plan, str(corpus), list(dict.fromkeys(rows["model"])))
        for corpus, rows in table[table["paper"].notna()].groupby("corpus", sort=False)
    ]
    said = " ".join(told) or "The paper has no numbers for this corpus."
    return Made(table, sentence=said)


def from_the_paper(
    results: Results, plan: Plan, corpus: str, titles: Sequence[str]
) -> pd.Series[float]:
    """How far each split lies from the paper, in points, mean over models and large λ."""
    apart = []
    for model in (m for m in steps.MODELS if steps.TITLES[m] in titles):
        runs = results[steps.redrawn(plan, corpus, model)]["runs"]
        printed = runs["setting"].map(_printed(corpus, model))
        apart.append(pd.DataFrame({"seed": runs["seed"], "away": 100 * runs["accuracy"] - printed}))
    whole = pd.concat(apart)
    return whole.groupby("seed")["away"].mean()


def _told(results: Results, plan: Plan, corpus: str, titles: Sequence[str]) -> str:
    away = from_the_paper(results, plan, corpus, titles)
    mean, more = over_seeds(away), new_draw(away)
    holds = "can be" if more.low <= 0 <= more.high else "is not"
    return (
        f"{corpus} ({', '.join(titles)}): splits drawn again lie {mean} points from the paper on "
        f"average (s.d. {away.std(ddof=1):.2f}), one more in {_range(more)}: the difference "
        f"{holds} the split's doing."
    )


def _range(estimate: Estimate) -> str:
    return f"[{estimate.low:+.1f}, {estimate.high:+.1f}]"


def needs_starts(plan: Plan, corpus: str) -> list[Step[Any]]:
    """DP at λ = 0.001 from every start."""
    return [*needs_grid([])(plan, corpus), steps.started(plan, corpus)]


def starts(results: Results, plan: Plan) -> Made:
    """X-6: accuracy of DP at λ = 0.001 by the starting scale of its word vectors."""

    def of(corpus: str) -> list[dict[str, Any]]:
        runs = results[steps.started(plan, corpus)]["runs"]
        printed = _printed(corpus, "dp").get(steps.SMALLEST)
        found = []
        for name in steps.STARTS:
            values = 100 * runs.loc[runs["setting"] == name, "accuracy"]
            accuracy = over_seeds(values, 0, 100)
            one = row({"corpus": corpus, "start": name}, accuracy=accuracy)
            away = None if printed is None else accuracy.value - printed
            found.append(one | {"paper": printed, "minus paper": away})
        return found

    table = gathered(results.each(plan.corpora, of))
    told = []
    for corpus, rows in table[table["paper"].notna()].groupby("corpus", sort=False):
        near = rows.iloc[int(rows["minus paper"].astype(float).abs().argmin())]
        told.append(f"{corpus} {near['start']} ({near['minus paper']:+.1f})")
    said = f"Nearest to the paper: {'; '.join(told)}." if told else "No numbers in the paper."
    draw = partial(panels.bars, x="start", y="accuracy", hue="corpus")
    return Made(table, draw, said)
