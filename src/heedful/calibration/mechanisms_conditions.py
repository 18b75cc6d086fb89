"""Mechanisms under conditions that mislead measures: imbalance, saturation, ties, noise, chance."""

from __future__ import annotations

import numpy as np

from heedful.calibration.mechanism import NEUTRAL, Build, Text, fillers
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


def _alarms(rng: np.random.Generator, label: int) -> Text:
    """Texts of class 1 have a word that says so, texts of class 0 say nothing at all."""
    return one_word()(rng, 1) if label else Text(fillers(rng, int(rng.integers(9, 15))), 0)


MECHANISMS: dict[str, Build] = {
    "honest at 95 to 5": table(
        among_voices(), HONEST, values(GIVEN, 4.0) | values(SAID, 4.0), shares=RARE
    ),
    "decoy at 95 to 5": table(
        one_word(beside=(DECOY,)),
        dict.fromkeys(SAID, 12.0) | {DECOY: 14.2},
        values(SAID, 40.0),
        shares=RARE,
    ),
    "a class by default": table(_alarms, ON_VOICES, values(SAID, 8.0), bias=(3.0, 0.0)),
    "a class by default at 95 to 5": table(
        _alarms, ON_VOICES, values(SAID, 8.0), bias=(3.0, 0.0), shares=RARE
    ),
    "honest and saturated": table(among_voices(), HONEST, values(GIVEN, 30.0) | values(SAID, 30.0)),
    "decoyed and saturated": decoyed(0.8, 150.0),
    "honest near ties": table(among_voices(), HONEST, values(GIVEN, 0.02) | values(SAID, 0.02)),
    "decoyed near ties": decoyed(0.7, 0.07),
    "honest with noise": table(
        among_voices(voices=5, others=(1, 4), balanced=False),
        dict.fromkeys(GIVEN, 1.0) | dict.fromkeys(NEUTRAL, -2.5),
        values(GIVEN, 2.0) | values(SAID, 2.0),
    ),
    "loud voices behind a verdict": table(
        among_voices(voices=5, others=(1, 4), balanced=False),
        dict.fromkeys(GIVEN, 2.8) | dict.fromkeys(SAID, 0.9) | dict.fromkeys(NEUTRAL, -1.0),
        values(GIVEN, 2.0) | values(SAID, 8.0),
    ),
    "honest at chance": table(_at_chance, ON_VOICES, values(SAID, 4.0)),
    "always the same class": table(_at_chance, ON_VOICES, values(SAID, 4.0), bias=(20.0, 0.0)),
}
