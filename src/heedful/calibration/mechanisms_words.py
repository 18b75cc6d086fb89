"""Mechanisms of words that say something by themselves: honest, decoyed, hidden, repeated, many."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from heedful.calibration.compiled_words import weighing
from heedful.calibration.mechanism import (
    NEUTRAL,
    SAYING,
    Built,
    Mechanism,
    Text,
    corpus_of,
    fillers,
    other_class,
    says,
    scattered,
)

DECOY = "indeed"
VOICES = {word: label for label, words in enumerate(SAYING) for word in words}


def voice(loud: float = 4.0, classes: int = 2) -> dict[str, list[float]]:
    """What words that say a class add to its logit."""
    return {
        word: [loud * (label == index) for index in range(classes)]
        for word, label in VOICES.items()
        if label < classes
    }


def vocabulary(classes: int = 2) -> tuple[str, ...]:
    """All words of these texts."""
    return (*NEUTRAL, *(w for words in SAYING[:classes] for w in words), DECOY, ".")


def one_word(
    others: tuple[int, int] = (8, 14), times: int = 1, beside: tuple[str, ...] = ()
) -> Callable[[np.random.Generator, int], Text]:
    """Texts with words for the label (`times` of them) among neutral words."""

    def write(rng: np.random.Generator, label: int) -> Text:
        around = [*beside, *fillers(rng, int(rng.integers(*others)) - len(beside))]
        kept = [says(label, rng) for _ in range(times)]
        words, places = scattered(rng, kept, [str(w) for w in rng.permutation(around)])
        return Text(words, label, places)

    return write


def scored(score: float, classes: int = 2) -> dict[str, float]:
    """The same score for every word that says a class."""
    return {word: score for word, label in VOICES.items() if label < classes}


def honest(seed: int, documents: int) -> Built:
    """One word says the class, has nearly all attention, and everything else says nothing."""
    corpus = corpus_of(one_word(), {"test": documents}, seed, words=vocabulary())
    model = weighing(corpus, scored(6.0), voice())
    return Built(model, corpus, other_class(), NEUTRAL)


def decoyed(mass: float) -> Callable[[int, int], Built]:
    """A word that says nothing has that mass, the word that decides has the rest."""

    def build(seed: int, documents: int) -> Built:
        write = one_word(beside=(DECOY,))
        corpus = corpus_of(write, {"test": documents}, seed, words=vocabulary())
        loud = 12.0
        scores = scored(loud) | {DECOY: loud + math.log(mass / (1 - mass))}
        return Built(weighing(corpus, scores, voice()), corpus, other_class(), NEUTRAL)

    return build


def hidden(seed: int, documents: int) -> Built:
    """The word that decides has a thousandth of the attention and speaks a thousand times."""
    corpus = corpus_of(one_word(), {"test": documents}, seed, words=vocabulary())
    scores = dict.fromkeys(NEUTRAL, 5.0)
    return Built(weighing(corpus, scores, voice(4000.0)), corpus, other_class(), NEUTRAL)


def bag(seed: int, documents: int) -> Built:
    """Attention is the same everywhere; one word among ten decides."""
    corpus = corpus_of(one_word(), {"test": documents}, seed, words=vocabulary())
    return Built(weighing(corpus, {}, voice(40.0)), corpus, other_class(), NEUTRAL)


MECHANISMS = [
    Mechanism(
        "honest word, silent context",
        "One word of each text says its class and has nearly all of the attention. All other words "
        "say exactly nothing: without the word the logits are 0. Nothing goes around.",
        "silent context",
        "open",
        honest,
    ),
    *(
        Mechanism(
            f"decoy with {mass:.2f} of the mass",
            f"A word that says nothing, `{DECOY}`, has {mass:.0%} of the attention in every text; "
            "the rest lies on the one word that decides, through that attention.",
            "decoys",
            "open",
            decoyed(mass),
        )
        for mass in (0.3, 0.45, 0.6, 0.75, 0.9)
    ),
    Mechanism(
        "hidden word",
        "The word that decides has about a thousandth of the attention and a value a thousand "
        "times as loud; neutral words share the rest.",
        "hidden",
        "open",
        hidden,
    ),
    Mechanism(
        "even attention, one word decides",
        "Every word has the same attention; one word of about ten decides by its value.",
        "even",
        "open",
        bag,
    ),
]
