"""Mechanisms of several heads and layers, in the shapes of BERT, GPT-2, Llama; and around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from heedful.calibration.compiled_stream import (
    LONGEST,
    ONE,
    PLACE,
    SPECIAL,
    HeadProgram,
    LayerProgram,
    NeuronProgram,
    StreamProgram,
    compiled,
)
from heedful.calibration.mechanism import (
    NEUTRAL,
    SAYING,
    Build,
    Built,
    Text,
    Writer,
    corpus_of,
    other_class,
)
from heedful.calibration.mechanisms_words import (
    DECOY,
    GIVEN,
    SAID,
    among_voices,
    one_word,
    vocabulary,
)

OFF = {SPECIAL: -30.0}
"""Special tokens are not attended."""
ON_WORD = HeadProgram({"word": 6.0, **OFF}, (("said", "heard", 1.0),))
"""Attends to the word that says a class and takes over what it says."""
SOFT_ON_WORD = HeadProgram({"word": 3.5, **OFF}, (("said", "heard", 1.0),))
ON_DECOY = HeadProgram({"decoy": 6.0, **OFF})
IDLE_ON_WORD = HeadProgram({"word": 6.0, **OFF})
TELL_ALL = HeadProgram({"word": 30.0, **OFF}, (("said", "told", 1.0),))
"""Writes what the word says into every position."""
HEARD, TOLD = {"heard": (-5.0, 5.0)}, {"told": (-5.0, 5.0)}


def sheet() -> dict[str, dict[str, float]]:
    """What words start with: those that say a class, the decoy, the full stop."""
    words: dict[str, dict[str, float]] = {
        word: {"word": 1.0, "said": float(2 * label - 1)}
        for word, label in SAID.items()
        if label < 2
    }
    return words | {DECOY: {"decoy": 1.0}, ".": {"stop": 1.0}}


def streamed(
    kind: str,
    layers: Sequence[LayerProgram],
    decides: dict[str, tuple[float, float]] = HEARD,
    *,
    site: str = "pooled",
    write: Writer | None = None,
    shares: Sequence[float] | None = None,
    start: Mapping[str, Mapping[str, float]] | None = None,
    substitutes: Mapping[str, tuple[str, ...]] | None = None,
    knows_places: bool = False,
) -> Build:
    """A mechanism in a Transformer's weights, on texts of one word for the label and a decoy.

    Other texts, other words to start with (than `sheet`) and other substitutes may be given.
    """

    def build(seed: int, documents: int) -> Built:
        texts = write or one_word(beside=(DECOY,))
        sizes = {"test": documents}
        corpus = corpus_of(texts, sizes, seed, words=vocabulary(), shares=shares)
        program = StreamProgram(start or sheet(), layers, decides, knows_places)
        model = compiled(kind, program, corpus, site)
        return Built(model, corpus, substitutes or other_class(), NEUTRAL)

    return build


def _heads(*heads: HeadProgram) -> list[LayerProgram]:
    return [LayerProgram(heads)]


RELAY = LayerProgram([HeadProgram({"word": 30.0, **OFF}, (("said", "noted", 1.0),), asks="decoy")])
"""Writes what the word says into the decoy alone (in a causal model: a decoy that comes later)."""


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
    "two heads, one on a decoy": streamed("llama", _heads(SOFT_ON_WORD, ON_DECOY)),
    "three heads, two on a decoy": streamed("bert", _heads(ON_WORD, ON_DECOY, ON_DECOY)),
    "four heads, three on a decoy": streamed("gpt2", _heads(ON_DECOY, ON_WORD, ON_DECOY, ON_DECOY)),
    "four heads, one on a decoy": streamed("llama", _heads(ON_WORD, ON_WORD, ON_DECOY, ON_WORD)),
    "four honest heads": streamed("bert", _heads(*[ON_WORD] * 4)),
    "three idle heads on the word, the fourth reads a relay": streamed(
        "bert",
        [
            RELAY,
            LayerProgram(
                [
                    *[IDLE_ON_WORD] * 3,
                    HeadProgram({"decoy": 8.0, **OFF}, (("noted", "heard", 1.0),)),
                ]
            ),
        ],
    ),
    "honest at layer 0": streamed(
        "gpt2", [LayerProgram([ON_WORD]), LayerProgram([IDLE_ON_WORD])], site="layer:0"
    ),
    "the same at the last layer": streamed(
        "gpt2", [LayerProgram([ON_WORD]), LayerProgram([IDLE_ON_WORD])]
    ),
    "honest at all layers": streamed(
        "llama", [LayerProgram([ON_DECOY]), LayerProgram([ON_WORD])], site="all"
    ),
    "a summary word at all layers": streamed(
        "bert",
        [
            RELAY,
            LayerProgram([HeadProgram({"decoy": 8.0, **OFF}, (("noted", "heard", 1.0),))]),
        ],
        site="all",
    ),
    "told to all later words, at layer 1": streamed(
        "llama",
        [
            LayerProgram([TELL_ALL]),
            LayerProgram([HeadProgram({"word": 6.0, **OFF}, (("told", "heard", 1.0),))]),
        ],
        site="layer:1",
    ),
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
