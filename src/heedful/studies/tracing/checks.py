"""Checks whether the tracing paper's effects are what they seem.

See docs/studies/tracing.md, "Errata".
"""

from __future__ import annotations

from functools import partial

import numpy as np

from heedful.audits import lexicon
from heedful.reproduction.ledger import Parts, each_unchanged
from heedful.reproduction.view import View
from heedful.statistics import draws, over_seeds
from heedful.statistics.draws import Draws
from heedful.statistics.estimates import Estimate
from heedful.statistics.regression import permuted
from heedful.studies.tracing import models, steps
from heedful.studies.tracing.measures import (
    accuracies,
    bends,
    flat_seeds,
    heads_above_chance,
    rated,
    token_correlation,
    word_correlation,
)

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
