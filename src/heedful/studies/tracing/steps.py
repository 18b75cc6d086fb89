"""The steps behind the tracing study's numbers: ratings of words, and compact tables of traces.

Everything after the traces is a table of a few hundred kilobytes, so that one machine can train and
trace and another one draw. Words are matched to a lexicon where the texts are prepared, so that no
other machine needs lemmas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from heedful.audits import head_shares, lexicon
from heedful.audits.traces import LOWEST
from heedful.audits.word_means import Tokens, normalised, word_means
from heedful.corpora import load_lexicon
from heedful.corpora.lexicon import Match, match
from heedful.corpora.narratives import FILLER
from heedful.corpora.planted_words import LEXICON
from heedful.corpora.vocabulary import SPECIALS
from heedful.reproduction.results import Results, Step, named
from heedful.reproduction.study import Needs, Plan
from heedful.runs.steps import TABLE
from heedful.studies.tracing import models
from heedful.studies.tracing.corpora import MADE, STORIES, TEXTS, either
from heedful.studies.tracing.models import PUBLISHED, UNTRAINED
from heedful.studies.tracing.texts import RANKED, TOGETHER, summaries

MIDDLE = 5.0
"""Of the scale from 1 to 9."""
EVERY = (*TEXTS, *STORIES)
SCORES = (
    "lat", "lat times N", "lat share times N", "gradient", "gradient share", "predicted share",
    "pooling", "averaged", "rollout", "top_layer", "even_start", *LOWEST,
)  # fmt: skip
"""Word averages that are kept: LAT as published and in even shares, gradients, other traces."""


def _own() -> dict[str, float]:
    """The planted lexicon, from -3..3 to 1..9."""
    return {word: MIDDLE + value * 4 / 3 for word, value in LEXICON.items()}


def ratings(plan: Plan, corpus: str) -> Step[pd.DataFrame]:
    """Words of the corpus with a rating: word, rating, entry, how.

    The ratings are Warriner's, or those that a made corpus was made from.
    """
    source, is_made = either(plan, corpus), corpus in MADE

    def compute(results: Results) -> pd.DataFrame:
        lexicon: Mapping[str, float]
        lexicon = _own() if is_made else load_lexicon("warriner", plan.data_root)
        words = sorted({w.lower() for w in results[source].vocabulary.words[len(SPECIALS) :]})
        found = match(words, lexicon, has_lemmas=not is_made)
        rows = [(word, one.rating, one.entry, one.how) for word, one in found.items()]
        return pd.DataFrame(rows, columns=["word", "rating", "entry", "how"])

    name = "planted, 1 to 9" if is_made else "warriner"
    inputs = {"lexicon": {"name": name}, "lemmas": not is_made}
    return Step(named(corpus, "ratings"), compute, inputs, TABLE, (source,))


def matches_of(table: pd.DataFrame) -> dict[str, Match]:
    """The matches again from the table of `ratings`."""
    rows = table[["word", "entry", "rating", "how"]].itertuples(index=False, name=None)
    return {word: Match(entry, rating, how) for word, entry, rating, how in rows}


def words(plan: Plan, corpus: str, seed: int, variant: str = PUBLISHED) -> Step[pd.DataFrame]:
    """Word averages of every score of one model over the traced texts.

    Of models other than the published one, trained or not, they are of LAT and of words seen more
    than once.
    """
    traces = models.traces(plan, corpus, variant, seed)
    names = SCORES if variant in (PUBLISHED, UNTRAINED) else SCORES[:3]

    def compute(results: Results) -> pd.DataFrame:
        tokens = _kept(results[traces]["tokens"])
        scores = token_scores(tokens)
        table = word_means(tokens, {name: scores[name] for name in names})
        if names != SCORES:
            table = table[table["count"] >= lexicon.LEAST_COUNT].reset_index(drop=True)
        spreads = [f"{name} sd" for name in names if name not in ("lat", "gradient")]
        # The softmax of tiny gradients differs from 1/N in late digits, and both are compared.
        return _in_32_bits(table.drop(columns=spreads), but=("lat", "gradient", "inverse length"))

    inputs = {"scores": list(names), "left out": [FILLER]}
    return Step(traces.beside("words"), compute, inputs, TABLE, (traces,))


def token_scores(tokens: pd.DataFrame) -> dict[str, Tokens]:
    """Every score of `SCORES` for each token; traces that sum to one are scaled to the heads."""
    heads = float(head_shares.heads_of(tokens))
    found = {
        "lat": normalised(tokens, "lat"),
        "lat times N": normalised(tokens, "lat", "softmax ratio"),
        "lat share times N": normalised(tokens, "lat", "ratio"),
        "gradient": normalised(tokens, "gradient"),
        "gradient share": normalised(tokens, "gradient", "share"),
        "predicted share": normalised(tokens, "gradient_predicted", "share"),
    }
    others = [name for name in SCORES if name not in found]
    return found | {name: normalised(tokens, name, mass=heads) for name in others}


def heads(plan: Plan, corpus: str, seed: int) -> Step[pd.DataFrame]:
    """What each head of one model puts on very positive and very negative words, by text."""
    traces, rated = models.traces(plan, corpus, PUBLISHED, seed), _tagged_by(plan, corpus)

    def compute(results: Results) -> pd.DataFrame:
        tokens = _kept(results[traces]["tokens"])
        return head_shares.masses(tokens, _tags(results, tokens, rated))

    name = traces.beside("heads")
    return Step(name, compute, _tag_inputs(rated), TABLE, (traces, *rated))


def texts(plan: Plan, corpus: str, seed: int) -> Step[pd.DataFrame]:
    """One row per text of one model: percentiles, entropies, gains of heads, sums."""
    traces, rated = models.traces(plan, corpus, PUBLISHED, seed), _tagged_by(plan, corpus)

    def compute(results: Results) -> pd.DataFrame:
        tables = results[traces]
        tokens = _kept(tables["tokens"])
        cells = tables["cells"][tables["cells"]["instance"].isin(set(tokens["instance"]))]
        table = summaries(tokens, cells, _tags(results, tokens, rated))
        # Differences of sums, and what rounding lost, need all their digits.
        exact = [str(c) for c in table if str(c).startswith((TOGETHER, RANKED, "lost"))]
        return _in_32_bits(table, but=exact)

    name = traces.beside("texts")
    return Step(name, compute, _tag_inputs(rated), TABLE, (traces, *rated))


def _tagged_by(plan: Plan, corpus: str) -> tuple[Step[pd.DataFrame], ...]:
    """Words are tagged by their labels, those of narratives, which have none, by their ratings."""
    return (ratings(plan, corpus),) if corpus in STORIES else ()


def _tags(results: Results, tokens: pd.DataFrame, rated: Sequence[Step[pd.DataFrame]]) -> Any:
    ratings_of = results[rated[0]].set_index("word")["rating"] if rated else None
    return head_shares.tags(tokens, ratings_of)


def _tag_inputs(rated: Sequence[Step[pd.DataFrame]]) -> dict[str, Any]:
    return {"tags": "ratings" if rated else "labels", "left out": [FILLER]}


def _in_32_bits(table: pd.DataFrame, but: Sequence[str] = ()) -> pd.DataFrame:
    wide = [c for c in table.select_dtypes("float64") if c not in but]
    return table.astype(dict.fromkeys(wide, "float32"))


def _kept(tokens: pd.DataFrame) -> pd.DataFrame:
    """The tokens that are words."""
    return tokens[~tokens["word"].isin([FILLER])]


def needs(*kinds: str, variants: tuple[str, ...] = (PUBLISHED,)) -> Needs:
    """The steps of the named kinds (ratings, words, heads, texts, decisions) for every seed."""

    def of(plan: Plan, corpus: str) -> list[Step[Any]]:
        found: list[Step[Any]] = [ratings(plan, corpus)] if "ratings" in kinds else []
        for seed in plan.seeds:
            if "words" in kinds:
                found += [words(plan, corpus, seed, variant) for variant in variants]
            found += [heads(plan, corpus, seed)] if "heads" in kinds else []
            found += [texts(plan, corpus, seed)] if "texts" in kinds else []
            if "decisions" in kinds:
                found += [models.decisions(plan, corpus, variant, seed) for variant in variants]
        return found

    return of


RATED = needs("ratings", "words")
WITH_UNTRAINED = needs("ratings", "words", variants=(PUBLISHED, UNTRAINED))
