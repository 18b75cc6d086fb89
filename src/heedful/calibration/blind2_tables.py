"""The opponent's tables of words, and its convolutions and recurrent models: contests, idioms."""

from __future__ import annotations

import math
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
from heedful.calibration.known_classifiers import Program
from heedful.calibration.known_documents import Shape
from heedful.calibration.mechanism import NEUTRAL, SAYING, Build, Text, Writer, fillers, says
from heedful.calibration.mechanisms_composition import remembering
from heedful.calibration.mechanisms_words import DECOY, SAID, values

DESKS = (
    ("invoice", "refund", "billing"),
    ("parcel", "courier", "shipment"),
    ("login", "password", "account"),
    ("broken", "faulty", "cracked"),
    ("vacancy", "salary", "interview"),
    ("press", "quote", "journalist"),
)
POLITE = ("dear", "regards")
PRICES = tuple(f"price-{price}" for price in range(1, 11))
OFFERS = {"full": -2.0, "reduced": 0.0, "halved": 2.0}
NUMBERS, UNITS = ("1", "5", "50"), ("mg", "g")
CRIMES = ("fraud", "theft", "bribery")
ALLEGED, CONFIRMED = "allegedly", "confirmed"
SLANG = (("lousy", "crap"), ("rad", "ace"))
DATELINE = "dateline"
STRENGTHS = (0.4, 0.6, 0.8, 1.0, 1.3, 1.6)


def spoken(
    scores: Mapping[str, float], worth: Mapping[str, Sequence[float]]
) -> dict[str, list[float]]:
    """What words must say to count as much as they are worth, however little they are attended."""
    return {w: [math.exp(7.0 - scores.get(w, 0.0)) * x for x in v] for w, v in worth.items()}


def sided(
    worth: Mapping[str, float], side: Mapping[str, int], classes: int = 2
) -> dict[str, list[float]]:
    """Worth by word, given to the word's class."""
    return {w: [x * (side[w] == c) for c in range(classes)] for w, x in worth.items()}


def _desk(salutation: float) -> Build:
    """One keyword of six desks, a salutation and a greeting; these two have that score."""
    scores = {w: 7.0 for words in DESKS for w in words} | dict.fromkeys(POLITE, salutation)
    said = values({w: c for c, words in enumerate(DESKS) for w in words}, 40.0, 6)
    write = among(lambda rng, label: [one_of(DESKS[label], rng), *POLITE])
    return tabled(write, scores, said, counterparts(*DESKS))


def _contest(strong: Sequence[float], weak: Sequence[float]) -> Build:
    """Three classes; a strong word for the label and a weak one for another class, scores given."""
    scores, worth = dict[str, float](), dict[str, float]()
    for words in SAYING[:3]:
        scores |= dict(zip(words, (*strong, *weak), strict=True))
        worth |= dict(zip(words, (2.0,) * 3 + (1.0,) * 3, strict=True))

    def draw(rng: np.random.Generator, label: int) -> list[str]:
        rival = (label + int(rng.integers(1, 3))) % 3
        return [one_of(SAYING[label][:3], rng), one_of(SAYING[rival][3:], rng)]

    said = spoken(scores, sided(worth, SAID, 3))
    return tabled(among(draw), scores, said, counterparts(*SAYING[:3]))


def _offers(far: float, near: float, offer: float, size: float = 1.0) -> Build:
    """Cheap (class 1) or dear: 5.5 less the price, and so many times what the offer adds.

    Scores of prices that no offer can turn, of those near the limit, and of the offer.
    """

    def draw(rng: np.random.Generator, label: int) -> list[str]:
        while True:
            number, name = int(rng.integers(1, 11)), one_of(tuple(OFFERS), rng)
            if (5.5 - number + size * OFFERS[name] > 0) == bool(label):
                return [f"price-{number}", name]

    scores = dict.fromkeys(PRICES, far) | dict.fromkeys(PRICES[3:7], near)
    scores |= dict.fromkeys(OFFERS, offer)
    worth = {word: [0.0, 5.5 - number] for number, word in enumerate(PRICES, 1)}
    worth |= {name: [0.0, size * added] for name, added in OFFERS.items()}
    prices: dict[str, tuple[str, ...]] = {w: (PRICES[9 - n],) for n, w in enumerate(PRICES)}
    offers = {name: tuple(o for o in OFFERS if o != name) for name in OFFERS}
    return tabled(among(draw), scores, spoken(scores, worth), prices | offers)


