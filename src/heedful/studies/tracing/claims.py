"""The claims of the tracing study, and what its checks measure.

See docs/studies/tracing.md, "Claims" and "Errata".
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from heedful.audits import lexicon
from heedful.reproduction.ledger import Parts, each_unchanged
from heedful.reproduction.results import Step
from heedful.reproduction.study import Plan
from heedful.reproduction.view import View
from heedful.statistics import draws, over_seeds
from heedful.statistics.draws import Draws
from heedful.statistics.estimates import Estimate
from heedful.statistics.regression import permuted
from heedful.studies.tracing import collapse, corpora, measures, models, steps, widths
from heedful.studies.tracing.measures import (
    accuracies,
    bends,
    flat_seeds,
    heads_above_chance,
    rated,
    token_correlation,
    word_correlation,
)
from heedful.studies.tracing.printed import PAPER
from heedful.studies.tracing.steps import EVERY, RATED, WITH_UNTRAINED, needs, words

LENGTHS = {
    "with mean 1/N": ("lat", True),
    "N times softmax": ("lat times N", False),
    "N times share": ("lat share times N", False),
}
"""Three ways to rid LAT of the length of texts: a score, and whether 1/N stands beside it."""
GRADIENTS = {"sum-normalised": "gradient share", "predicted class": "predicted share"}


def survives_length(view: View) -> Parts:
    """A1: the U with the length of texts accounted for."""
    found = Parts()
    for name, (score, has_length) in LENGTHS.items():
        parts = bends(view, score, has_length)
        found |= {f"{name}: {part}": value for part, value in parts.items()}
    return found


def gradients_stay_flat(view: View) -> Parts:
    """A2: the share of seeds in which gradients that no softmax flattens do not bend either."""
    return {
        f"{name}{', with mean 1/N' * has_length}": flat_seeds(view, score, has_length)
        for name, score in GRADIENTS.items()
        for has_length in (False, True)
    }


def above_own_chance(view: View) -> Parts:
    """A3: TRA-15 with chance on each row's own texts."""
    return heads_above_chance(view, is_published=False)


def has_two_arms(view: View) -> Parts:
    """A4: slopes of separate lines, split at the middle and where the parabola turns."""

    def arm(is_vertex: bool, side: int, seed: int) -> Draws:
        words = rated(view, seed)
        split = lexicon.lines(words, "lat").split if is_vertex else steps.MIDDLE
        return lexicon.arms(words, "lat", split)[side]

    return {
        f"{name} of {place}": view.over_seeds(partial(arm, is_vertex, side))
        for place, is_vertex in (("5", False), ("the vertex", True))
        for side, name in enumerate(("left", "right"))
    }


def _minus(view: View, score: str, seed: int) -> Draws:
    """LAT's square term minus that of another score."""
    words = rated(view, seed)
    return draws.minus(lexicon.bend(words, "lat"), lexicon.bend(words, score))


def beats_other_scores(view: View) -> Parts:
    """A5: LAT's square term minus that of an untrained model, of pooling, of shuffled ratings."""

    def own(seed: int) -> Draws:
        return lexicon.bend(rated(view, seed), "lat")

    def luck(seed: int) -> float:
        words = rated(view, seed)
        return float(np.quantile(permuted(words["rating"], words["lat"], seed=seed).drawn, 0.975))

    def beyond(seed: int) -> Draws:
        found = own(seed)
        return Draws(found.value - luck(seed), found.drawn - luck(seed), found.n)

    def minus_untrained(seed: int) -> Draws:
        other = lexicon.bend(rated(view, seed, models.UNTRAINED), "lat")
        return draws.minus(own(seed), other)

    return Parts(
        {
            "minus untrained": view.over_seeds(minus_untrained),
            "minus shuffled ratings": view.over_seeds(beyond),
            "minus pooling alone": view.over_seeds(partial(_minus, view, "pooling")),
        }
    )


def heads_need_not_be_apart(view: View) -> Estimate:
    """A12: LAT's square term minus that of heads averaged before tracing."""
    return view.over_seeds(partial(_minus, view, "averaged"))


def correlated_beyond_length(view: View) -> Parts:
    """A6: partial correlation of LAT and gradient given 1/N."""
    return {
        "tokens": view.over_seeds(lambda s: token_correlation(view, s, False, True)),
        "words": view.over_seeds(lambda s: word_correlation(view, s, False, True)),
    }


