"""The opponent's convolutions and recurrent models: idioms, who beats whom, doubling, memory."""

from __future__ import annotations

import numpy as np

from heedful.calibration.blind_texts import NOTHING, amid, convolved, counterparts, one_of
from heedful.calibration.compiled_words import Feature
from heedful.calibration.known_classifiers import Program
from heedful.calibration.known_documents import Shape
from heedful.calibration.mechanism import Build
from heedful.calibration.mechanisms_recurrent import remembering

FIRST, SECOND = ("kicked", "spilled"), ("bucket", "beans")
"""`kicked bucket` and `spilled beans` are idioms; `kicked beans` and `spilled bucket` are not."""
TEAMS, VERBS = ("home", "away"), ("beats", "trails")
ECHOES = ("bye", "ha", "knock")
THREE_FIRST = Shape(classes=3, units=(9, 14), is_marked_first=True)


def _idiom(first: float, second: float) -> Build:
    """Class 1 is an idiom, found at its second word; scores of either word given."""

    def draw(rng: np.random.Generator, label: int) -> list[str]:
        kind = int(rng.integers(2))
        return [FIRST[kind], SECOND[kind if label else 1 - kind]]

    features = [
        Feature(
            {(FIRST[a], -1): 1.0, (SECOND[b], 0): 1.0}, -1.0, 0.0, [8.0 * (a != b), 8.0 * (a == b)]
        )
        for a in (0, 1)
        for b in (0, 1)
    ]
    features.append(Feature({(w, 0): 1.0 for w in FIRST}, 0.0, first, NOTHING))
    features.append(Feature({(w, 0): 1.0 for w in SECOND}, 0.0, second, NOTHING))
    substitutes = counterparts(*[(w,) for w in FIRST], neutral=False)
    substitutes |= counterparts(*[(w,) for w in SECOND], neutral=False)
    return convolved(amid(draw), features, substitutes)


def _match(name: float, verb: float, rival: float) -> Build:
    """`home beats away`, `away trails home`: class 1 is that home wins, read at the verb."""

    def draw(rng: np.random.Generator, label: int) -> list[str]:
        kind = int(rng.integers(2))
        first = kind if label else 1 - kind
        return [TEAMS[first], VERBS[kind], TEAMS[1 - first]]

    features = [
        Feature(
            {(VERBS[v], 0): 1.0, (TEAMS[t], -1): 1.0}, -1.0, 0.0, [8.0 * (v != t), 8.0 * (v == t)]
        )
        for v in (0, 1)
        for t in (0, 1)
    ]
    features.append(Feature({(w, 0): 1.0 for w in VERBS}, 0.0, verb, NOTHING))
    for after, score in ((1, name), (-1, rival)):
        taps = {(w, after): 1.0 for w in VERBS} | {(w, 0): 1.0 for w in TEAMS}
        features.append(Feature(taps, -1.0, score, NOTHING))
    substitutes = counterparts(*[(w,) for w in TEAMS], neutral=False)
    substitutes |= counterparts(*[(w,) for w in VERBS], neutral=False)
    return convolved(amid(draw), features, substitutes)


def _doubled(pair: float, other: float) -> Build:
    """Class 1 is a word twice in a row; scores of both places if so, and of the words otherwise."""

    def draw(rng: np.random.Generator, label: int) -> list[str]:
        first = one_of(ECHOES, rng)
        return [first, first if label else one_of([w for w in ECHOES if w != first], rng)]

    features = [Feature({(w, 0): 1.0 for w in ECHOES}, 0.0, other, [1.0, 0.0])]
    for word in ECHOES:
        for step in (-1, 1):
            taps = {(word, 0): 1.0, (word, step): 1.0}
            features.append(Feature(taps, -1.0, pair - other, [0.0, 8.0]))
    substitutes = {w: tuple(o for o in ECHOES if o != w) for w in ECHOES}
    return convolved(amid(draw), features, substitutes)


MECHANISMS: dict[str, Build] = {
    "an idiom, both words seen": _idiom(7.0, 7.0),
    "an idiom, its noun seen": _idiom(0.0, 7.0),
    "who beats whom, the clause seen": _match(7.0, 7.0, 0.0),
    "who beats whom, the names seen": _match(9.0, 6.0, 9.0),
    "a word twice in a row, seen in both classes": _doubled(7.0, 7.0),
    "a word twice in a row, seen where it is doubled": _doubled(7.0, 0.0),
    "an LSTM remembers as loudly as words speak": remembering(
        "lstm+additive", Program({"marked": 7.0}, memory=1.0), Shape(is_marked_first=True)
    ),
    "a GRU remembers faintly, three classes": remembering(
        "gru+dot", Program({"marked": 8.0}, memory=0.15), Shape(classes=3, units=(9, 14))
    ),
    "a GRU remembers loudly, three classes": remembering(
        "gru+dot", Program({"marked": 8.0}, memory=5.0), THREE_FIRST
    ),
    "a convolution hands the mark to its neighbour": remembering(
        "conv+dot", Program({"decoy": 9.0}, memory=1.0), Shape(decoy="after")
    ),
}