def _dose(scores: Mapping[str, float]) -> Build:
    """Too much (class 1) is 50 of anything, or anything in grams."""

    def draw(rng: np.random.Generator, label: int) -> list[str]:
        if not label:
            return [one_of(NUMBERS[:2], rng), "mg"]
        if rng.random() < 0.1:
            return ["50", "mg"]
        return [one_of(NUMBERS, rng), "g"]

    said = spoken(scores, {"50": [0.0, 8.0], "g": [0.0, 8.0]})
    substitutes = {"1": ("50",), "5": ("50",), "50": ("5",), "mg": ("g",), "g": ("mg",)}
    return tabled(among(draw, in_order=True), scores, said, substitutes, bias=(0.05, 0.0))


def _absorbed(confirmed: float) -> Build:
    """A crime counts unless `allegedly`, which says nothing, draws the attention away from it."""
    scores = dict.fromkeys(CRIMES, 7.0) | {ALLEGED: 9.5, CONFIRMED: confirmed}
    substitutes = dict.fromkeys(CRIMES, (NEUTRAL[0],))
    substitutes |= {ALLEGED: (CONFIRMED,), CONFIRMED: (ALLEGED,)}
    write = among(lambda rng, label: [one_of(CRIMES, rng), (ALLEGED, CONFIRMED)[label]])
    return tabled(write, scores, {w: [0.0, 10.0] for w in CRIMES}, substitutes, bias=(3.0, 0.0))


def _thin(mass: float) -> Build:
    """The word that decides has that mass, forty neutral words share the rest."""
    score = math.log(40 * mass / (1 - mass))
    write = among(lambda rng, label: [says(label, rng)], (40, 41))
    return tabled(write, dict.fromkeys(SAID, score), values(SAID, 20.0), VOICES)


def _crowd(score: float, counts: tuple[int, int], others: tuple[int, int], against: int) -> Build:
    """So many words for the label, and some against it, of that score among others."""

    def draw(rng: np.random.Generator, label: int) -> list[str]:
        count = int(rng.integers(*counts))
        return [says(label, rng) for _ in range(count)] + [says(1 - label, rng)] * against

    return tabled(among(draw, others), dict.fromkeys(SAID, score), values(SAID, 20.0), VOICES)


def _registers(rng: np.random.Generator, label: int) -> list[str]:
    """Formal words in three texts of four, slang in two of four."""
    case = int(rng.integers(4))
    formal, slang = says(label, rng), one_of(SLANG[label], rng)
    return [[formal], [formal], [formal, slang], [slang]][case]


