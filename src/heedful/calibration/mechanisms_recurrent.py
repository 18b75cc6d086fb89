"""Mechanisms in recurrent encoders with weights set by hand, which remember what a mark says."""

from __future__ import annotations

from heedful.calibration.known_classifiers import Program, hand_set
from heedful.calibration.known_documents import EMPTY, LEVELS, Shape, Unit, known, vocabulary_of
from heedful.calibration.mechanism import Build, Built
from heedful.corpora.encoded import encode


def remembering(recipe: str, program: Program, shape: Shape) -> Build:
    """A recurrent or convolutional model with weights set by hand; marks can matter."""

    def build(seed: int, documents: int) -> Built:
        classes = shape.classes
        corpus = encode(known(shape, {"test": documents}, seed), vocabulary_of(classes))
        marks = {
            Unit("marked", c, level).word: (Unit("marked", (c + 1) % classes, level).word, EMPTY)
            for c in range(classes)
            for level in range(LEVELS)
        }
        return Built(hand_set(recipe, classes, program), corpus, marks, (EMPTY,))

    return build


RELAYED = Program({"decoy": 9.5}, memory=0.08, sharpness=80)
LOUD = Program({"marked": 6.0}, memory=3.0)

MECHANISMS: dict[str, Build] = {
    "relayed by a GRU": remembering("gru+dot", RELAYED, Shape(decoy="end", is_marked_first=True)),
    "remembered by an LSTM": remembering("lstm+additive", LOUD, Shape(is_marked_first=True)),
    "remembered from both sides": remembering("bilstm+additive", LOUD, Shape()),
    "rationalised by a BiLSTM, evidence twice": remembering(
        "bilstm+dot", Program(memory=3.0, match=8.0), Shape(marks=2, units=(10, 16))
    ),
    "sentences that remember": remembering(
        "han:gru+dot", LOUD, Shape(words=2, is_marked_first=True)
    ),
}
