"""Mechanisms of several heads and several layers, in the shapes of BERT, GPT-2 and Llama."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heedful.calibration.compiled_stream import (
    SPECIAL,
    HeadProgram,
    LayerProgram,
    StreamProgram,
    compiled,
)
from heedful.calibration.mechanism import NEUTRAL, Built, Mechanism, Writer, corpus_of, other_class
from heedful.calibration.mechanisms_words import DECOY, SAID, one_word, vocabulary

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
) -> Callable[[int, int], Built]:
    """A mechanism in a Transformer's weights, on texts of one word for the label and a decoy."""

    def build(seed: int, documents: int) -> Built:
        texts = write or one_word(beside=(DECOY,))
        sizes = {"test": documents}
        corpus = corpus_of(texts, sizes, seed, words=vocabulary(), shares=shares)
        program = StreamProgram(sheet(), layers, decides)
        return Built(compiled(kind, program, corpus, site), corpus, other_class(), NEUTRAL)

    return build


def _heads(*heads: HeadProgram) -> list[LayerProgram]:
    return [LayerProgram(heads)]


RELAY = LayerProgram([HeadProgram({"word": 30.0, **OFF}, (("said", "noted", 1.0),), asks="decoy")])
"""Writes what the word says into the decoy alone (in a causal model: a decoy that comes later)."""

MECHANISMS = [
    Mechanism(
        "two heads, one on a decoy",
        "Llama, one layer. One of two heads reads the word that decides; the other lies on a word "
        "that does nothing and hands nothing on. The mean row gives the word less than half.",
        "heads",
        "open",
        streamed("llama", _heads(SOFT_ON_WORD, ON_DECOY)),
    ),
    Mechanism(
        "three heads, two on a decoy",
        "BERT, one layer. One head of three reads the word that decides, two lie on a word that "
        "does nothing.",
        "heads",
        "open",
        streamed("bert", _heads(ON_WORD, ON_DECOY, ON_DECOY)),
    ),
    Mechanism(
        "four heads, three on a decoy",
        "GPT-2, one layer. One head of four reads the word that decides.",
        "heads",
        "open",
        streamed("gpt2", _heads(ON_DECOY, ON_WORD, ON_DECOY, ON_DECOY)),
    ),
    Mechanism(
        "four heads, one on a decoy",
        "Llama, one layer. Three heads of four read the word that decides, one lies on a word that "
        "does nothing.",
        "heads",
        "open",
        streamed("llama", _heads(ON_WORD, ON_WORD, ON_DECOY, ON_WORD)),
    ),
    Mechanism(
        "four honest heads",
        "BERT, one layer. All four heads read the word that decides.",
        "heads",
        "open",
        streamed("bert", _heads(*[ON_WORD] * 4)),
    ),
    Mechanism(
        "three idle heads on the word, the fourth reads a relay",
        "BERT, two layers. The lower layer tells the decoy what the word says. Above, three heads "
        "lie on the word and hand nothing on; the fourth reads the decoy. The mean row points at "
        "the word, and blocking it changes nothing.",
        "heads",
        "open",
        streamed(
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
    ),
    Mechanism(
        "honest at layer 0",
        "GPT-2, two layers, audited at layer:0, where every position reads the word that decides; "
        "the upper layer does nothing.",
        "layers and sites",
        "open",
        streamed("gpt2", [LayerProgram([ON_WORD]), LayerProgram([IDLE_ON_WORD])], site="layer:0"),
    ),
    Mechanism(
        "the same at the last layer",
        "The same GPT-2 audited at its last row: attention lies on the word that decides, but the "
        "decision was made a layer below and reaches the head through the residual stream.",
        "layers and sites",
        "open",
        streamed("gpt2", [LayerProgram([ON_WORD]), LayerProgram([IDLE_ON_WORD])]),
    ),
    Mechanism(
        "honest at all layers",
        "Llama, two layers, audited at all. The lower layer attends to the decoy and hands nothing "
        "on; the upper one reads the word that decides.",
        "layers and sites",
        "open",
        streamed("llama", [LayerProgram([ON_DECOY]), LayerProgram([ON_WORD])], site="all"),
    ),
    Mechanism(
        "a summary word at all layers",
        "BERT, two layers, audited at all. The lower layer tells the decoy what the word says and "
        "the upper one reads the decoy. Everything passes through attention, but the row that is "
        "shown lies on the decoy.",
        "layers and sites",
        "open",
        streamed(
            "bert",
            [
                RELAY,
                LayerProgram([HeadProgram({"decoy": 8.0, **OFF}, (("noted", "heard", 1.0),))]),
            ],
            site="all",
        ),
    ),
    Mechanism(
        "told to all later words, at layer 1",
        "Llama, two layers, audited at layer:1, which attends to the word that decides and hands "
        "on what every later word has been told below: half of the words carry it too.",
        "layers and sites",
        "open",
        streamed(
            "llama",
            [
                LayerProgram([TELL_ALL]),
                LayerProgram([HeadProgram({"word": 6.0, **OFF}, (("told", "heard", 1.0),))]),
            ],
            site="layer:1",
        ),
    ),
]
