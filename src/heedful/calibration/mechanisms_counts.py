"""Mechanisms by how many words there are, and under conditions that mislead measures."""

from __future__ import annotations

import numpy as np

from heedful.calibration.mechanism import (
    NEUTRAL,
    SAYING,
    Build,
    Text,
    Writer,
    fillers,
    says,
    scattered,
)
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

ON_VOICES = dict.fromkeys(SAID, 6.0)


def voting(voters: int, against: float, others: int) -> Writer:
    """Texts in which so many words say a class, a share of them against the label."""

    def write(rng: np.random.Generator, label: int) -> Text:
        few = int(against * voters)
        said = [says(1 - label, rng) for _ in range(few)]
        said += [says(label, rng) for _ in range(voters - few)]
        voices = [str(word) for word in rng.permutation(said)]
        words, places = scattered(rng, voices, fillers(rng, others))
        return Text(words, label, [p for p in places if SAID[words[p]] == label])

    return write


def sentences(count: tuple[int, int], decoy: bool = False) -> Writer:
    """Documents of sentences of three to five words; one sentence holds the word that decides."""

    def write(rng: np.random.Generator, label: int) -> Text:
        units = [fillers(rng, int(rng.integers(3, 6))) for _ in range(int(rng.integers(*count)))]
        chosen = int(rng.integers(len(units)))
        units[chosen][int(rng.integers(len(units[chosen])))] = says(label, rng)
        if decoy:
            units[(chosen + 1) % len(units)][0] = DECOY
        words = [word for unit in units for word in unit]
        number = [place for place, unit in enumerate(units) for _ in unit]
        return Text(words, label, [p for p, w in enumerate(words) if w in SAID], number)

    return write


WITHIN = dict.fromkeys(SAID, 8.0) | {DECOY: 8.0}
"""Within its sentence the word that stands out is attended."""


RARE = (0.95, 0.05)


def _at_chance(rng: np.random.Generator, label: int) -> Text:
    """A text for a class drawn without looking at the label."""
    return one_word()(rng, int(rng.integers(2)))._replace(label=label)


def _alarms(rng: np.random.Generator, label: int) -> Text:
    """Texts of class 1 have a word that says so, texts of class 0 say nothing at all."""
    return one_word()(rng, 1) if label else Text(fillers(rng, int(rng.integers(9, 15))), 0)


MECHANISMS: dict[str, Build] = {
    **{
        f"honest evidence {times} times": table(one_word(times=times), ON_VOICES, values(SAID, 4.0))
        for times in (2, 3)
    },
    "evidence three times, attention on one": table(
        one_word(times=3),
        {word: 6.0 + 3.0 * rank for words in SAYING for rank, word in enumerate(words)},
        values(SAID, 4.0),
    ),
    "three of five vote": table(voting(5, 0.4, 6), ON_VOICES, values(SAID, 4.0)),
    "ten words of twenty vote": table(voting(10, 0.3, 10), ON_VOICES, values(SAID, 4.0)),
    "thirty words of sixty vote": table(voting(30, 0.334, 30), ON_VOICES, values(SAID, 4.0)),
    "thirty of sixty vote, attention even over all": table(
        voting(30, 0.334, 30), {}, values(SAID, 4.0)
    ),
    "every word votes, attention even": table(voting(12, 0.25, 0), {}, values(SAID, 4.0)),
    "honest texts of two or three words": table(
        one_word(others=(1, 3)), ON_VOICES, values(SAID, 4.0)
    ),
    "decoy in texts of two or three words": table(
        one_word(others=(1, 3), beside=(DECOY,)), ON_VOICES | {DECOY: 7.4}, values(SAID, 4.0)
    ),
    "honest word of sixty to seventy": table(
        one_word(others=(60, 70)), dict.fromkeys(SAID, 8.0), values(SAID, 4.0)
    ),
    "long texts dilute the word": table(
        one_word(others=(60, 70)), dict.fromkeys(SAID, 3.0), values(SAID, 40.0)
    ),
    "texts of five to seventy words": table(
        one_word(others=(5, 70)), dict.fromkeys(SAID, 3.5), values(SAID, 40.0)
    ),
    "honest sentence of two to four": table(
        sentences((2, 5)), ON_VOICES, values(SAID, 4.0), within=WITHIN
    ),
    "decoy sentence of two to four": table(
        sentences((2, 5), decoy=True),
        ON_VOICES | {DECOY: 7.5},
        values(SAID, 4.0),
        within=WITHIN,
    ),
    "even sentences": table(sentences((4, 7)), {}, values(SAID, 40.0), within=WITHIN),
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
