"""Mechanisms that go around attention: residual streams, told words, relays, rationales, sinks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    Built,
    Mechanism,
    Text,
    Writer,
    corpus_of,
    other_class,
)
from heedful.calibration.mechanisms_heads import OFF, ON_WORD, RELAY, TELL_ALL, sheet, streamed
from heedful.calibration.mechanisms_words import GIVEN, among_voices, one_word, vocabulary

RARE = (0.95, 0.05)


def _around(share: float, loud: float = 5.0) -> dict[str, tuple[float, float]]:
    """What was told below counts for that share of the decision."""
    through = loud * (1 - share)
    return {"heard": (-through, through), "told": (-loud * share, loud * share)}


def _for_some(words: int, shares: Sequence[float] | None = None) -> Callable[[int, int], Built]:
    """Only the first words of each list are told to all others, below; they then decide."""
    start = sheet()
    for label, listed in enumerate(SAYING[:2]):
        for word in listed[:words]:
            start[word]["openly"] = float(2 * label - 1)
    told = HeadProgram({"word": 30.0, **OFF}, (("openly", "told", 1.0),))
    program = StreamProgram(start, [LayerProgram([told]), LayerProgram([ON_WORD])], _around(0.8))

    def build(seed: int, documents: int) -> Built:
        sizes = {"test": documents}
        corpus = corpus_of(one_word(), sizes, seed, words=vocabulary(), shares=shares)
        return Built(compiled("gpt2", program, corpus), corpus, other_class(), NEUTRAL)

    return build


def _told(kind: str, times: int) -> Callable[[int, int], Built]:
    """Every word is told below; attention lies on the word and hands on what it was told."""
    top = HeadProgram({"word": 6.0, **OFF}, (("told", "heard", 1.0),))
    layers = [LayerProgram([TELL_ALL]), LayerProgram([top])]
    return streamed(kind, layers, write=one_word(times=times))


def _rationalised(kind: str, times: int) -> Callable[[int, int], Built]:
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
    program = StreamProgram(start, layers, {"heard": (-5.0, 5.0)})

    def build(seed: int, documents: int) -> Built:
        write = among_voices(times=times)
        corpus = corpus_of(write, {"test": documents}, seed, words=vocabulary())
        verdicts = {word: other for word, other in other_class().items() if word in GIVEN}
        return Built(compiled(kind, program, corpus), corpus, verdicts, NEUTRAL)

    return build


def _with_stops(rng: np.random.Generator, label: int) -> Text:
    """Texts with a full stop at the end and one within."""
    text = one_word(beside=(".",))(rng, label)
    return text._replace(words=[*text.words, "."])


def _first_word_sink() -> Callable[[int, int], Built]:
    """Attention lies on whatever word comes first; the rest picks the word that decides."""
    first = NeuronProgram({ONE: 1.0, PLACE: -float(LONGEST)}, {"first": 1.0})
    top = HeadProgram({"first": 8.0, "word": 6.5}, (("said", "heard", 1.0),))
    layers = [LayerProgram([HeadProgram({})], [first]), LayerProgram([top])]
    program = StreamProgram(sheet(), layers, {"heard": (-5.0, 5.0)}, knows_places=True)

    def write(rng: np.random.Generator, label: int) -> Text:
        text = one_word()(rng, label)
        return Text(["table", *text.words], label, [place + 1 for place in text.evidence])

    def build(seed: int, documents: int) -> Built:
        corpus = corpus_of(write, {"test": documents}, seed, words=vocabulary())
        return Built(compiled("gpt2", program, corpus), corpus, other_class(), NEUTRAL)

    return build


def _sink(scores: dict[str, float], write: Writer) -> Callable[[int, int], Built]:
    head = HeadProgram(scores, (("said", "heard", 1.0),))
    return streamed("bert", [LayerProgram([head])], write=write)


_SHAPES = ("bert", "own", "llama")
_TIMES = ("once", "twice", "three times")

MECHANISMS = [
    *(
        Mechanism(
            f"residual stream with {share:.2f} of the effect",
            "GPT-2, two layers, audited at the last row, which lies on the word that decides and "
            f"hands on what it says. {share:.0%} of the effect comes from the layer below, through "
            "the residual stream.",
            "bypass",
            "open",
            streamed("gpt2", [LayerProgram([TELL_ALL]), LayerProgram([ON_WORD])], _around(share)),
            dial="share of the residual stream",
        )
        for share in (0.1, 0.3, 0.45, 0.6, 0.75, 0.95)
    ),
    *(
        Mechanism(
            f"bypass for {words} of six words",
            f"As above; for {words} of the six words of each class the layer below has told the "
            "reader, which counts for most of the effect; the others go through attention alone.",
            "bypass",
            "open",
            _for_some(words),
            dial="share of words that are bypassed",
        )
        for words in (1, 2, 3, 4, 5)
    ),
    Mechanism(
        "bypass in five texts of six, at 95 to 5",
        "The same for five words of six, and 95 % of the texts are of one class.",
        "imbalance",
        "open",
        _for_some(5, RARE),
    ),
    Mechanism(
        "bypassed and saturated",
        "Nine tenths of the effect come through the residual stream; logits are 30 apart.",
        "saturation",
        "open",
        streamed("bert", [LayerProgram([TELL_ALL]), LayerProgram([ON_WORD])], _around(0.9, 15.0)),
    ),
    *(
        Mechanism(
            f"told to all words, evidence {_TIMES[times - 1]}",
            f"The layer below tells every word what the evidence says ({_TIMES[times - 1]} in the "
            "text); attention lies on the evidence, and any other word would hand on the same.",
            "redundancy, told",
            "open",
            _told(shape, times),
        )
        for times, shape in ((1, "bert"), (2, "own"), (3, "bert"))
    ),
    *(
        Mechanism(
            f"rationalised, evidence {_TIMES[times - 1]}",
            f"A layer below reads the verdict ({_TIMES[times - 1]} in the text); attention then "
            "lies on words that happen to agree with it, which change nothing.",
            "redundancy, rationalised",
            "open",
            _rationalised(shape, times),
        )
        for times, shape in ((1, "own"), (2, "bert"), (3, "own"))
    ),
    Mechanism(
        "relayed to a decoy",
        "BERT. The layer below tells a word that says nothing, and that word alone is attended.",
        "relays",
        "open",
        streamed(
            "bert",
            [RELAY, LayerProgram([HeadProgram({"decoy": 8.0, **OFF}, (("noted", "heard", 1.0),))])],
        ),
    ),
    Mechanism(
        "relayed, with the word a distant second",
        "Our own Transformer. The decoy that was told has nine tenths of the attention, and the "
        "word itself, which hands nothing on, one tenth: a ranking finds it, the eye does not.",
        "relays",
        "open",
        streamed(
            "own",
            [
                RELAY,
                LayerProgram(
                    [HeadProgram({"decoy": 8.2, "word": 6.0, **OFF}, (("noted", "heard", 1.0),))]
                ),
            ],
        ),
    ),
    Mechanism(
        "attention on the separator, the rest honest",
        "BERT. [SEP] has three quarters of the attention and hands nothing on; what words get lies "
        "on the word that decides. Among words, attention points at it.",
        "separators",
        "open",
        _sink({"word": 6.0, SPECIAL: 6.5}, one_word()),
    ),
    Mechanism(
        "attention on full stops",
        "BERT. Two full stops have nine tenths of the attention and say nothing; the rest picks "
        "the word that decides.",
        "separators",
        "open",
        _sink({"word": 6.0, "stop": 7.5, **OFF}, _with_stops),
    ),
    Mechanism(
        "attention on the first word",
        "GPT-2. Whatever word comes first takes four fifths of the attention; the rest picks the "
        "word that decides.",
        "separators",
        "open",
        _first_word_sink(),
    ),
]
