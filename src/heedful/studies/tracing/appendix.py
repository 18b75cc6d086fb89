"""Appendix of the tracing study: what the repository has beside the paper, and what we ask."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from heedful.audits import lexicon
from heedful.report.drawing import standalone
from heedful.report.latex import highlighted
from heedful.report.lexicon_charts import rated_scatter
from heedful.reproduction.results import Skipped, Step
from heedful.reproduction.study import Made, Plan
from heedful.reproduction.tables import row, row_by_row
from heedful.reproduction.view import View, Views
from heedful.statistics import draws, over_seeds
from heedful.statistics.association import correlation
from heedful.statistics.draws import Draws
from heedful.studies.tracing import corpora, flow_diagram, models, steps
from heedful.studies.tracing.measures import accuracies, bends, rated
from heedful.studies.tracing.printed import PAPER

OTHERS = {
    "heads averaged": "averaged", "rollout": "rollout", "pooling alone": "pooling",
    "top layer alone": "top_layer", "traced from all alike": "even_start",
    "lowest layer, from all alike": "lowest_1", "lowest 2 layers": "lowest_2",
    "lowest 3 layers": "lowest_3",
}  # fmt: skip
"""Other ways down, and the word averages that hold them."""
WAYS = {
    "b2": ("lat", False),
    "b2 with mean 1/N": ("lat", True),
    "b2 of N × share": ("lat share times N", False),
}


def variants(views: Views) -> Made:
    """X-V: whether the square term survives other recipes: loss, dropout, positions, norms."""

    waiting: dict[str, str] = {}

    def shown(view: View, variant: str) -> dict[str, Any]:
        terms = {
            name: bends(view, score, has_length, variant)
            for name, (score, has_length) in WAYS.items()
        }
        counts = {
            f"seeds up, {name}": round(parts["seeds with p < .001"].value * len(view.seeds))
            for name, parts in terms.items()
        }
        keys = {"corpus": view.corpus, "recipe": variant}
        accuracy = over_seeds(accuracies(view, variant), 0, 100)
        return row(keys, accuracy=accuracy, **{n: p["b2"] for n, p in terms.items()}) | counts

    def one(view: View) -> list[dict[str, Any]]:
        view, found = view, []
        for variant in models.VARIANTS:
            try:
                found.append(shown(view, variant))
            except Skipped as skipped:  # a recipe that is not trained yet hides no other
                waiting[variant] = skipped.reason
        if not found:
            raise Skipped("; ".join(dict.fromkeys(waiting.values())))
        return found

    table = views.table(one)
    survives = table[(table["b2 low"] > 0) & (table["b2 of N × share low"] > 0)]["recipe"]
    said = (
        f"The square term is above 0, also in even shares, with {_listed(survives)}; "
        "seeds up have p < .001."
    )
    missing = tuple(f"No {variant}: {reason}." for variant, reason in waiting.items())
    return Made(table, sentence=said, deviations=missing)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none of the recipes"


def ways_down(views: Views) -> Made:
    """X-T: how much it matters that heads are kept apart, all layers followed, pooling begun at."""

    def one(view: View) -> list[dict[str, Any]]:

        def agreement(score: str, seed: int) -> Draws:
            words = rated(view, seed)
            given = correlation(words["lat"], words[score], words[lexicon.LENGTH])
            return draws.draws(given, lexicon.entries(words))

        return [
            row(
                {"corpus": view.corpus, "LAT and": name},
                r=view.over_seeds(partial(agreement, score)),
            )
            for name, score in OTHERS.items()
        ]

    table = views.table(one)
    said = row_by_row(table, "{corpus}, {LAT and}: {r:.2f}")
    return Made(table, sentence=f"Word averages correlate, given 1/N, by {said}.")


def spreads(views: Views) -> Made:
    """X-S: how much a word's scores vary between its occurrences, over its valence, first seed."""

    def one(view: View) -> pd.DataFrame:
        words = rated(view, view.seeds[0])
        names = {"word": "word", "count": "count", "rating": "valence"}
        names |= {"lat sd": "LAT", "gradient sd": "gradient"}
        return words[[*names]].rename(columns=names).assign(corpus=view.corpus)

    table = pd.concat(views.each(one).values(), ignore_index=True)
    draw = partial(
        rated_scatter, x="valence", scores=("LAT", "gradient"), panel="corpus",
        label="s.d. of the score",
    )  # fmt: skip
    means = table.groupby("corpus", sort=False)["LAT"].mean()
    said = "; ".join(f"{corpus} {value:.3f}" for corpus, value in means.items())
    return Made(table, draw, f"Mean s.d. of a word's LAT score: {said}.")


def raw_heads(views: Views) -> Made:
    """X-H: the attention of every head and layer as it is, in the sentence of F3."""
    found = views.each(lambda view: view.of(models.flow))
    one = flow_diagram.raw(next(iter(found.values())))
    attention = np.asarray(one["flow"])
    rows = [
        {"layer": layer + 1, "head": head + 1, "word": word, "received": share}
        for layer, heads in enumerate(attention.mean(2))
        for head, shares in enumerate(heads)
        for word, share in zip(one["words"], shares.tolist(), strict=True)
    ]
    picture = flow_diagram.draw(one, "X-H: attention of every head and layer, not handed down")
    said = f"Attention in “{' '.join(one['words'])}”, layer by layer."
    return Made(pd.DataFrame(rows), sentence=said, svg=standalone(picture))


def coloured(views: Views) -> Made:
    """X-L: the sentence of F3 as LaTeX, words coloured by their score."""

    def one(view: View) -> list[dict[str, Any]]:
        found = view.of(models.flow)
        score = np.asarray(found["shares"])[0].sum(0)
        latex = highlighted(found["words"], score)
        return [{"corpus": view.corpus, "instance": found["instance"], "latex": latex}]

    said = "Colour is the score between the least and the most of the sentence, from 0 to 100."
    return Made(views.table(one), sentence=said)


def _of_variants(plan: Plan, corpus: str) -> Iterable[Step[Any]]:
    kinds = "ratings", "words", "decisions"
    return steps.needs(*kinds, variants=tuple(models.VARIANTS))(plan, corpus)


EXTRAS = (
    PAPER.artifact("X-V", variants, _of_variants, corpora.TEXTS),
    PAPER.artifact("X-T", ways_down, steps.RATED),
    PAPER.artifact("X-S", spreads, steps.RATED),
    PAPER.artifact("X-H", raw_heads, models.needs_flow, corpora.TEXTS),
    PAPER.artifact("X-L", coloured, models.needs_flow, corpora.TEXTS),
)