def same_under_recipes(view: View) -> Parts:
    """A7: each verdict of TRA-1 and TRA-11 as trained here, and under the two other recipes."""

    def decided(variant: str) -> Parts:
        accuracy = over_seeds(accuracies(view, variant), 0, 100)
        return Parts({"accuracy": accuracy} | bends(view, variant=variant))

    published, *others = (decided(variant) for variant in models.CHECKED)
    found = Parts()
    for variant, parts in zip(models.CHECKED[1:], others, strict=True):
        found |= each_unchanged(published, parts, f", {variant}")
    return found


TEXTS, STORIES = corpora.TEXTS, corpora.STORIES
TEXT_ROWS = needs("texts")
HEADS = needs("heads")
DECIDED = needs("decisions")


def _with_text(plan: Plan, corpus: str) -> list[Step[Any]]:
    return [corpora.text(plan, corpus), *DECIDED(plan, corpus)]


def _followed(plan: Plan, corpus: str) -> list[Step[Any]]:
    return list(models.needs_followed(plan, corpus))


def _both(plan: Plan, corpus: str) -> list[Step[Any]]:
    other = measures.partner(plan, corpus)
    return [words(plan, name, seed) for name in (corpus, other) for seed in plan.seeds]


CLAIMS = (
    PAPER.claim("TRA-1", measures.good_accuracy, _with_text, TEXTS),
    PAPER.claim("TRA-2", measures.among_published, _with_text, TEXTS),
    PAPER.claim("TRA-3", measures.beats_people, _followed, STORIES),
    PAPER.claim("TRA-4", measures.windows_help, _followed, STORIES),
    PAPER.claim("TRA-5", measures.conserves, TEXT_ROWS, EVERY),
    PAPER.claim("TRA-6", measures.top_layer_is_even, TEXT_ROWS, EVERY),
    PAPER.claim("TRA-7", measures.gathers_and_spreads, TEXT_ROWS, EVERY),
    PAPER.claim("TRA-8", measures.feelings_first, TEXT_ROWS, EVERY),
    PAPER.claim("TRA-9", measures.top_words_are_felt, RATED, EVERY),
    PAPER.claim("TRA-10", measures.stop_words_low, needs("words"), EVERY),
    PAPER.claim("TRA-11", measures.is_u_shaped, RATED, TEXTS),
    PAPER.claim("TRA-12", measures.is_u_shaped, RATED, STORIES),
    PAPER.claim("TRA-13", measures.gradient_is_flat, RATED, EVERY),
    PAPER.claim("TRA-14", measures.are_correlated, needs("ratings", "words", "texts"), EVERY),
    PAPER.claim("TRA-15", measures.heads_above_chance, HEADS, EVERY),
    PAPER.claim("TRA-16", measures.heads_specialise, HEADS, EVERY),
    PAPER.claim("TRA-17", measures.same_words, _both, STORIES),
    PAPER.claim("TRA-18", measures.hides_few, RATED, EVERY),
    PAPER.claim("TRA-A1", survives_length, RATED, EVERY),
    PAPER.claim("TRA-A2", gradients_stay_flat, RATED, EVERY),
    PAPER.claim("TRA-A3", above_own_chance, HEADS, EVERY),
    PAPER.claim("TRA-A4", has_two_arms, RATED, EVERY),
    PAPER.claim("TRA-A5", beats_other_scores, WITH_UNTRAINED, EVERY),
    PAPER.claim("TRA-A6", correlated_beyond_length, needs("ratings", "words", "texts"), EVERY),
    PAPER.claim(
        "TRA-A7",
        same_under_recipes,
        needs("ratings", "words", "decisions", variants=models.CHECKED),
        TEXTS,
    ),
    PAPER.claim("TRA-A8", collapse.remembers_its_start, collapse.needs_collapse, TEXTS),
    PAPER.claim("TRA-A9", collapse.forgets_by_construction, collapse.needs_collapse, TEXTS),
    PAPER.claim("TRA-A10", widths.width_alone_helps, widths.needs_widths, TEXTS),
    PAPER.claim("TRA-A11", widths.missing_words_cost, widths.needs_widths, TEXTS),
    PAPER.claim("TRA-A12", heads_need_not_be_apart, RATED, EVERY),
)
