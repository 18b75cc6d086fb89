"""Blind mechanisms of words near each other, of sentences, and of several classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from heedful.calibration.blind_texts import (
    NOTHING,
    VOICES,
    Draw,
    amid,
    among,
    convolved,
    counterparts,
    one_of,
    tabled,
)
from heedful.calibration.compiled_words import Feature
from heedful.calibration.mechanism import (
    NEUTRAL,
    SAYING,
    VERDICTS,
    Build,
    Text,
    Writer,
    fillers,
    other_class,
    says,
)
from heedful.calibration.mechanisms_words import DECOY, SAID, one_word, values

BUT, AND = "but", "and"
TURNED, PUT = "turned", "put"
PARTICLES = ("down", "up")
RISE, FALL = "rise", "fall"
YES_A, NO_A = ("fever", "chills"), ("cool", "steady")
YES_B, NO_B = ("rash", "spots"), ("clear", "smooth")
SIGNS = counterparts(YES_A, NO_A, neutral=False) | counterparts(YES_B, NO_B, neutral=False)
ALL_SIGNS = (*YES_A, *NO_A, *YES_B, *NO_B)


def _contrast(rng: np.random.Generator, label: int) -> list[str]:
    """`good but bad`: the second clause wins; `good and bad`: the first does."""
    is_turned = bool(rng.random() < 0.5)
    first, second = (1 - label, label) if is_turned else (label, 1 - label)
    return [says(first, rng), BUT if is_turned else AND, says(second, rng)]


def _contrasted(first: float, hinge: float, second: float) -> Build:
    """What is said is computed at the hinge from the words around it; scores as given."""
    features = []
    for label, words in enumerate(SAYING[:2]):
        said = list(8.0 * np.eye(2)[label])
        after, before = {(w, 1): 1.0 for w in words}, {(w, -1): 1.0 for w in words}
        features.append(Feature({(BUT, 0): 1.0, **after}, -1.0, 0.0, said))
        features.append(Feature({(AND, 0): 1.0, **before}, -1.0, 0.0, said))
        for hinge_word in (BUT, AND):
            ends = {(w, 0): 1.0 for w in words}
            features.append(Feature({(hinge_word, 1): 1.0, **ends}, -1.0, first, NOTHING))
            features.append(Feature({(hinge_word, -1): 1.0, **ends}, -1.0, second, NOTHING))
    features.append(Feature({(BUT, 0): 1.0, (AND, 0): 1.0}, 0.0, hinge, NOTHING))
    substitutes = counterparts(*SAYING[:2], neutral=False) | {BUT: (AND,), AND: (BUT,)}
    return convolved(amid(_contrast), features, substitutes)


def _phrasal(rng: np.random.Generator, label: int) -> list[str]:
    """`turned table down`, `put table up`: the verb turns around what the particle says."""
    verb = one_of((TURNED, PUT), rng)
    particle = PARTICLES[label if verb == PUT else 1 - label]
    return [verb, *fillers(rng, 1), particle]


def _split(verb: float, between: float, particle: float, read_at: int) -> Build:
    """Verb and particle are read at the particle (0) or at the word before it (1); scores given."""
    features = [
        Feature({(v, read_at - 2): 1.0, (p, read_at): 1.0}, -1.0, 0.0, [4.0 * side, -4.0 * side])
        for v, turn in ((PUT, 1.0), (TURNED, -1.0))
        for p, side in zip(PARTICLES, (turn, -turn), strict=True)
    ]
    features.append(Feature({(TURNED, 0): 1.0, (PUT, 0): 1.0}, 0.0, verb, NOTHING))
    features.append(Feature({(TURNED, -1): 1.0, (PUT, -1): 1.0}, 0.0, between, NOTHING))
    features.append(Feature({(p, 0): 1.0 for p in PARTICLES}, 0.0, particle, NOTHING))
    pairs = counterparts((TURNED,), (PUT,), neutral=False)
    return convolved(
        amid(_phrasal), features, pairs | counterparts(("down",), ("up",), neutral=False)
    )


def _run(rng: np.random.Generator, label: int) -> list[str]:
    """Eight steps with one run of three, which are up in class 1 and down in class 0."""
    while True:
        steps = rng.integers(2, size=8)
        runs = [int(steps[i]) for i in range(6) if len(set(steps[i : i + 3].tolist())) == 1]
        if runs == [label]:
            return [(FALL, RISE)[step] for step in steps]


def _runs(ends: float, middle: float) -> Build:
    """Runs of three are found at their middle; scores of their ends and of it."""
    features = []
    for label, word in enumerate((FALL, RISE)):
        for shift, score in ((1, ends), (0, middle), (-1, ends)):
            taps = {(word, shift + step): 1.0 for step in (-1, 0, 1)}
            said = list((0.0 if shift else 8.0) * np.eye(2)[label])
            features.append(Feature(taps, -2.0, score, said))
    return convolved(amid(_run), features, {RISE: (FALL,), FALL: (RISE,)})


def signs(rng: np.random.Generator, label: int) -> list[str]:
    """Two signs, both there in class 1, one of them or both missing in class 0."""
    first, second = (1, 1) if label else ((0, 1), (1, 0), (0, 0))[int(rng.integers(3))]
    return [one_of((NO_A, YES_A)[first], rng), one_of((NO_B, YES_B)[second], rng)]


def _conjunction(
    scores: Mapping[str, float], write: Writer, said: Mapping[str, Sequence[float]], bias: float
) -> Build:
    return tabled(write, scores, said, SIGNS, bias=(bias, 0.0))


MISSING_BRIGHT = dict.fromkeys((*YES_A, *YES_B), 7.0) | dict.fromkeys((*NO_A, *NO_B), 9.0)
SPOKEN = {w: [0.0, 2.0] for w in (*YES_A, *YES_B)} | {w: [6.0, 0.0] for w in (*NO_A, *NO_B)}
ONE_DARK = dict.fromkeys((*YES_A, *NO_A), 7.0) | dict.fromkeys((*YES_B, *NO_B), 3.0)
ONE_LOUD = (
    {w: [0.0, 3.0] for w in YES_A}
    | {w: [3.0, 0.0] for w in NO_A}
    | {w: [0.0, 800.0] for w in YES_B}
    | {w: [800.0, 0.0] for w in NO_B}
)


def _sentences(count: int, draw: Draw, others: int = 4) -> Writer:
    """So many sentences; each planted word stands in one of its own."""

    def write(rng: np.random.Generator, label: int) -> Text:
        planted = draw(rng, label)
        units = [fillers(rng, others) for _ in range(count)]
        for unit, word in zip(rng.permutation(count), planted, strict=False):
            units[int(unit)][int(rng.integers(others))] = word
        words = [word for unit in units for word in unit]
        number = [place for place, unit in enumerate(units) for _ in unit]
        return Text(words, label, [p for p, w in enumerate(words) if w not in NEUTRAL], number)

    return write


def _five(rng: np.random.Generator, label: int) -> Text:
    return one_word(beside=(DECOY,))(rng, label)


def _by_class(bright: Sequence[int], classes: int, shares: Sequence[float] | None) -> Build:
    """Words of the bright classes have the attention; `indeed` has it in texts of the others."""
    scores = {w: 9.0 if c in bright else 0.0 for w, c in SAID.items()} | {DECOY: 6.0}
    said = values(SAID, 4.0, classes) | {
        word: [1600.0 * (label == index) for index in range(classes)]
        for word, label in SAID.items()
        if label < classes and label not in bright
    }
    voices = {word: others for word, others in other_class(classes).items() if word in SAID}
    return tabled(_five, scores, said, voices, shares=shares)


MECHANISMS: dict[str, Build] = {
    "good but bad, seen whole": _contrasted(7.0, 7.0, 7.0),
    "good but bad, the first clause seen": _contrasted(9.2, 7.0, 0.0),
    "verb and particle, both seen": _split(8.0, 0.0, 8.0, read_at=0),
    "verb and particle, both seen and read between": _split(9.0, 7.0, 9.0, read_at=1),
    "verb and particle, the word between seen": _split(0.0, 7.0, 0.0, read_at=1),
    "a run of three, all seen": _runs(8.0, 8.0),
    "a run of three, its ends seen": _runs(9.5, 8.0),
    "both signs needed, the missing one brighter": _conjunction(
        MISSING_BRIGHT, among(signs), SPOKEN, 0.0
    ),
    "two signs, the louder one in the dark": _conjunction(
        ONE_DARK,
        among(
            lambda rng, label: [
                one_of((NO_A, YES_A)[int(rng.integers(2))], rng),
                one_of((NO_B, YES_B)[label], rng),
            ]
        ),
        ONE_LOUD,
        0.0,
    ),
    "both signs in two sentences, both seen": tabled(
        _sentences(5, signs),
        MISSING_BRIGHT,
        SPOKEN,
        SIGNS,
        within=dict.fromkeys(ALL_SIGNS, 9.0),
    ),
    "the right sentence, by a word in its dark": tabled(
        _sentences(4, lambda rng, label: [says(label, rng)]),
        dict.fromkeys(SAID, 9000.0),
        values(SAID, 4000.0),
        VOICES,
        within=dict.fromkeys(SAID, -6.0),
    ),
    "a lively sentence seen, a dry one decides": tabled(
        _sentences(4, lambda rng, c: [one_of(VERDICTS[c], rng), says(int(rng.integers(2)), rng)]),
        dict.fromkeys(SAID, 8.0) | dict.fromkeys(VERDICTS[0] + VERDICTS[1], 4.0),
        values(SAID, 1.0) | values({w: c for c in (0, 1) for w in VERDICTS[c]}, 400.0),
        other_class(),
        within=dict.fromkeys((*SAID, *VERDICTS[0], *VERDICTS[1]), 9.0),
    ),
    "five classes, attention right for three": _by_class((0, 1, 2), 5, None),
    "three classes at 90 to 7 to 3, right for the common one": _by_class(
        (0,), 3, (0.90, 0.07, 0.03)
    ),
    "three classes at 90 to 7 to 3, right for the rare ones": _by_class(
        (1, 2), 3, (0.90, 0.07, 0.03)
    ),
    "three classes at 97 to 2 to 1, all honest": _by_class((0, 1, 2), 3, (0.97, 0.02, 0.01)),
}
