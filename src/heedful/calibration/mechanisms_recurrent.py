"""Mechanisms in recurrent encoders with weights set by hand, which remember what a mark says."""

from __future__ import annotations

from collections.abc import Callable

from heedful.calibration.known_classifiers import Program, hand_set
from heedful.calibration.known_documents import (
    EMPTY,
    LEVELS,
    Shape,
    Unit,
    known,
    vocabulary_of,
)
from heedful.calibration.mechanism import Built, Mechanism
from heedful.corpora.encoded import encode


def _remembering(recipe: str, program: Program, shape: Shape) -> Callable[[int, int], Built]:
    """A recurrent model; marks can matter, and so can other words where attention is honest."""

    def build(seed: int, documents: int) -> Built:
        corpus = encode(known(shape, {"test": documents}, seed), vocabulary_of(2))
        marks = {
            Unit("marked", label, level).word: (Unit("marked", 1 - label, level).word, EMPTY)
            for label in (0, 1)
            for level in range(LEVELS)
        }
        return Built(hand_set(recipe, 2, program), corpus, marks, (EMPTY,))

    return build


RELAYED = Program({"decoy": 9.5}, memory=0.08, sharpness=80)
LOUD = Program({"marked": 6.0}, memory=3.0)

MECHANISMS = [
    Mechanism(
        "relayed by a GRU",
        "A mark at the beginning is remembered by a one-way GRU; the last word, which says "
        "nothing, has the attention and what is remembered.",
        "relays",
        "open",
        _remembering("gru+dot", RELAYED, Shape(decoy="end", is_marked_first=True)),
    ),
    Mechanism(
        "remembered by an LSTM",
        "An LSTM writes the class of the mark, the first word, into every state, louder than any "
        "word speaks; attention lies on the mark.",
        "redundancy, told",
        "open",
        _remembering("lstm+additive", LOUD, Shape(is_marked_first=True)),
    ),
    Mechanism(
        "remembered from both sides",
        "The same in a BiLSTM: the mark's own state remembers it from both sides and says it, all "
        "others from one side, so that a little more than half of the effect is on the mark.",
        "redundancy, told",
        "open",
        _remembering("bilstm+additive", LOUD, Shape()),
    ),
    Mechanism(
        "rationalised by a BiLSTM, evidence twice",
        "A BiLSTM remembers the marks; attention lies on words that say the same.",
        "redundancy, rationalised",
        "open",
        _remembering("bilstm+dot", Program(memory=3.0, match=8.0), Shape(marks=2, units=(10, 16))),
    ),
    Mechanism(
        "sentences that remember",
        "A hierarchical GRU: the first sentence has the mark, all later ones remember it; "
        "attention lies on the first.",
        "sentences",
        "open",
        _remembering("han:gru+dot", LOUD, Shape(words=2, is_marked_first=True)),
    ),
]
