"""Mechanisms of several heads and several layers, in the shapes of BERT, GPT-2 and Llama."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heedful.calibration.compiled_stream import (
    SPECIAL,
    HeadProgram,
    LayerProgram,
    StreamProgram,
    compiled,
)
from heedful.calibration.mechanism import NEUTRAL, Build, Built, Writer, corpus_of, other_class
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
}
