"""Mechanisms by how many: evidence repeated, one word to thirty, short and long, sentences."""

from __future__ import annotations

import numpy as np

from heedful.calibration.mechanism import SAYING, Build, Text, Writer, fillers, says, scattered
from heedful.calibration.mechanisms_words import DECOY, SAID, one_word, table, values

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
}
