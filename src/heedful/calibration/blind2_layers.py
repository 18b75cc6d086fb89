"""The opponent's Transformers by layers and heads: middle layers, relays, erasing, counting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from heedful.calibration.blind2_streams import SIGNS, Layers, kinds
from heedful.calibration.blind_texts import VOICES, among, counterparts, transformed
from heedful.calibration.compiled_stream import ONE, HeadProgram, LayerProgram, NeuronProgram
from heedful.calibration.mechanism import NEUTRAL, SAYING, VERDICTS, Build, Text, fillers, verdict
from heedful.calibration.mechanisms_heads import HEARD, OFF, ON_DECOY, ON_WORD, TELL_ALL, sheet
from heedful.calibration.mechanisms_words import DECOY, one_word

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
