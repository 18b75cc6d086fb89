"""Mechanisms that go around attention: residual streams, told words, relays, rationales, sinks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heedful.calibration.compiled_stream import (
    LONGEST,
    ONE,
    PLACE,
    SPECIAL,
    HeadProgram,
    LayerProgram,
    NeuronProgram,
)
from heedful.calibration.mechanism import SAYING, Build, Text, Writer, other_class
from heedful.calibration.mechanisms_heads import OFF, ON_WORD, RELAY, TELL_ALL, sheet, streamed
from heedful.calibration.mechanisms_words import GIVEN, among_voices, one_word

RARE = (0.95, 0.05)


def _around(share: float, loud: float = 5.0) -> dict[str, tuple[float, float]]:
    """What was told below counts for that share of the decision."""
    through = loud * (1 - share)
    return {"heard": (-through, through), "told": (-loud * share, loud * share)}


def _for_some(words: int, shares: Sequence[float] | None = None) -> Build:
    """Only the first words of each list are told to all others, below; they then decide."""
    start = sheet()
    for label, listed in enumerate(SAYING[:2]):
        for word in listed[:words]:
            start[word]["openly"] = float(2 * label - 1)
    told = HeadProgram({"word": 30.0, **OFF}, (("openly", "told", 1.0),))
    layers = [LayerProgram([told]), LayerProgram([ON_WORD])]
    return streamed("gpt2", layers, _around(0.8), write=one_word(), shares=shares, start=start)


def _told(kind: str, times: int) -> Build:
    """Every word is told below; attention lies on the word and hands on what it was told."""
    top = HeadProgram({"word": 6.0, **OFF}, (("told", "heard", 1.0),))
    layers = [LayerProgram([TELL_ALL]), LayerProgram([top])]
    return streamed(kind, layers, write=one_word(times=times))


def _rationalised(kind: str, times: int) -> Build:
    """Attention lies on voices that agree with what was read off the verdicts below."""
    start = sheet()
    for word, label in GIVEN.items():
        if label < 2:
            start[word] = {"given": 1.0, "gave": float(2 * label - 1)}
    agreeing = [
        NeuronProgram({"said": sign, "told": sign, ONE: -1.5}, {"agrees": 2.0})
        for sign in (1.0, -1.0)
    ]
    told = HeadProgram({"given": 30.0, **OFF}, (("gave", "told", 1.0),))
    top = HeadProgram({"agrees": 7.0, **OFF}, (("told", "heard", 1.0),))
    layers = [LayerProgram([told], agreeing), LayerProgram([top])]
    verdicts = {word: other for word, other in other_class().items() if word in GIVEN}
    write = among_voices(times=times)
    return streamed(kind, layers, write=write, start=start, substitutes=verdicts)


def _with_stops(rng: np.random.Generator, label: int) -> Text:
    """Texts with a full stop at the end and one within."""
    text = one_word(beside=(".",))(rng, label)
    return text._replace(words=[*text.words, "."])


def _first_word_sink() -> Build:
    """Attention lies on whatever word comes first; the rest picks the word that decides."""
    first = NeuronProgram({ONE: 1.0, PLACE: -float(LONGEST)}, {"first": 1.0})
    top = HeadProgram({"first": 8.0, "word": 6.5}, (("said", "heard", 1.0),))
    layers = [LayerProgram([HeadProgram({})], [first]), LayerProgram([top])]

    def write(rng: np.random.Generator, label: int) -> Text:
        text = one_word()(rng, label)
        return Text(["table", *text.words], label, [place + 1 for place in text.evidence])

    return streamed("gpt2", layers, write=write, knows_places=True)


def _sink(scores: dict[str, float], write: Writer) -> Build:
    head = HeadProgram(scores, (("said", "heard", 1.0),))
    return streamed("bert", [LayerProgram([head])], write=write)


_TIMES = ("once", "twice", "three times")

MECHANISMS: dict[str, Build] = {
    **{
        f"residual stream with {share:.2f} of the effect": streamed(
            "gpt2", [LayerProgram([TELL_ALL]), LayerProgram([ON_WORD])], _around(share)
        )
        for share in (0.1, 0.3, 0.45, 0.6, 0.75, 0.95)
    },
    **{f"bypass for {words} of six words": _for_some(words) for words in (1, 2, 3, 4, 5)},
    "bypass in five texts of six, at 95 to 5": _for_some(5, RARE),
    "bypassed and saturated": streamed(
        "bert", [LayerProgram([TELL_ALL]), LayerProgram([ON_WORD])], _around(0.9, 15.0)
    ),
    **{
        f"told to all words, evidence {_TIMES[times - 1]}": _told(shape, times)
        for times, shape in ((1, "bert"), (2, "own"), (3, "bert"))
    },
    **{
        f"rationalised, evidence {_TIMES[times - 1]}": _rationalised(shape, times)
        for times, shape in ((1, "own"), (2, "bert"), (3, "own"))
    },
    "relayed to a decoy": streamed(
        "bert",
        [RELAY, LayerProgram([HeadProgram({"decoy": 8.0, **OFF}, (("noted", "heard", 1.0),))])],
    ),
    "relayed, with the word a distant second": streamed(
        "own",
        [
            RELAY,
            LayerProgram(
                [HeadProgram({"decoy": 8.2, "word": 6.0, **OFF}, (("noted", "heard", 1.0),))]
            ),
        ],
    ),
    "attention on the separator, the rest honest": _sink({"word": 6.0, SPECIAL: 6.5}, one_word()),
    "attention on full stops": _sink({"word": 6.0, "stop": 7.5, **OFF}, _with_stops),
    "attention on the first word": _first_word_sink(),
}
