"""Blind mechanisms with thresholds: counts, readers to whom a glimpse is enough, keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heedful.calibration.blind_texts import VOICES, among, counterparts, one_of, tabled, transformed
from heedful.calibration.compiled_stream import ONE, HeadProgram, LayerProgram, NeuronProgram
from heedful.calibration.mechanism import NEUTRAL, Build
from heedful.calibration.mechanisms_heads import HEARD, OFF, ON_WORD, TELL_ALL, sheet
from heedful.calibration.mechanisms_words import DECOY, one_word

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
    "four mentions of five needed, misses brighter": _counting(7.0, 7.875),
    "four mentions of five needed, only hits seen": _counting(7.0, 2.0),
    "a glimpse is enough": _glimpsing(7.0, 0.0),
    "a glimpse is enough, a decoy seen": _glimpsing(6.0, 8.2),
    "a glimpse is enough, and it was told below": _glimpsing(7.0, 0.0, told=True),
    "attention as a key": _keyed(),
    "only with nine tenths of the attention": _brittle(),
}
