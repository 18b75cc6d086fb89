"""Mechanisms under conditions that mislead measures: imbalance, saturation, ties, noise, chance."""

from __future__ import annotations

import numpy as np

from heedful.calibration.mechanism import NEUTRAL, Mechanism, Text, Writer, fillers
from heedful.calibration.mechanisms_words import (
    DECOY,
    GIVEN,
    HONEST,
    SAID,
    among_voices,
    decoyed,
    one_word,
    table,
    values,
)

RARE = (0.95, 0.05)
ON_VOICES = dict.fromkeys(SAID, 6.0)


def _at_chance(rng: np.random.Generator, label: int) -> Text:
    """A text for a class drawn without looking at the label."""
    return one_word()(rng, int(rng.integers(2)))._replace(label=label)


def _alarms(beside: tuple[str, ...] = ()) -> Writer:
    """Texts of class 1 have a word that says so, texts of class 0 say nothing at all."""
    alarmed = one_word()

    def write(rng: np.random.Generator, label: int) -> Text:
        if label:
            return alarmed(rng, 1)
        return Text(fillers(rng, int(rng.integers(9, 15))), 0)

    return write


MECHANISMS = [
    Mechanism(
        "honest at 95 to 5",
        "As the honest verdict among voices, with 95 % of the texts of one class.",
        "imbalance",
        "open",
        table(among_voices(), HONEST, values(GIVEN, 4.0) | values(SAID, 4.0), shares=RARE),
    ),
    Mechanism(
        "decoy at 95 to 5",
        "95 % of the texts are of one class; a word that does nothing has 0.9 of the attention and "
        "the word that decides the rest.",
        "imbalance",
        "open",
        table(
            one_word(beside=(DECOY,)),
            dict.fromkeys(SAID, 12.0) | {DECOY: 14.2},
            values(SAID, 40.0),
            shares=RARE,
        ),
    ),
    Mechanism(
        "a class by default",
        "A bias decides for class 0 unless a word for class 1 is attended; such words are in half "
        "of the texts and get the attention. In the others attention is even and no word matters.",
        "imbalance",
        "open",
        table(_alarms(), ON_VOICES, values(SAID, 8.0), bias=(3.0, 0.0)),
    ),
    Mechanism(
        "a class by default at 95 to 5",
        "The same with words for class 1 in 5 % of the texts: the rest are decided by what is not "
        "there, and attention has nothing to show.",
        "imbalance",
        "open",
        table(_alarms(), ON_VOICES, values(SAID, 8.0), bias=(3.0, 0.0), shares=RARE),
    ),
    Mechanism(
        "honest and saturated",
        "An honest verdict whose logits are 30 apart: probabilities are 1 to the last digit.",
        "saturation",
        "open",
        table(among_voices(), HONEST, values(GIVEN, 30.0) | values(SAID, 30.0)),
    ),
    Mechanism(
        "decoyed and saturated",
        "A word that does nothing has 0.8 of the attention; what is left decides with logits 30 "
        "apart.",
        "saturation",
        "open",
        decoyed(0.8, 150.0),
    ),
    Mechanism(
        "honest near ties",
        "An honest verdict whose logits are 0.02 apart: every decision is a near tie.",
        "near ties",
        "open",
        table(among_voices(), HONEST, values(GIVEN, 0.02) | values(SAID, 0.02)),
    ),
    Mechanism(
        "decoyed near ties",
        "A word that does nothing has 0.7 of the attention; the rest decides by 0.02.",
        "near ties",
        "open",
        decoyed(0.7, 0.07),
    ),
    Mechanism(
        "honest with noise",
        "The verdict has a third of the attention and five voices share the rest; all are equally "
        "loud, so that the voices overrule the verdict in a fifth of the texts.",
        "noise",
        "open",
        table(
            among_voices(voices=5, others=(1, 4), balanced=False),
            dict.fromkeys(GIVEN, 1.0) | dict.fromkeys(NEUTRAL, -2.5),
            values(GIVEN, 2.0) | values(SAID, 2.0),
        ),
    ),
    Mechanism(
        "loud voices behind a verdict",
        "The verdict has most of the attention; the voices have a twelfth each and are four times "
        "as loud, so that together they can always overrule it, and sometimes do.",
        "noise",
        "open",
        table(
            among_voices(voices=5, others=(1, 4), balanced=False),
            dict.fromkeys(GIVEN, 2.8) | dict.fromkeys(SAID, 0.9) | dict.fromkeys(NEUTRAL, -1.0),
            values(GIVEN, 2.0) | values(SAID, 8.0),
        ),
    ),
    Mechanism(
        "honest at chance",
        "A word decides through nearly all of the attention, but labels have nothing to do with "
        "it: the accuracy is that of a coin. Attention still shows why it decided.",
        "chance",
        "open",
        table(_at_chance, ON_VOICES, values(SAID, 4.0)),
    ),
    Mechanism(
        "always the same class",
        "Attention lies on a word that says a class, and a bias decides against all of them.",
        "chance",
        "open",
        table(_at_chance, ON_VOICES, values(SAID, 4.0), bias=(20.0, 0.0)),
    ),
]
