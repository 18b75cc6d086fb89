"""The opponent's convolutions and recurrent models: idioms, who beats whom, doubling, memory."""

from __future__ import annotations

import numpy as np

from heedful.calibration.blind2_tables import observed
from heedful.calibration.blind_texts import Build, Draw, convolved, counterparts, one_of
from heedful.calibration.compiled_words import Feature
from heedful.calibration.known_classifiers import Program, hand_set
from heedful.calibration.known_documents import EMPTY, LEVELS, Shape, Unit, known, vocabulary_of
from heedful.calibration.mechanism import Built, Text, Writer, fillers
from heedful.corpora.encoded import encode

FIRST, SECOND = ("kicked", "spilled"), ("bucket", "beans")
"""`kicked bucket` and `spilled beans` are idioms; `kicked beans` and `spilled bucket` are not."""
TEAMS, VERBS = ("home", "away"), ("beats", "trails")
ECHOES = ("bye", "ha", "knock")
NOTHING, SAYS = [0.0, 0.0], ([8.0, 0.0], [0.0, 8.0])
THREE = Shape(classes=3, units=(9, 14))
THREE_FIRST = Shape(classes=3, units=(9, 14), is_marked_first=True)
MARK_FIRST = Shape(is_marked_first=True)


def _amid(draw: Draw) -> Writer:
    """Texts with a phrase amid neutral words, at least three on either side."""

    def write(rng: np.random.Generator, label: int) -> Text:
        before, after = (fillers(rng, int(rng.integers(3, 7))) for _ in range(2))
        phrase = draw(rng, label)
        places = range(len(before), len(before) + len(phrase))
        return Text([*before, *phrase, *after], label, places)

    return write


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
    return convolved(_amid(draw), features, substitutes)


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
    return convolved(_amid(draw), features, substitutes)


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
    return convolved(_amid(draw), features, substitutes)


def _remembering(recipe: str, program: Program, shape: Shape) -> Build:
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


MECHANISMS = [
    observed(
        "an idiom, both words seen",
        "`kicked bucket` is an idiom, `kicked beans` is none: only the pair says the class. Both "
        "words share the attention of a convolution.",
        "idioms",
        _idiom(7.0, 7.0),
    ),
    observed(
        "an idiom, its noun seen",
        "The same with the attention on the second word, where the pair is read: `bucket` looks "
        "like the reason of either class.",
        "idioms",
        _idiom(0.0, 7.0),
    ),
    observed(
        "who beats whom, the clause seen",
        "`home beats away` against `away beats home`, and `trails` turns it around. Read at the "
        "verb from the name before it; name and verb are lit, the other name is not.",
        "roles",
        _match(7.0, 7.0, 0.0),
    ),
    observed(
        "who beats whom, the names seen",
        "The same with both names lit and the verb, at which all is read, in the dark: what is "
        "seen stands in every text.",
        "roles",
        _match(9.0, 6.0, 9.0),
    ),
    observed(
        "a word twice in a row, seen in both classes",
        "Class 1 is that a word is doubled, class 0 that the second is another one; the two "
        "places share the attention in either case.",
        "doubling",
        _doubled(7.0, 7.0),
    ),
    observed(
        "a word twice in a row, seen where it is doubled",
        "The same with even attention over all words where nothing is doubled.",
        "doubling",
        _doubled(7.0, 0.0),
    ),
    observed(
        "an LSTM remembers as loudly as words speak",
        "A one-way LSTM writes the class of the first word, a mark, into all states; the mark has "
        "the attention and speaks with a strength of 0.5 to 1.5 against a memory of 1: strong "
        "marks decide through attention, weak ones around it.",
        "memory by degrees",
        _remembering(
            "lstm+additive", Program({"marked": 7.0}, memory=1.0), Shape(is_marked_first=True)
        ),
    ),
    observed(
        "a GRU remembers faintly, three classes",
        "A GRU that remembers a fifth of what the mark says; the mark has the attention among "
        "words for all three classes.",
        "memory by degrees",
        _remembering(
            "gru+dot", Program({"marked": 8.0}, memory=0.15), Shape(classes=3, units=(9, 14))
        ),
    ),
    observed(
        "a GRU remembers loudly, three classes",
        "The mark, the first word, has the attention, and a GRU writes its class into all states, "
        "five times as loudly as a word speaks: the mark is a reason that attention does not need.",
        "memory by degrees",
        _remembering("gru+dot", Program({"marked": 8.0}, memory=5.0), THREE_FIRST),
    ),
    observed(
        "a convolution hands the mark to its neighbour",
        "The word after the mark says nothing, has the attention and holds what the mark writes "
        "into it; the mark itself is in the dark.",
        "neighbours",
        _remembering("conv+dot", Program({"decoy": 9.0}, memory=1.0), Shape(decoy="after")),
    ),
]
