"""The steps behind the tracing study's numbers: ratings of words, and compact tables of traces.

Everything after the traces is a table of a few hundred kilobytes, so that one machine can train and
trace and another one draw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heedful.corpora import load_lexicon
from heedful.corpora.narratives import FILLER
from heedful.corpora.planted_words import LEXICON
from heedful.reproduction.results import Step
from heedful.reproduction.study import Needs, Plan
from heedful.studies.tracing import models, word_steps
from heedful.studies.tracing.models import PUBLISHED, STORIES, TEXTS, UNTRAINED

if TYPE_CHECKING:
    import pandas as pd

MADE = ("planted", "narratives")
"""Generated corpora, which bring their own lexicon."""
MIDDLE = 5.0
"""Of the scale from 1 to 9."""
EVERY = (*TEXTS, *STORIES)


def _own() -> dict[str, float]:
    """The planted lexicon, from -3..3 to 1..9."""
    return {word: MIDDLE + value * 4 / 3 for word, value in LEXICON.items()}


def ratings(plan: Plan, corpus: str) -> Step[pd.DataFrame]:
    """Words of the corpus with a rating: Warriner's, or those that a made corpus was made from."""
    text = models.told(plan, corpus) if corpus in STORIES else models.text(plan, corpus)
    if corpus in MADE:
        return word_steps.ratings(text, _own, {"name": "planted, 1 to 9"}, has_lemmas=False)

    def load() -> dict[str, float]:
        return load_lexicon("warriner", plan.data_root)

    return word_steps.ratings(text, load, {"name": "warriner"})


def _tagged(plan: Plan, corpus: str) -> Step[pd.DataFrame] | None:
    """Words are tagged by their labels, those of narratives, which have none, by their ratings."""
    return ratings(plan, corpus) if corpus in STORIES else None


def words(plan: Plan, corpus: str, seed: int, variant: str = PUBLISHED) -> Step[pd.DataFrame]:
    """Word averages of one model."""
    return word_steps.word_scores(models.traces(plan, corpus, variant, seed), (FILLER,))


def heads(plan: Plan, corpus: str, seed: int) -> Step[pd.DataFrame]:
    """What each head puts on tagged words, by text."""
    traces = models.traces(plan, corpus, PUBLISHED, seed)
    return word_steps.head_masses(traces, _tagged(plan, corpus), (FILLER,))


def texts(plan: Plan, corpus: str, seed: int) -> Step[pd.DataFrame]:
    """One row per text of one model."""
    traces = models.traces(plan, corpus, PUBLISHED, seed)
    return word_steps.text_summaries(traces, _tagged(plan, corpus), (FILLER,))


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
