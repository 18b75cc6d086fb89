"""Mechanisms of words that say something by themselves: honest, decoyed, hidden, repeated, many."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from heedful.calibration.compiled_words import weighing
from heedful.calibration.mechanism import (
    NEUTRAL,
    SAYING,
    VERDICTS,
    Build,
    Built,
    Text,
    Writer,
    corpus_of,
    fillers,
    other_class,
    says,
    scattered,
    verdict,
)

DECOY = "indeed"
SAID = {word: label for label, words in enumerate(SAYING) for word in words}
GIVEN = {word: label for label, words in enumerate(VERDICTS) for word in words}
"""The class of every word that says something, and of every word that gives a verdict."""


def values(words: Mapping[str, int], loud: float, classes: int = 2) -> dict[str, list[float]]:
    """What words add to the logit of their class."""
    return {
        word: [loud * (label == index) for index in range(classes)]
        for word, label in words.items()
        if label < classes
    }


def vocabulary(classes: int = 2) -> tuple[str, ...]:
    """All words of these texts."""
    lists = (*SAYING[:classes], *VERDICTS[:classes])
    return (*NEUTRAL, *(word for words in lists for word in words), DECOY, ".", "not")


def one_word(
    others: tuple[int, int] = (8, 14), times: int = 1, beside: tuple[str, ...] = ()
) -> Writer:
    """Texts with words that say the label (`times` of them) among neutral words."""

    def write(rng: np.random.Generator, label: int) -> Text:
        around = [*beside, *fillers(rng, max(int(rng.integers(*others)) - len(beside), 0))]
        kept = [says(label, rng) for _ in range(times)]
        words, places = scattered(rng, kept, [str(word) for word in rng.permutation(around)])
        return Text(words, label, places)

    return write


def among_voices(
    voices: int = 4,
    others: tuple[int, int] = (3, 7),
    times: int = 1,
    beside: tuple[str, ...] = (),
    *,
    balanced: bool = True,
) -> Writer:
    """Texts with a verdict among words that say something: as many for either class, or drawn."""

    def write(rng: np.random.Generator, label: int) -> Text:
        drawn = rng.integers(2, size=voices)
        sides = np.arange(voices) % 2 if balanced else drawn
        saying = [says(int(side), rng) for side in sides]
        around = [*beside, *saying, *fillers(rng, int(rng.integers(*others)))]
        words, places = scattered(
            rng, [verdict(label, rng)] * times, [str(word) for word in rng.permutation(around)]
        )
        return Text(words, label, places)

    return write


def table(
    write: Writer,
    scores: Mapping[str, float],
    said: Mapping[str, Sequence[float]],
    *,
    classes: int = 2,
    shares: Sequence[float] | None = None,
    bias: Sequence[float] | None = None,
    within: Mapping[str, float] | None = None,
) -> Build:
    """A mechanism that is a table of words."""

    def build(seed: int, documents: int) -> Built:
        words = vocabulary(classes)
        sizes = {"test": documents}
        corpus = corpus_of(write, sizes, seed, words=words, classes=classes, shares=shares)
        model = weighing(corpus, scores, said, bias=bias, within=within)
        return Built(model, corpus, other_class(classes), NEUTRAL)

    return build


def decoyed(mass: float, loud: float = 4.0) -> Build:
    """A word that says nothing has that mass, the word that decides has the rest."""
    scores = dict.fromkeys(SAID, 12.0) | {DECOY: 12.0 + math.log(mass / (1 - mass))}
    return table(one_word(beside=(DECOY,)), scores, values(SAID, loud))


def _sometimes(share: float) -> Build:
    """In that share of the texts a decoy stands and has most of the attention."""
    with_decoy, without = one_word(beside=(DECOY,)), one_word()

    def write(rng: np.random.Generator, label: int) -> Text:
        return (with_decoy if rng.random() < share else without)(rng, label)

    return table(write, dict.fromkeys(SAID, 12.0) | {DECOY: 14.0}, values(SAID, 40.0))


HONEST = dict.fromkeys(GIVEN, 7.0)
"""Scores of an attention that lies on verdicts."""

MECHANISMS: dict[str, Build] = {
    "honest word, silent context": table(one_word(), dict.fromkeys(SAID, 6.0), values(SAID, 4.0)),
    "honest verdict among voices": table(
        among_voices(), HONEST, values(GIVEN, 4.0) | values(SAID, 4.0)
    ),
    "soft but honest": table(
        among_voices(), dict.fromkeys(GIVEN, 3.0), values(GIVEN, 6.0) | values(SAID, 1.0)
    ),
    "honest among five classes": table(
        one_word(), dict.fromkeys(SAID, 7.0), values(SAID, 4.0, 5), classes=5
    ),
    **{f"decoy with {mass:.2f} of the mass": decoyed(mass) for mass in (0.3, 0.45, 0.6, 0.75, 0.9)},
    **{
        f"decoy in {share:.0%} of the texts": _sometimes(share)
        for share in (0.1, 0.35, 0.5, 0.65, 0.9)
    },
    "one class hidden, the other seen": table(
        one_word(beside=(DECOY,)),
        dict.fromkeys(SAYING[0], 6.0) | {DECOY: 4.0},
        values(SAID, 4.0) | {word: [0.0, 600.0] for word in SAYING[1]},
    ),
    "hidden word": table(one_word(), dict.fromkeys(NEUTRAL, 5.0), values(SAID, 4000.0)),
    "verdict hidden behind voices": table(
        among_voices(),
        dict.fromkeys(SAID, 3.5) | dict.fromkeys(GIVEN, 0.0),
        values(SAID, 0.1) | values(GIVEN, 400.0),
    ),
    "even attention, one word decides": table(one_word(), {}, values(SAID, 40.0)),
    "whimsical attention": table(
        among_voices(others=(5, 9), beside=NEUTRAL[1:3]),
        dict.fromkeys(NEUTRAL[1:3], 4.0),
        values(GIVEN, 400.0) | values(SAID, 0.5),
    ),
}
