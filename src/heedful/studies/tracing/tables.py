"""Tables of the tracing study: corpora and ratings, regressions, correlations, shared words."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from heedful.audits import lexicon
from heedful.corpora.narrative_batches import NarrativeCorpus
from heedful.corpora.vocabulary import SPECIALS
from heedful.reproduction.results import Step
from heedful.reproduction.study import Made, Plan
from heedful.reproduction.tables import beside, row, row_by_row
from heedful.reproduction.view import View, Views
from heedful.statistics import over_seeds
from heedful.statistics.regression import LINEAR, SQUARE, Fit, least_squares, quadratic, vertex
from heedful.studies.tracing import corpora, models, printed, steps
from heedful.studies.tracing.measures import (
    HIDDEN,
    STRICT,
    partner,
    rated,
    shared_words,
    token_correlation,
    word_correlation,
)
from heedful.studies.tracing.printed import PAPER

PLAIN = "as published"
BESIDE = {
    "LAT": "lat",
    "gradient": "gradient",
    "LAT, N × softmax": "lat times N",
    "LAT, N × share": "lat share times N",
    "gradient, sum-normalised": "gradient share",
    "gradient, predicted class": "predicted share",
    "pooling alone": "pooling",
    "heads averaged": "averaged",
    "rollout": "rollout",
    "top layer alone": "top_layer",
    "traced from all alike": "even_start",
    "lowest layer, from all alike": "lowest_1",
    "lowest 2 layers": "lowest_2",
    "lowest 3 layers": "lowest_3",
}
"""Scores that are regressed on ratings, and the word averages that hold them."""


def corpus_sizes(views: Views) -> Made:
    """X1: sizes of the test sets, and how many of their words have a rating."""

    def one(view: View) -> list[dict[str, Any]]:
        text = view.of(corpora.either)
        test = text.splits["test"]
        lengths = test.words if isinstance(text, NarrativeCorpus) else test.lengths
        how_rated = view.of(steps.ratings).set_index("word")["how"]
        spoken = pd.Series(text.vocabulary.words, dtype=str).str.lower().iloc[test.ids]
        seen = spoken[~spoken.isin(SPECIALS)].value_counts()
        often = seen.index[seen >= lexicon.LEAST_COUNT]
        how = how_rated[how_rated.index.isin(often)].value_counts()
        vectors = text.vectors
        return [
            {
                "corpus": view.corpus,
                "test texts": len(lengths),
                "tokens": int(np.sum(lengths)),
                "texts of one word": int((np.asarray(lengths) == 1).sum()),
                "words": len(seen),
                "seen more than once": len(often),
                "rated as they stand": int(how.get("exact", 0)),
                "rated by lemma": int(how.get("lemma", 0)),
                "rated": int(how.sum()),
                "rated, paper": printed.MATCHED.get(view.corpus),
                "vector dimensions": None if vectors is None else vectors.shape[1],
                "words with a vector": None
                if vectors is None
                else int((~np.isnan(vectors).any(axis=1)).sum()),
            }
        ]

    table = views.table(one)
    said = row_by_row(table, "{corpus}: {rated:,} words seen more than once have a rating")
    deviation = "Words are matched as they stand, then by simplemma's lemma; the paper's table "
    return Made(table, sentence=f"{said}.", deviations=(deviation + "was corrected by hand.",))


def _fits(view: View, seed: int) -> Iterator[tuple[str, str, Fit, float]]:
    """Score, kind of row, fit and where it turns, for one seed."""
    words = rated(view, seed)
    rating = words["rating"]
    for name, score in BESIDE.items():
        found = lexicon.regressions(words, score)
        shown = found if name in ("LAT", "gradient") else dict(list(found.items())[:2])
        for kind, fit in shown.items():
            yield name, kind, fit, vertex(found[PLAIN], rating)
    untrained = rated(view, seed, models.UNTRAINED)
    fit = quadratic(untrained["rating"], untrained["lat"])
    yield "LAT, untrained model", PLAIN, fit, vertex(fit, untrained["rating"])


def regressions(views: Views) -> Made:
    """R1: every regression of every seed; shown are means over seeds beside the paper's."""

    def one(view: View) -> Iterator[dict[str, Any]]:
        for seed in view.seeds:
            for score, kind, fit, turn in _fits(view, seed):
                square, line = fit.term(SQUARE), fit.term(LINEAR)
                keys = {
                    "corpus": view.corpus,
                    "score": score,
                    "row": kind,
                    "seed": seed,
                    "n": fit.n,
                }
                terms = {"b2": square.b, "SE": square.se, "t": square.t, "p": square.p}
                also = {"b1": line.b, "t of b1": line.t, "R²": fit.r2, "vertex": turn}
                yield keys | terms | also

    table = views.table(one)
    shown = _over_seeds(table)
    # The paper's rows of a corpus that is not at hand have no numbers of ours.
    lat = shown[(shown["score"] == "LAT") & (shown["row"] == PLAIN) & shown["b2"].notna()]
    said = "; ".join(
        f"{r['corpus']}: b2 {r['b2']:.3f} [{r['b2 low']:.3f}, {r['b2 high']:.3f}] over seeds, "
        f"p < .001 in {r['seeds with p < .001']:.0f} of {len(views.seeds)}"
        for r in lat.to_dict("records")
    )
    said += ". The paper's p of 0.001 is its p < .001."
    return Made(table, sentence=said, shown=shown)


