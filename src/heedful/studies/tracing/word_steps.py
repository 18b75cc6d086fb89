"""Steps that turn traces into compact tables: ratings of words, word averages, heads, texts.

A study of many models keeps these and leaves the token tables where they were computed. Words are
matched to a lexicon where the texts are prepared, so that no other machine needs lemmas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from heedful.audits import head_shares
from heedful.audits.word_means import normalised, word_means
from heedful.corpora.lexicon import Match, match
from heedful.corpora.vocabulary import SPECIALS
from heedful.reproduction.results import Results, Step, named
from heedful.runs import TABLES
from heedful.runs.steps import TABLE
from heedful.studies.tracing import texts
from heedful.studies.tracing.texts import RANKED, TOGETHER

if TYPE_CHECKING:
    import pandas as pd

    from heedful.audits.word_means import Tokens

Tables = Mapping[str, "pd.DataFrame"]
SCORES = (
    "lat", "lat times N", "lat share times N", "gradient", "gradient share", "predicted share",
    "pooling", "averaged", "rollout", "top_layer", "even_start",
)  # fmt: skip
"""Word averages that are kept: LAT as published and in even shares, gradients, other traces."""


def ratings(
    text: Step[Any],
    lexicon: Callable[[], Mapping[str, float]],
    inputs: Mapping[str, Any],
    has_lemmas: bool = True,
) -> Step[pd.DataFrame]:
    """The corpus's words that a lexicon rates: word, rating, entry, how."""

    def compute(results: Results) -> pd.DataFrame:
        import pandas as pd

        words = sorted({w.lower() for w in results[text].vocabulary.words[len(SPECIALS) :]})
        found = match(words, lexicon(), has_lemmas)
        rows = [(word, one.rating, one.entry, one.how) for word, one in found.items()]
        return pd.DataFrame(rows, columns=["word", "rating", "entry", "how"])

    keyed = {"lexicon": dict(inputs), "lemmas": has_lemmas}
    return Step(named(*_place(text), "ratings"), compute, keyed, TABLE, (text,))


def matches_of(table: pd.DataFrame) -> dict[str, Match]:
    """The matches again from the table of `ratings`."""
    rows = table[["word", "entry", "rating", "how"]].itertuples(index=False, name=None)
    return {word: Match(entry, rating, how) for word, entry, rating, how in rows}


def word_scores(traces: Step[Tables], left_out: Sequence[str] = ()) -> Step[pd.DataFrame]:
    """Word averages of every score over the traced texts; `left_out` are no words (fillers)."""

    def compute(results: Results) -> pd.DataFrame:
        tokens = _kept(results[traces]["tokens"], left_out)
        table = word_means(tokens, token_scores(tokens))
        spreads = [f"{name} sd" for name in SCORES if name not in ("lat", "gradient")]
        # The softmax of tiny gradients differs from 1/N in late digits, and both are compared.
        return _in_32_bits(table.drop(columns=spreads), but=("lat", "gradient", "inverse length"))

    inputs = {"scores": list(SCORES), "left out": list(left_out)}
    return Step(named(*_place(traces), "words"), compute, inputs, TABLE, (traces,))


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


def head_masses(
    traces: Step[Tables], rated: Step[pd.DataFrame] | None, left_out: Sequence[str] = ()
) -> Step[pd.DataFrame]:
    """Each head's attention on very positive and very negative words of every text.

    By the labels of words, or by their ratings where `rated` is given.
    """

    def compute(results: Results) -> pd.DataFrame:
        tokens = _kept(results[traces]["tokens"], left_out)
        return head_shares.masses(tokens, _tags(results, tokens, rated))

    inputs = {"tags": "labels" if rated is None else "ratings", "left out": list(left_out)}
    needs = (traces,) if rated is None else (traces, rated)
    return Step(named(*_place(traces), "heads"), compute, inputs, TABLE, needs)


def text_summaries(
    traces: Step[Tables], rated: Step[pd.DataFrame] | None, left_out: Sequence[str] = ()
) -> Step[pd.DataFrame]:
    """One row per text: percentiles, entropies, gains of heads, sums for correlations."""

    def compute(results: Results) -> pd.DataFrame:
        tables = results[traces]
        tokens = _kept(tables["tokens"], left_out)
        cells = tables["cells"][tables["cells"]["instance"].isin(set(tokens["instance"]))]
        table = texts.summaries(tokens, cells, _tags(results, tokens, rated))
        # Differences of sums, and what rounding lost, need all their digits.
        exact = [str(c) for c in table if str(c).startswith((TOGETHER, RANKED, "lost"))]
        return _in_32_bits(table, but=exact)

    inputs = {"tags": "labels" if rated is None else "ratings", "left out": list(left_out)}
    needs = (traces,) if rated is None else (traces, rated)
    return Step(named(*_place(traces), "texts"), compute, inputs, TABLE, needs)


def decisions(traces: Step[Tables]) -> Step[Tables]:
    """What was decided of every text and how training went, without the token tables."""

    def compute(results: Results) -> Tables:
        return {name: results[traces][name] for name in ("documents", "training")}

    return Step(named(*_place(traces), "decisions"), compute, {}, TABLES, (traces,))


def _tags(results: Results, tokens: pd.DataFrame, rated: Step[pd.DataFrame] | None) -> Any:
    if rated is None:
        return head_shares.tags(tokens)
    return head_shares.tags(tokens, results[rated].set_index("word")["rating"])


def _in_32_bits(table: pd.DataFrame, but: Sequence[str] = ()) -> pd.DataFrame:
    wide = [c for c in table.select_dtypes("float64") if c not in but]
    return table.astype(dict.fromkeys(wide, "float32"))


def _kept(tokens: pd.DataFrame, left_out: Sequence[str]) -> pd.DataFrame:
    return tokens[~tokens["word"].isin(left_out)] if left_out else tokens


def _place(step: Step[Any]) -> list[str]:
    return step.name.split("/")[:-1]
