"""Mechanisms of words that decide together (negation, order), and of encoders that remember."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heedful.calibration.compiled_stream import (
    LONGEST,
    ONE,
    PLACE,
    HeadProgram,
    LayerProgram,
    NeuronProgram,
)
from heedful.calibration.compiled_words import Feature, windowed
from heedful.calibration.known_classifiers import Program, hand_set
from heedful.calibration.known_documents import EMPTY, LEVELS, Shape, Unit, known, vocabulary_of
from heedful.calibration.mechanism import (
    NEUTRAL,
    SAYING,
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
from heedful.calibration.mechanisms_heads import OFF, sheet, streamed
from heedful.calibration.mechanisms_words import GIVEN, one_word, vocabulary
from heedful.corpora.encoded import encode

NOT, QUITE = "not", "quite"


def negated(always: bool) -> Writer:
    """Texts whose polar word has `not` before it in half of the cases; else `quite`, or nothing."""

    def write(rng: np.random.Generator, label: int) -> Text:
        is_negated = bool(rng.random() < 0.5)
        polar = says(1 - label if is_negated else label, rng)
        before = [NOT] if is_negated else [QUITE] if always else []
        around = fillers(rng, int(rng.integers(6, 11)))
        place = int(rng.integers(len(around) + 1))
        words = [*around[:place], *before, polar, *around[place:]]
        return Text(words, label, range(place, place + len(before) + 1))

    return write


def _negation(polar: float, negator: float, always: bool = True) -> Build:
    """A convolution that reads the polar word with the word before it; scores as given."""
    features = []
    for label, words in enumerate(SAYING[:2]):
        here = {(word, 0): 1.0 for word in words}
        plain, turned = np.eye(2)[label], np.eye(2)[1 - label]
        features.append(Feature({**here, (NOT, -1): -1.0}, 0.0, polar, list(8.0 * plain)))
        features.append(Feature({**here, (NOT, -1): 1.0}, -1.0, polar, list(8.0 * turned)))
    features.append(Feature({(NOT, 0): 1.0, (QUITE, 0): 1.0}, 0.0, negator, [0.0, 0.0]))

    def build(seed: int, documents: int) -> Built:
        words = (*vocabulary(), QUITE)
        corpus = corpus_of(negated(always), {"test": documents}, seed, words=words)
        substitutes = other_class() | {NOT: (QUITE, NEUTRAL[0]), QUITE: (NOT, NEUTRAL[0])}
        return Built(windowed(corpus, features), corpus, substitutes, NEUTRAL)

    return build


def _after(seed: int, documents: int) -> Built:
    """A convolution whose attention lies on the word after the one that decides."""

    def write(rng: np.random.Generator, label: int) -> Text:
        text = one_word()(rng, label)
        return text._replace(words=[*text.words, *fillers(rng, 1)])

    features = [
        Feature({(word, -1): 1.0 for word in words}, 0.0, 7.0, list(4.0 * np.eye(2)[label]))
        for label, words in enumerate(SAYING[:2])
    ]
    corpus = corpus_of(write, {"test": documents}, seed, words=vocabulary())
    return Built(windowed(corpus, features), corpus, other_class(), NEUTRAL)


def both_kinds() -> dict[str, dict[str, float]]:
    """What voices and verdicts start with."""
    start = sheet()
    for word, label in GIVEN.items():
        if label < 2:
            start[word] = {"given": 1.0, "gave": float(2 * label - 1)}
    return start


def _pairs(rng: np.random.Generator, label: int) -> Text:
    """A verdict and a voice; the label is whether they agree."""
    first = int(rng.integers(2))
    kept = [verdict(first, rng), says(first if label else 1 - first, rng)]
    words, places = scattered(
        rng, [str(word) for word in rng.permutation(kept)], fillers(rng, int(rng.integers(6, 11)))
    )
    return Text(words, label, places)


def _agreement(kind: str, on_given: int, on_said: int) -> Build:
    """Heads on either word (the first of each hands it on); a feed-forward part compares."""
    given = HeadProgram({"given": 7.0, **OFF}, (("gave", "first", 1.0),))
    said = HeadProgram({"word": 7.0, **OFF}, (("said", "second", 1.0),))
    idle = [HeadProgram(given.scores)] * (on_given - 1) + [HeadProgram(said.scores)] * (on_said - 1)
    neurons = [
        NeuronProgram({"first": sign, "second": sign, ONE: -1.0}, {"agree": 1.0})
        for sign in (1.0, -1.0)
    ]
    layer = LayerProgram([given, said, *idle], neurons)
    decides = {"agree": (-6.0, 6.0), ONE: (3.0, -3.0)}
    return streamed(kind, [layer], decides, write=_pairs, start=both_kinds())


def _two_voices(last_wins: bool) -> Writer:
    """A word for either class; the label is what the first (or the last) says."""

    def write(rng: np.random.Generator, label: int) -> Text:
        kept = [says(label, rng), says(1 - label, rng)]
        around = fillers(rng, int(rng.integers(6, 11)))
        words, places = scattered(rng, kept[::-1] if last_wins else kept, around)
        return Text(words, label, places[-1:] if last_wins else places[:1])

    return write


def _order(last_wins: bool, layers: Sequence[LayerProgram]) -> Build:
    return streamed("gpt2", layers, write=_two_voices(last_wins), knows_places=True)


STEP = 3.0 * LONGEST
"""A word further the score changes by 3."""
FIRST = {"word": 50.0, PLACE: -STEP}
LAST = {"word": 50.0, PLACE: STEP}


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
    "negation seen whole": _negation(7.0, 7.0),
    "negation, the polar word seen": _negation(7.0, 0.0),
    "negation, the negator seen": _negation(7.0, 8.3),
    "negation in half of the texts": _negation(7.0, 0.0, always=False),
    "the word after it seen": _after,
    "two words agree or not, both seen": _agreement("bert", 1, 1),
    "two words agree or not, one seen": _agreement("llama", 3, 1),
    "the first of two wins": _order(
        False, [LayerProgram([HeadProgram(FIRST, (("said", "heard", 1.0),))])]
    ),
    "the last of two wins, the first is seen": _order(
        True,
        [
            LayerProgram([HeadProgram(LAST, (("said", "heard", 1.0),))]),
            LayerProgram([HeadProgram(FIRST)]),
        ],
    ),
    "the first of two wins, most heads on the last": _order(
        False,
        [LayerProgram([HeadProgram(FIRST, (("said", "heard", 1.0),)), *[HeadProgram(LAST)] * 2])],
    ),
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