def _over_seeds(table: pd.DataFrame) -> pd.DataFrame:
    rows = []
    keys = ["corpus", "score", "row"]
    for names, part in table.groupby(keys, sort=False):
        found = row(dict(zip(keys, names, strict=True)), b2=over_seeds(part["b2"]))
        found |= {name: part[name].mean() for name in ("SE", "t", "b1", "R²")}
        # A parabola that hardly bends turns anywhere: one such seed would carry the mean away.
        found["median vertex"] = part["vertex"].median()
        found["median p"] = part["p"].median()
        found["seeds with p < .001"] = int(((part["p"] < STRICT) & (part["b2"] > 0)).sum())
        found["n"] = int(part["n"].iloc[0])
        rows.append(found)
    ours = pd.DataFrame(rows).drop(columns="b2 n")
    return beside(ours, printed.REGRESSION.assign(row=PLAIN), keys)


def correlations(views: Views) -> Made:
    """R2: LAT and gradient over tokens and words, plain and given 1/N."""

    def one(view: View) -> Iterator[dict[str, Any]]:
        for level, of in (("tokens", token_correlation), ("words", word_correlation)):
            for kind, is_ranked, is_partial in (
                ("Pearson", False, False),
                ("Spearman", True, False),
                ("Pearson, given 1/N", False, True),
            ):
                way = {"is_ranked": is_ranked, "is_partial": is_partial}
                estimate = view.over_seeds(partial(of, view, **way))
                keys = {"corpus": view.corpus, "over": level, "correlation": kind}
                yield row(keys, rho=estimate)

    ours = views.table(one)
    paper = printed.CORRELATION.set_index("corpus")["rho"]
    ours["rho, paper"] = ours["corpus"].map(paper)
    first = ours.iloc[0]
    said = f"{first['corpus']}, tokens: Pearson {first['rho']:.2f}; given 1/N {_third(ours):.2f}."
    return Made(ours, sentence=said)


def _third(table: pd.DataFrame) -> float:
    return float(table.loc[table["correlation"] == "Pearson, given 1/N", "rho"].iloc[0])


def hidden(views: Views) -> Made:
    """R3: per cent of rated words that the figure's rule leaves out."""

    def one(view: View) -> list[dict[str, Any]]:
        tables = [rated(view, seed) for seed in view.seeds]
        share = [100 * float((table["lat"] >= HIDDEN).mean()) for table in tables]
        keys = {"corpus": view.corpus, "words": len(tables[0])}
        return [row(keys, hidden=over_seeds(share, 0, 100))]

    ours = views.table(one)
    said = row_by_row(ours, "{corpus}: {hidden:.3f} %")
    return Made(
        beside(ours, printed.HIDDEN, ["corpus"]), sentence=f"{said} have a score of 0.4 or more."
    )


def shared(views: Views) -> Made:
    """E1: word means of sentences regressed on those of narratives, over shared words."""

    def one(view: View) -> list[dict[str, Any]]:
        other = partner(view.plan, view.corpus)
        against = view.on(other)
        fits = []
        for seed in view.seeds:
            words = shared_words(view, against, seed)
            fits.append(least_squares({LINEAR: words["lat here"]}, words["lat there"]))
        terms = [fit.term(LINEAR) for fit in fits]
        found = row(
            {"corpus": view.corpus, "sentences of": other, "match": "exact", "n": fits[0].n},
            slope=over_seeds([term.b for term in terms]),
        )
        found |= {"SE": np.mean([term.se for term in terms])}
        found |= {"p": np.median([term.p for term in terms])}
        return [found | {"R2": np.mean([fit.r2 for fit in fits])}]

    ours = views.table(one)
    first = ours.iloc[0]
    said = (
        f"Slope {first['slope']:.3f} over {first['n']} shared words of {first['sentences of']} and "
        f"{first['corpus']} (median p {first['p']:.2g})."
    )
    return Made(beside(ours, printed.SHARED, ["corpus", "match"]), sentence=said)


def _prepared(plan: Plan, corpus: str) -> list[Step[Any]]:
    """The corpus and its ratings: all that another machine starts from."""
    found = [corpora.either(plan, corpus), steps.ratings(plan, corpus)]
    return [*found, corpora.fifty(plan, corpus)] if corpus in corpora.TEXTS else found


def _shared(plan: Plan, corpus: str) -> list[Step[Any]]:
    both = (corpus, partner(plan, corpus))
    return [steps.words(plan, name, seed) for name in both for seed in plan.seeds]


TABLES = (
    PAPER.artifact("R1", regressions, steps.WITH_UNTRAINED),
    PAPER.artifact("R2", correlations, steps.needs("ratings", "words", "texts")),
    PAPER.artifact("R3", hidden, steps.RATED),
    PAPER.artifact("E1", shared, _shared, corpora.STORIES),
    PAPER.artifact("X1", corpus_sizes, _prepared),
)