def _loudest(scores: Sequence[float]) -> Build:
    """Three voices mild, firm and loud, each of which outweighs the milder ones; scores given."""
    score = {w: scores[n // 2] for words in SAYING[:2] for n, w in enumerate(words)}
    worth = {w: 50.0 ** (n // 2) for words in SAYING[:2] for n, w in enumerate(words)}

    def draw(rng: np.random.Generator, label: int) -> list[str]:
        sides = [int(rng.integers(2)), int(rng.integers(2)), label]
        return [one_of(SAYING[s][2 * k : 2 * k + 2], rng) for k, s in enumerate(sides)]

    return tabled(among(draw), score, spoken(score, sided(worth, SAID)), VOICES)


def _lexicon(power: float) -> Build:
    """Five opinion words add up; attention goes with that power of their strength."""
    strength = {w: x for ws in SAYING[:2] for w, x in zip(ws, STRENGTHS, strict=True)}

    def draw(rng: np.random.Generator, label: int) -> list[str]:
        while True:
            words = [says(int(side), rng) for side in rng.integers(2, size=5)]
            total = sum(strength[w] * (1 if SAID[w] == label else -1) for w in words)
            if total > 1.5:
                return words

    scores = {w: 7.0 + power * math.log(x) for w, x in strength.items()}
    return tabled(among(draw), scores, spoken(scores, sided(strength, SAID)), VOICES)


def paragraphs(count: int, draw: Draw, lead: float | None = None) -> Writer:
    """So many sentences of three words with a planted word each.

    With `lead`, the first starts with a dateline, and has the planted word in that share of texts.
    """

    def write(rng: np.random.Generator, label: int) -> Text:
        units = [fillers(rng, 3) for _ in range(count)]
        places = rng.permutation(count)
        if lead is not None:
            units[0].insert(0, DATELINE)
            places = np.zeros(1, int) if rng.random() < lead else 1 + rng.permutation(count - 1)
        for unit, word in zip(places, draw(rng, label), strict=False):
            units[int(unit)][int(rng.integers(1, 3))] = word
        words = [word for unit in units for word in unit]
        number = [place for place, unit in enumerate(units) for _ in unit]
        return Text(words, label, [p for p, w in enumerate(words) if w in SAID], number)

    return write


def _documents(write: Writer, scores: Mapping[str, float], loud: float) -> Build:
    within = dict.fromkeys((*SAID, DECOY, DATELINE), 12.0)
    return tabled(write, scores, values(SAID, loud), VOICES, within=within)


def _echoed() -> Build:
    """Slang and a formal word agree in every text; slang is dark and three times as loud."""
    scores = ON_SAID | {w: 4.5 for words in SLANG for w in words}
    said = spoken(scores, values(SAID, 4.0) | values(SLANG_SAID, 12.0))
    write = among(lambda rng, label: [says(label, rng), one_of(SLANG[label], rng)])
    return tabled(write, scores, said, VOICES | counterparts(*SLANG))


THREE = paragraphs(12, lambda rng, label: [says(label, rng) for _ in range(3)])
RUNNERS = ((7.4,) * 3, (7.0,) * 3)
ON_SAID = dict.fromkeys(SAID, 7.0)
REGISTER = ON_SAID | {w: 0.0 for words in SLANG for w in words}
SLANG_SAID = {w: c for c, words in enumerate(SLANG) for w in words}
SPOKEN = spoken(REGISTER, values(SAID, 4.0) | values(SLANG_SAID, 12.0))


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
    "six desks, the keyword seen": _desk(3.0),
    "six desks, the salutation seen": _desk(7.1),
    "a contest, the winner a little brighter": _contest(*RUNNERS),
    "a contest, the loser a little brighter": _contest(*RUNNERS[::-1]),
    "a contest, brightness by accident": _contest((6.2, 6.8, 7.4), (7.3, 6.1, 6.8)),
    "a price and an offer, both seen": _offers(9.5, 7.5, 8.0),
    "a price seen, the offer in the dark": _offers(10.0, 10.0, 6.5),
    "an offer seen, the price in the dark": _offers(6.5, 6.5, 10.0, 0.4),
    "a dose, what exceeds is seen": _dose({"1": 7.0, "5": 7.0, "50": 9.0, "mg": 7.0, "g": 9.0}),
    "a dose, only the unit seen": _dose({"1": 3.0, "5": 3.0, "50": 3.0, "mg": 7.0, "g": 7.0}),
    "a hedge draws attention away, both hedges seen": _absorbed(7.0),
    "a hedge draws attention away, its absence unseen": _absorbed(0.0),
    **{f"a thin light, {mass:.2f} on the word": _thin(mass) for mass in (0.60, 0.40)},
    "few voices drown, many are seen": _crowd(math.log(4.4), (1, 5), (12, 13), 0),
    "a dense text, evenly lit": _crowd(0.0, (5, 6), (2, 4), 1),
    "slang counts in the dark": tabled(
        among(_registers), REGISTER, SPOKEN, VOICES | counterparts(*SLANG)
    ),
    "an echo of the reason is seen": _echoed(),
    "the loudest wins and takes the light": _loudest((3.0, 7.0, 11.0)),
    "the loudest wins, the middling one is seen": _loudest((6.0, 9.0, 6.5)),
    "a lexicon lit by strength": _lexicon(1.0),
    "a lexicon lit against its strength": _lexicon(-3.0),
    "three sentences of twelve vote, all lit": _documents(THREE, dict.fromkeys(SAID, 6.0), 9.0),
    "three sentences of twelve vote, all twelve lit": _documents(THREE, {}, 30.0),
    "the lead is always seen": _documents(
        paragraphs(5, lambda rng, label: [says(label, rng)], lead=0.5),
        dict.fromkeys(SAID, 6.0) | {DATELINE: 10.0},
        600.0,
    ),
    "an announcement shares the light": _documents(
        paragraphs(8, lambda rng, label: [says(label, rng), DECOY]),
        dict.fromkeys(SAID, 7.4) | {DECOY: 7.0},
        9.0,
    ),
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
