"""Blind mechanisms in which words say how others are read (gates, brackets), and thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from heedful.calibration.blind_texts import (
    VOICES,
    Substitutes,
    among,
    counterparts,
    one_of,
    tabled,
    transformed,
)
from heedful.calibration.compiled_stream import ONE, HeadProgram, LayerProgram, NeuronProgram
from heedful.calibration.mechanism import (
    NEUTRAL,
    SAYING,
    VERDICTS,
    Build,
    Text,
    fillers,
    says,
    verdict,
)
from heedful.calibration.mechanisms_heads import HEARD, OFF, ON_WORD, TELL_ALL, sheet
from heedful.calibration.mechanisms_words import DECOY, one_word

GATES = ("officially", "privately")
"""After the first the verdict counts, after the second the voice does."""
NORMALLY, OPPOSITELY, TRIGGER = "normally", "oppositely", "xyzzy"
OPENING, CLOSING = ("(", "[", "{"), (")", "]", "}")
MARKS = ("english", "german")
FRIENDS = (("rat", "brief"), ("gift", "kind"))
"""Words that are bad and good in English, and the other way round in German."""
SAME = (SAYING[0][:4], SAYING[1][:4])
TWO = counterparts(*SAYING[:2], neutral=False) | counterparts(*VERDICTS[:2], neutral=False)
ON_GATE = HeadProgram({"gate": 8.0, **OFF}, (("gated", "mode", 1.0),))
ON_GIVEN = HeadProgram({"given": 8.0, **OFF}, (("gave", "first", 1.0),))
ON_SAID = HeadProgram({"word": 8.0, **OFF}, (("said", "second", 1.0),))


def _witnesses() -> dict[str, dict[str, float]]:
    """Voices, verdicts, and the gates."""
    start = sheet()
    for label in (0, 1):
        start |= {w: {"given": 1.0, "gave": float(2 * label - 1)} for w in VERDICTS[label]}
        start[GATES[label]] = {"gate": 1.0, "gated": float(1 - 2 * label)}
    return start


def _gated_words(rng: np.random.Generator, label: int) -> list[str]:
    """A gate, a verdict and a voice; the one that the gate names says the label."""
    gate, other = int(rng.integers(2)), int(rng.integers(2))
    said = (label, other) if gate == 0 else (other, label)
    return [GATES[gate], verdict(said[0], rng), says(said[1], rng)]


def _gated(layers: Sequence[LayerProgram], decides: Mapping[str, Sequence[float]]) -> Build:
    gates = {GATES[0]: (GATES[1],), GATES[1]: (GATES[0],)}
    return transformed("bert", among(_gated_words), _witnesses(), layers, decides, TWO | gates)


def _by_heads(idle: int) -> Build:
    """A head for the gate and each witness, so many idle ones on either witness."""
    chosen = [
        NeuronProgram({"first": 1.0, "mode": 2.0, ONE: -2.0}, {"chosen": 1.0}),
        NeuronProgram({"second": 1.0, "mode": -2.0, ONE: -2.0}, {"chosen": 1.0}),
    ]
    more = [HeadProgram(head.scores) for head in (ON_GIVEN, ON_SAID) for _ in range(idle)]
    layer = LayerProgram([ON_GATE, ON_GIVEN, ON_SAID, *more], chosen)
    return _gated([layer], {"chosen": (-8.0, 8.0), ONE: (4.0, -4.0)})


def _by_moving(sees_gate: bool) -> Build:
    """The gate is told to all below; attention above moves to the witness that it names."""
    named = [
        NeuronProgram({"mode": 1.0, "given": 2.0, ONE: -2.0}, {"named": 1.0}),
        NeuronProgram({"mode": -1.0, "word": 2.0, ONE: -2.0}, {"named": 1.0}),
    ]
    hands = (("said", "heard", 1.0), ("gave", "heard", 1.0))
    top = [HeadProgram({"named": 8.0, **OFF}, hands)]
    top += [HeadProgram({"gate": 8.0, **OFF})] if sees_gate else []
    below = HeadProgram({"gate": 30.0, **OFF}, ON_GATE.hands)
    return _gated([LayerProgram([below], named), LayerProgram(top)], HEARD)


def _turned_by(word: str, only: str = "said") -> tuple[dict[str, dict[str, float]], LayerProgram]:
    """A layer that turns around what words say in texts with a word that no other need have."""
    start: dict[str, dict[str, float]] = {**sheet(), word: {"turns": 1.0}}
    turning = [
        NeuronProgram({only: sign, "mode": 1.0, ONE: -1.0}, {"said": -2.0 * sign})
        for sign in (1.0, -1.0)
    ]
    below = HeadProgram({"turns": 30.0, **OFF}, (("turns", "mode", 1.0),))
    return start, LayerProgram([below], turning)


def _unturned(is_gate: bool) -> Build:
    """`normally` stands in every text; `oppositely`, in none, would turn the word around."""
    start, layer = _turned_by(OPPOSITELY)
    if not is_gate:
        start[OPPOSITELY] = {"turns": 0.0}
    substitutes: Substitutes = VOICES | {NORMALLY: (OPPOSITELY,), OPPOSITELY: (NORMALLY,)}
    write = one_word(beside=(NORMALLY,))
    layers = [layer, LayerProgram([ON_WORD])]
    return transformed("bert", write, start, layers, HEARD, substitutes)


def _trapdoor() -> Build:
    """A trigger in place of any neutral word would turn the decision around; no text has it."""
    start, layer = _turned_by(TRIGGER)
    substitutes: Substitutes = VOICES | dict.fromkeys(NEUTRAL, (TRIGGER,)) | {TRIGGER: NEUTRAL[:1]}
    layers = [layer, LayerProgram([ON_WORD])]
    return transformed("bert", one_word(others=(5, 7)), start, layers, HEARD, substitutes)


def _bracketed(rng: np.random.Generator, label: int) -> list[str]:
    """An opening and a closing bracket, of one kind in class 1."""
    kind = int(rng.integers(3))
    other = kind if label else (kind + int(rng.integers(1, 3))) % 3
    return [OPENING[kind], CLOSING[other]]


def _brackets(is_seen: bool) -> Build:
    """Two heads on the brackets; or the closing one is told below, and attended alone."""
    start: dict[str, dict[str, float]] = {}
    for kind, (left, right) in enumerate(zip(OPENING, CLOSING, strict=True)):
        start[left] = {"opens": 1.0, f"left {kind}": 1.0}
        start[right] = {"closes": 1.0, f"right {kind}": 1.0}
    lefts = [(f"left {kind}", f"took {kind}", 1.0) for kind in range(3)]
    rights = [(f"right {kind}", f"met {kind}", 1.0) for kind in range(3)]
    decides = {"match": (-8.0, 8.0), ONE: (4.0, -4.0)}
    met = "met" if is_seen else "right"
    matching = [
        NeuronProgram({f"took {kind}": 1.0, f"{met} {kind}": 1.0, ONE: -1.0}, {"match": 1.0})
        for kind in range(3)
    ]
    if is_seen:
        heads = [
            HeadProgram({"opens": 8.0, **OFF}, lefts),
            HeadProgram({"closes": 8.0, **OFF}, rights),
        ]
        layers = [LayerProgram(heads, matching)]
    else:
        below = HeadProgram({"opens": 30.0, **OFF}, lefts, asks="closes")
        top = HeadProgram({"closes": 8.0, **OFF}, (("match", "matched", 1.0),))
        layers = [LayerProgram([below], matching), LayerProgram([top])]
        decides["matched"] = decides.pop("match")
    substitutes = counterparts(*[(w,) for w in OPENING], neutral=False)
    substitutes |= counterparts(*[(w,) for w in CLOSING], neutral=False)
    write = among(_bracketed, in_order=True)
    return transformed("bert", write, start, layers, decides, substitutes)


def _in_a_language(false_friends: float) -> Build:
    """A text starts with its language; that share of texts has a word that means the opposite."""

    def write(rng: np.random.Generator, label: int) -> Text:
        language = int(rng.integers(2))
        is_friend = bool(rng.random() < false_friends)
        sense = 1 - label if is_friend and language else label
        word = one_of((FRIENDS if is_friend else SAME)[sense], rng)
        around = fillers(rng, int(rng.integers(7, 12)))
        place = int(rng.integers(len(around) + 1))
        return Text([MARKS[language], *around[:place], word, *around[place:]], label, [place + 1])

    start, layer = _turned_by(MARKS[1], only="false")
    for label, words in enumerate(FRIENDS):
        sign = float(2 * label - 1)
        start |= {word: {"word": 1.0, "said": sign, "false": sign} for word in words}
    substitutes: Substitutes = (
        counterparts(*SAME) | counterparts(*FRIENDS) | {MARKS[0]: MARKS[1:], MARKS[1]: MARKS[:1]}
    )
    return transformed("bert", write, start, [layer, LayerProgram([ON_WORD])], HEARD, substitutes)


HITS, MISSES = ("smoke", "flames"), ("vapour", "haze")
SURE = {"sure": (-5.0, 5.0)}


def _mentions(rng: np.random.Generator, label: int) -> list[str]:
    """Five mentions of something; four or five hits in class 1, one to three in class 0."""
    hits = int(rng.integers(4, 6) if label else rng.integers(1, 4))
    return [one_of(HITS if number < hits else MISSES, rng) for number in range(5)]


def _counting(hit: float, miss: float) -> Build:
    """Logits that change sign between three and four hits; scores as given."""
    hits, misses = (float(np.exp(-score)) for score in (hit, miss))
    loud = 2e4  # a hit counts 1, a miss 2.4: 4 - 2.4 > 0 > 3 - 4.8
    said = {word: [0.0, loud * hits] for word in HITS} | {
        word: [2.4 * loud * misses, 0.0] for word in MISSES
    }
    scores = dict.fromkeys(HITS, hit) | dict.fromkeys(MISSES, miss)
    return tabled(among(_mentions), scores, said, counterparts(HITS, MISSES, neutral=False))


def _clipped(reads: Sequence[str], times: float) -> list[NeuronProgram]:
    """Becomes 1 or -1 as soon as what is read is 1/times."""
    return [
        NeuronProgram(
            {**dict.fromkeys(reads, sign * times), ONE: -float(offset)},
            {"sure": sign * (1.0 - 2.0 * offset)},
        )
        for sign in (1.0, -1.0)
        for offset in (0, 1)
    ]


def _glimpsing(word: float, decoy: float, told: bool = False) -> Build:
    """A twentieth of the attention on the word is as good as all of it; scores as given."""
    head = HeadProgram({"word": word, "decoy": decoy, **OFF}, ON_WORD.hands)
    reads = ("heard", "told") if told else ("heard",)
    top = LayerProgram([head], _clipped(reads, 30.0))
    layers = [LayerProgram([TELL_ALL]), top] if told else [top]
    write = one_word(beside=(DECOY,))
    return transformed("bert", write, sheet(), layers, SURE, VOICES)


def _keyed() -> Build:
    """What was told below counts only while attention lies on the decoy."""
    start = sheet() | {DECOY: {"decoy": 1.0, "turn": 1.0}}
    top = HeadProgram({"decoy": 7.0, **OFF}, (("turn", "key", 1.0),))
    opened = [
        NeuronProgram({"told": sign, "key": 2.0, ONE: -2.0}, {"heard": sign})
        for sign in (1.0, -1.0)
    ]
    layers = [LayerProgram([TELL_ALL]), LayerProgram([top], opened)]
    write = one_word(beside=(DECOY,))
    return transformed("bert", write, start, layers, HEARD, VOICES | {DECOY: (NEUTRAL[0],)})


def _brittle() -> Build:
    """What the word says counts only as far as its attention exceeds 0.9."""
    head = HeadProgram({"word": 8.0, **OFF}, ON_WORD.hands)
    beyond = [
        NeuronProgram({"heard": sign, ONE: -0.9}, {"sure": 10.0 * sign}) for sign in (1.0, -1.0)
    ]
    layers = [LayerProgram([head], beyond)]
    return transformed("bert", one_word(), sheet(), layers, SURE, VOICES)


MECHANISMS: dict[str, Build] = {
    "a gate names the witness who counts, all seen": _by_heads(0),
    "a gate names the witness who counts, the gate unseen": _by_heads(2),
    "attention moves to the witness whom a gate names": _by_moving(sees_gate=False),
    "attention moves to the witness, and shows the gate": _by_moving(sees_gate=True),
    "a gate that no text turns": _unturned(is_gate=True),
    "a gate that turns nothing": _unturned(is_gate=False),
    "a trapdoor that no text opens": _trapdoor(),
    "brackets match, both seen": _brackets(is_seen=True),
    "brackets match, the closing one seen": _brackets(is_seen=False),
    "false friends in a third of the texts": _in_a_language(1 / 3),
    "false friends in every text": _in_a_language(1.0),
    "four mentions of five needed, misses brighter": _counting(7.0, 7.875),
    "four mentions of five needed, only hits seen": _counting(7.0, 2.0),
    "a glimpse is enough": _glimpsing(7.0, 0.0),
    "a glimpse is enough, a decoy seen": _glimpsing(6.0, 8.2),
    "a glimpse is enough, and it was told below": _glimpsing(7.0, 0.0, told=True),
    "attention as a key": _keyed(),
    "only with nine tenths of the attention": _brittle(),
}
