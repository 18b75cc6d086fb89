"""The opponent's Transformers: majorities, recency, parity, length; middle layers, relays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from heedful.calibration.blind_texts import (
    VOICES,
    Substitutes,
    among,
    counterparts,
    one_of,
    shuffled,
    transformed,
)
from heedful.calibration.compiled_stream import (
    LONGEST,
    ONE,
    PLACE,
    SPECIAL,
    HeadProgram,
    LayerProgram,
    NeuronProgram,
)
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
from heedful.calibration.mechanisms_heads import (
    HEARD,
    IDLE_ON_WORD,
    OFF,
    ON_DECOY,
    ON_WORD,
    TELL_ALL,
    sheet,
)
from heedful.calibration.mechanisms_words import DECOY, one_word

SMILES = (("frown", "thumbs-down"), ("smile", "thumbs-up"))
VERY, QUITE, NOT, HOWEVER = "very", "quite", "not", "however"
KINDS = VOICES | counterparts(*VERDICTS[:2])
STRICT = {w: others[:1] for w, others in (KINDS | counterparts(*SMILES)).items()}
DOUBLE: Substitutes = STRICT | {NOT: (QUITE,), QUITE: (NOT,)}
SIGNS = (1.0, -1.0)
IDLE = HeadProgram({})
TURNED = [NeuronProgram({"heard": s, "odd": 1.0, ONE: -1.0}, {"heard": -2.0 * s}) for s in SIGNS]
"""Turns around what was heard where `odd` is 1."""
ON_GIVEN = HeadProgram({"given": 6.0, **OFF}, (("gave", "heard", 1.0),))
ON_SMILE = HeadProgram({"smiles": 6.0, **OFF}, (("smiled", "heard", 1.0),))
TELL_GIVEN = HeadProgram({"given": 30.0, **OFF}, (("gave", "told", 1.0),))
Layers = Sequence[LayerProgram]


def kinds() -> dict[str, dict[str, float]]:
    """What voices, verdicts and smiles start with."""
    start = sheet()
    for label, side in enumerate((-1.0, 1.0)):
        start |= {w: {"given": 1.0, "gave": side} for w in VERDICTS[label]}
        start |= {w: {"smiles": 1.0, "smiled": side} for w in SMILES[label]}
    return start


def _jury(idle: int) -> Build:
    """A voice, a verdict and a smile, two or three of them for the label; idle heads on voices."""

    def draw(rng: np.random.Generator, label: int) -> list[str]:
        sides = [label] * 3
        if rng.random() < 0.6:
            sides[int(rng.integers(3))] = 1 - label
        return [says(sides[0], rng), verdict(sides[1], rng), one_of(SMILES[sides[2]], rng)]

    layers = [LayerProgram([ON_WORD, ON_GIVEN, ON_SMILE, *[IDLE_ON_WORD] * idle])]
    return transformed("bert", among(draw), kinds(), layers, HEARD, STRICT)


def _outvoted(heads: Sequence[HeadProgram]) -> Build:
    """A verdict for the label and a voice for either class."""

    def draw(rng: np.random.Generator, label: int) -> list[str]:
        return [verdict(label, rng), says(int(rng.integers(2)), rng)]

    return transformed("llama", among(draw), kinds(), [LayerProgram(heads)], HEARD, KINDS)


def _recent() -> Build:
    """Three voices at least three words apart; attention grows with the place, the last wins."""

    def write(rng: np.random.Generator, label: int) -> Text:
        sides = [int(rng.integers(2)), int(rng.integers(2)), label]
        words = [w for s in sides for w in (*fillers(rng, int(rng.integers(2, 4))), says(s, rng))]
        return Text([*words, *fillers(rng, 2)], label, [len(words) - 1])

    top = HeadProgram({"word": 20.0, PLACE: 0.75 * LONGEST}, ON_WORD.hands)
    layers = [LayerProgram([top])]
    return transformed("gpt2", write, sheet(), layers, HEARD, VOICES, knows_places=True)


def _by_length(rng: np.random.Generator, label: int) -> Text:
    """Six to nine words, or twelve to sixteen; one of them is a voice for either class."""
    words = fillers(rng, int(rng.integers(12, 17) if label else rng.integers(6, 10)))
    place = int(rng.integers(len(words) - 1))
    words[place] = says(int(rng.integers(2)), rng)
    return Text(words, label, [place])


def _ironic() -> Build:
    """Texts of more than ten words mean the opposite of what their voice says."""

    def write(rng: np.random.Generator, label: int) -> Text:
        is_long = bool(rng.integers(2))
        words = fillers(rng, int(rng.integers(12, 17) if is_long else rng.integers(6, 10)))
        place = int(rng.integers(len(words) - 1))
        words[place] = says(1 - label if is_long else label, rng)
        return Text(words, label, [place])

    odd = [
        NeuronProgram({PLACE: float(LONGEST), ONE: -edge}, {"odd": times})
        for edge, times in ((9.0, 1.0), (10.0, -1.0))
    ]
    layers = [LayerProgram([IDLE], odd), LayerProgram([ON_WORD], TURNED)]
    return transformed("gpt2", write, sheet(), layers, HEARD, VOICES, knows_places=True)


def _early_told() -> Build:
    """A voice among the first six words is read below; a later one is left to the attention."""

    def write(rng: np.random.Generator, label: int) -> Text:
        words, place = fillers(rng, 13), int(rng.integers(12))
        words[place] = says(label, rng)
        return Text(words, label, [place])

    late = [
        NeuronProgram({PLACE: 10.0 * LONGEST, ONE: -edge}, {"late": times})
        for edge, times in ((50.0, 0.1), (60.0, -0.1))
    ]
    early = [NeuronProgram({"said": sign, "late": -2.0}, {"early": sign}) for sign in SIGNS]
    tell = HeadProgram({"word": 30.0}, (("early", "told", 1.0),))
    top = HeadProgram({"word": 7.0}, (("said", "heard", 1.0), ("early", "heard", -1.0)))
    layers = [LayerProgram([IDLE], late), LayerProgram([IDLE], early)]
    layers += [LayerProgram([tell]), LayerProgram([top])]
    decides = {"heard": (-5.0, 5.0), "told": (-5.0, 5.0)}
    return transformed("gpt2", write, sheet(), layers, decides, VOICES, knows_places=True)


def _tagged(rng: np.random.Generator, label: int) -> Text:
    """Half of the texts end with a verdict; the others have a voice somewhere."""
    words = fillers(rng, int(rng.integers(8, 13)))
    place = len(words) - 1 if rng.random() < 0.5 else int(rng.integers(len(words) - 1))
    words[place] = verdict(label, rng) if place == len(words) - 1 else says(label, rng)
    return Text(words, label, [place])


def _counter_argument() -> Build:
    """A verdict is read below and decides; attention goes to the voice that contradicts it."""

    def draw(rng: np.random.Generator, label: int) -> list[str]:
        return [verdict(label, rng), says(0, rng), says(1, rng)]

    against = [
        NeuronProgram({"told": s, "said": -s, "word": 2.0, ONE: -3.0}, {"lit": 1.0}) for s in SIGNS
    ]
    top = HeadProgram({"lit": 8.0, **OFF})
    layers = [LayerProgram([TELL_GIVEN], against), LayerProgram([top])]
    return transformed("bert", among(draw), kinds(), layers, {"told": (-5.0, 5.0)}, KINDS)


def _rebutted() -> Build:
    """After `however`, in four texts of ten, a verdict counts and the voice before does not."""

    def draw(rng: np.random.Generator, label: int) -> list[str]:
        if rng.random() < 0.4:
            return [says(1 - label, rng), HOWEVER, verdict(label, rng)]
        return [says(label, rng)]

    start = kinds() | {HOWEVER: {"but": 1.0}}
    named = [
        NeuronProgram({"given": 1.0, "mode": 1.0, ONE: -1.0}, {"named": 1.0}),
        NeuronProgram({"word": 1.0, "mode": -1.0}, {"named": 1.0}),
    ]
    below = HeadProgram({"but": 30.0, **OFF}, (("but", "mode", 1.0),))
    top = HeadProgram({"named": 8.0, **OFF}, (("said", "heard", 1.0), ("gave", "heard", 1.0)))
    layers = [LayerProgram([below], named), LayerProgram([top])]
    substitutes: Substitutes = KINDS | {HOWEVER: (NEUTRAL[0],)}
    return transformed("bert", among(draw, in_order=True), start, layers, HEARD, substitutes)


def double_negation(rng: np.random.Generator, label: int) -> list[str]:
    """A voice and two modifiers, none to two of which are `not`."""
    nots = int(rng.integers(3))
    voice = says(1 - label if nots == 1 else label, rng)
    return [voice, *[NOT] * nots, *[QUITE] * (2 - nots)]


def _parity(sees_modifiers: bool) -> Build:
    """Two modifiers, `not` or `quite`; one `not` turns the voice around, two do not."""

    start = sheet() | {NOT: {"neg": 1.0, "mod": 1.0}, QUITE: {"mod": 1.0}}
    # Shared with the two special tokens: a third for one `not`, a half for two.
    below = HeadProgram({"neg": 30.0, SPECIAL: 30.0}, (("neg", "share", 1.0),))
    odd = [
        NeuronProgram({"share": 1.0}, {"odd": 3.0}),
        NeuronProgram({"share": 1.0, ONE: -1 / 3}, {"odd": -9.0}),
    ]
    heads = [ON_WORD, *([HeadProgram({"mod": 9.0, **OFF})] if sees_modifiers else [])]
    layers = [LayerProgram([below], odd), LayerProgram(heads, TURNED)]
    return transformed("bert", among(double_negation), start, layers, HEARD, DOUBLE)


def _intensified() -> Build:
    """`very`, told below, doubles what the voice says and cannot flip it."""

    def draw(rng: np.random.Generator, label: int) -> list[str]:
        return [one_of((VERY, QUITE), rng), says(label, rng)]

    below = HeadProgram({"boosts": 30.0, **OFF}, (("boosts", "boost", 1.0),))
    more = [NeuronProgram({"heard": s, "boost": 1.0, ONE: -1.0}, {"heard": s}) for s in SIGNS]
    layers = [LayerProgram([below]), LayerProgram([ON_WORD], more)]
    start = sheet() | {VERY: {"boosts": 1.0}}
    substitutes: Substitutes = VOICES | {VERY: (QUITE,), QUITE: (VERY,)}
    return transformed("bert", among(draw, in_order=True), start, layers, HEARD, substitutes)


def _segments(rng: np.random.Generator, label: int) -> Text:
    """Two segments around a bar, with a voice for the label in each."""
    parts = [shuffled([says(label, rng), *fillers(rng, 5)], rng) for _ in range(2)]
    words = [*parts[0], "|", *parts[1]]
    return Text(words, label, [p for p, w in enumerate(words) if w not in (*NEUTRAL, "|")])


ON_GIVEN_LOUD = HeadProgram(ON_GIVEN.scores, (("gave", "heard", 3.0),))
ON_TAG = HeadProgram({"word": 6.0, "given": 9.0}, ON_WORD.hands)
LENGTH = {PLACE: (0.0, float(LONGEST)), ONE: (9.5, 0.0)}


TOLD = LayerProgram([TELL_ALL])
ERASE = [NeuronProgram({"heard": s}, {"heard": -s}) for s in SIGNS]
CONSENT = [NeuronProgram({"heard": s, "told": s, ONE: -1.0}, {"both": 2.0 * s}) for s in SIGNS]
BOTH = {"heard": (-5.0, 5.0), "told": (-5.0, 5.0)}
SMOKE, SEAT = "smoke", "seat"


def _three_layers(kind: str, times: Sequence[float], site: str) -> Build:
    """All layers lie on the word; each hands on so many times what it says."""
    layers = [LayerProgram([HeadProgram(ON_WORD.scores, (("said", "heard", t),))]) for t in times]
    write = one_word(beside=(DECOY,))
    return transformed(kind, write, sheet(), layers, HEARD, VOICES, site=site)


def _simple(kind: str, layers: Layers, decides: Mapping[str, Sequence[float]], site: str) -> Build:
    write = one_word(beside=(DECOY,))
    return transformed(kind, write, sheet(), layers, decides, VOICES, site=site)


def _relayed(times: float) -> Build:
    """Below, the decoy is told so many times what the word says; two thirds of the light on it."""
    told = HeadProgram({"word": 30.0}, (("said", "noted", times),), asks="decoy")
    hands = (("said", "heard", 1.0), ("noted", "heard", 1.0))
    layers = [LayerProgram([told]), LayerProgram([HeadProgram({"word": 7.7, "decoy": 7.0}, hands)])]
    return _simple("own", layers, HEARD, "pooled")


def _head_per_class(classes: int) -> Build:
    """A head for each class looks for its words and is even where there are none."""
    start = {w: {f"is {c}": 1.0} for c in range(classes) for w in SAYING[c]}
    heads = [
        HeadProgram({f"is {c}": 8.0, **OFF}, ((f"is {c}", f"found {c}", 1.0),))
        for c in range(classes)
    ]
    decides = {f"found {c}": [8.0 * (c == d) for d in range(classes)] for c in range(classes)}
    substitutes = counterparts(*SAYING[:classes])
    return transformed("bert", one_word(), start, [LayerProgram(heads)], decides, substitutes)


def _stays() -> Build:
    """The text ends with a verdict, which decides where it stands; both layers lie on it."""

    def write(rng: np.random.Generator, label: int) -> Text:
        words = [*fillers(rng, int(rng.integers(7, 12))), verdict(label, rng)]
        return Text(words, label, [len(words) - 1])

    layers = [LayerProgram([HeadProgram({"given": 6.0})])] * 2
    substitutes = counterparts(*VERDICTS[:2])
    decides = {"gave": (-5.0, 5.0)}
    return transformed("gpt2", write, kinds(), layers, decides, substitutes, site="all")


def _counted() -> Build:
    """Ten words, five or more of them `smoke` in class 1; one head is even, two lie on a seat."""

    def draw(rng: np.random.Generator, label: int) -> list[str]:
        count = int(rng.integers(5, 7) if label else rng.integers(2, 4))
        return [SEAT, *[SMOKE] * count, *fillers(rng, 9 - count)]

    start = {SMOKE: {"smokes": 1.0}, SEAT: {"seat": 1.0}}
    even = HeadProgram(OFF, (("smokes", "share", 10.0),))
    heads = [even, *[HeadProgram({"seat": 6.0, **OFF})] * 2]
    decides = {"share": (0.0, 4.0), ONE: (16.0, 0.0)}
    substitutes = {SMOKE: (NEUTRAL[0],)}
    return transformed(
        "bert", among(draw, (0, 1)), start, [LayerProgram(heads)], decides, substitutes
    )


MECHANISMS: dict[str, Build] = {
    "a jury of three kinds, all seen": _jury(0),
    "a jury of three kinds, one juror in the light": _jury(3),
    "two heads outvote a third": _outvoted([ON_GIVEN, ON_WORD, ON_GIVEN]),
    "one loud head outvotes two": _outvoted([ON_WORD, ON_GIVEN_LOUD, ON_WORD]),
    "the most recent voice wins": _recent(),
    "the length decides": transformed(
        "gpt2",
        _by_length,
        sheet(),
        [LayerProgram([IDLE_ON_WORD])],
        LENGTH,
        VOICES,
        knows_places=True,
    ),
    "early words go around the attention": _early_told(),
    "a tag at the end decides where it stands": transformed(
        "gpt2",
        _tagged,
        kinds(),
        [LayerProgram([ON_TAG])],
        {"heard": (-5.0, 5.0), "gave": (-5.0, 5.0)},
        KINDS,
    ),
    "attention shows the counter-argument": _counter_argument(),
    "a rebuttal moves the attention": _rebutted(),
    "double negation, all seen": _parity(sees_modifiers=True),
    "double negation, the voice seen": _parity(sees_modifiers=False),
    "an intensifier is not seen and not needed": _intensified(),
    "two segments repeat each other, both lit": transformed(
        "bert", _segments, sheet() | {"|": {}}, [LayerProgram([ON_WORD])], HEARD, STRICT
    ),
    "irony by length": _ironic(),
    "decided in the middle layer, which is audited": _three_layers(
        "llama", (0.0, 1.0, 0.0), "layer:1"
    ),
    "decided in the middle layer, the first audited": _three_layers(
        "llama", (0.0, 1.0, 0.0), "layer:0"
    ),
    **{
        f"three layers share the work, {times[1]:.2f} in the audited one": _three_layers(
            "gpt2", times, "layer:1"
        )
        for times in ((0.2, 0.6, 0.2), (0.35, 0.3, 0.35))
    },
    "one idle layer of three on a decoy, all audited": _simple(
        "bert", [LayerProgram([h]) for h in (ON_WORD, ON_DECOY, ON_WORD)], HEARD, "all"
    ),
    "a feed-forward part erases what attention brings": _simple(
        "llama", [LayerProgram([TELL_ALL]), LayerProgram([ON_WORD], ERASE)], BOTH, "pooled"
    ),
    "what was told counts only with attention's consent": _simple(
        "bert",
        [TOLD, LayerProgram([ON_WORD], CONSENT)],
        {"both": (-5.0, 5.0)},
        "pooled",
    ),
    **{
        f"a decoy that was told {times:.1f} of it, own Transformer": _relayed(times)
        for times in (0.2, 1.0)
    },
    **{
        f"a head for each of {number} classes": _head_per_class(count)
        for number, count in (("two", 2), ("four", 4))
    },
    "the last word stays where it is read, all audited": _stays(),
    "counted by an even head, two heads on a seat": _counted(),
}
