"""Blind mechanisms of heads, layers and places in Transformers: undone, flagged, sharpened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from heedful.calibration.blind_texts import VOICES, among, transformed
from heedful.calibration.compiled_stream import (
    LONGEST,
    ONE,
    PLACE,
    HeadProgram,
    LayerProgram,
    NeuronProgram,
)
from heedful.calibration.mechanism import (
    NEUTRAL,
    Build,
    Text,
    Writer,
    fillers,
    other_class,
    says,
    verdict,
)
from heedful.calibration.mechanisms_composition import both_kinds
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

BANG, QUERY = "!", "?"
UNDO = HeadProgram(ON_WORD.scores, (("said", "heard", -1.0),))
UNDO_HALF = HeadProgram(ON_WORD.scores, (("said", "heard", -0.5),))
UNDO_TWICE = HeadProgram(ON_WORD.scores, (("said", "heard", -2.0),))
BOTH = {"heard": (-5.0, 5.0), "told": (-5.0, 5.0)}


def _plain(
    kind: str,
    layers: Sequence[LayerProgram],
    decides: Mapping[str, Sequence[float]] = HEARD,
    *,
    write: Writer | None = None,
    site: str = "pooled",
) -> Build:
    """A Transformer on texts of one word for the label and a decoy."""
    texts = write or one_word(beside=(DECOY,))
    return transformed(kind, texts, sheet(), layers, decides, VOICES, site=site)


def _flagging() -> Build:
    """Attention goes to `!` or to `?` by what was told below, and hands on which of them it is."""
    start = sheet() | {
        BANG: {"bang": 1.0, "stands": 1.0},
        QUERY: {"query": 1.0, "stands": -1.0},
    }
    flags = [
        NeuronProgram({"told": 1.0, "bang": 2.0, ONE: -2.0}, {"flag": 1.0}),
        NeuronProgram({"told": -1.0, "query": 2.0, ONE: -2.0}, {"flag": 1.0}),
    ]
    top = HeadProgram({"flag": 8.0, **OFF}, (("stands", "heard", 1.0),))
    layers = [LayerProgram([TELL_ALL], flags), LayerProgram([top])]
    substitutes = VOICES | {BANG: (NEUTRAL[0],), QUERY: (NEUTRAL[0],)}
    return transformed("bert", one_word(beside=(BANG, QUERY)), start, layers, HEARD, substitutes)


def _witness(loud: float, share: float) -> Build:
    """The voice is attended; a verdict, told below, is so loud and stands in a share of texts."""

    def draw(rng: np.random.Generator, label: int) -> list[str]:
        if rng.random() >= share:
            return [says(label, rng)]
        return [says(int(rng.integers(2)), rng), verdict(label, rng)]

    told = HeadProgram({"given": 30.0, **OFF}, (("gave", "told", 1.0),))
    layers = [LayerProgram([told]), LayerProgram([ON_WORD])]
    decides = {"heard": (-3.0, 3.0), "told": (-3.0 * loud, 3.0 * loud)}
    return transformed("bert", among(draw), both_kinds(), layers, decides, other_class())


def _halves(rng: np.random.Generator, label: int) -> Text:
    """Six words with a word for the label, six with one for either class."""
    first, second = fillers(rng, 6), fillers(rng, 6)
    place, other = (int(rng.integers(5)), int(rng.integers(1, 6)))
    first[place] = says(label, rng)
    second[other] = says(int(rng.integers(2)), rng)
    return Text([*first, *second], label, [place])


def _first_half(late_score: float) -> Build:
    """Words from the seventh on count for nothing; their score is as given, others have 7."""
    after = {PLACE: 10.0 * LONGEST, ONE: -50.0}  # 10 at the seventh word, 0 at the sixth
    beyond = {PLACE: 10.0 * LONGEST, ONE: -60.0}
    late = [NeuronProgram(after, {"late": 0.1}), NeuronProgram(beyond, {"late": -0.1})]
    counted = [
        NeuronProgram({"said": sign, "late": -2.0}, {"counts": sign}) for sign in (1.0, -1.0)
    ]
    lit = [NeuronProgram({"word": 1.0, "late": 1.0, ONE: -1.0}, {"lit": 1.0})]
    top = HeadProgram({"word": 7.0, "lit": late_score - 7.0}, (("counts", "heard", 1.0),))
    idle = HeadProgram({})
    layers = [LayerProgram([idle], late), LayerProgram([idle], [*counted, *lit])]
    return transformed(
        "gpt2",
        _halves,
        sheet(),
        [*layers, LayerProgram([top])],
        {"heard": (-20.0, 20.0)},
        VOICES,
        knows_places=True,
    )


def _sharpening(least: int, most: int) -> Build:
    """The score of the word grows with the place that reads: short texts are seen evenly."""
    top = HeadProgram({"word": 10.0}, (("said", "heard", 1.0),), asks=PLACE)
    return transformed(
        "gpt2",
        one_word(others=(least, most)),
        sheet(),
        [LayerProgram([top])],
        {"heard": (-60.0, 60.0)},
        VOICES,
        knows_places=True,
    )


def _lone(share: float) -> Build:
    """Texts of one word; that share of what it says goes through the residual stream."""

    def write(rng: np.random.Generator, label: int) -> Text:
        return Text([says(label, rng)], label, [0])

    through, around = 5.0 * (1 - share), 5.0 * share
    decides = {"heard": (-through, through), "said": (-around, around)}
    return _plain("gpt2", [LayerProgram([ON_WORD])], decides, write=write)


def _last_is_it(share: float) -> Build:
    """The word that decides comes last, where the model reads; that share stays there."""

    def write(rng: np.random.Generator, label: int) -> Text:
        words = [*fillers(rng, int(rng.integers(8, 14))), says(label, rng)]
        return Text(words, label, [len(words) - 1])

    through, around = 5.0 * (1 - share), 5.0 * share
    decides = {"heard": (-through, through), "said": (-around, around)}
    return _plain("llama", [LayerProgram([ON_WORD])], decides, write=write)


def _copied_below() -> Build:
    """Below, the last word with a voice before it copies it; above, the copy is read there."""
    copy = HeadProgram({"word": 30.0}, (("said", "copied", 1.0),), asks="given")
    top = HeadProgram({"given": 4.2, "word": 6.0}, (("copied", "heard", 1.0),))

    def draw(rng: np.random.Generator, label: int) -> list[str]:
        return [says(label, rng), verdict(int(rng.integers(2)), rng)]

    layers = [LayerProgram([copy]), LayerProgram([top])]
    return transformed(
        "llama",
        among(draw, in_order=True),
        both_kinds(),
        layers,
        {"heard": (-40.0, 40.0)},
        other_class(),
    )


def _taken_turns(on: Sequence[str], site: str) -> Build:
    """Voices are read in the lower layer, verdicts in the upper one; a text has one of them."""

    def draw(rng: np.random.Generator, label: int) -> list[str]:
        return [says(label, rng) if rng.random() < 0.5 else verdict(label, rng)]

    both = {"word": 6.0, "given": 6.0, **OFF}
    hands = {"lower": (("said", "heard", 1.0),), "upper": (("gave", "heard", 1.0),)}
    layers = [LayerProgram([HeadProgram(both, hands[name])]) for name in on]
    return transformed("bert", among(draw), both_kinds(), layers, HEARD, other_class(), site=site)


def _majority_of_heads(scores: Sequence[float]) -> Build:
    """Heads read a voice with weights that add up to the decision; all lie on it."""
    heads = [HeadProgram(ON_WORD.scores, (("said", "heard", times),)) for times in scores]
    return _plain("bert", [LayerProgram(heads)])


MECHANISMS: dict[str, Build] = {
    "a head that undoes half": _majority_of_heads((1.0, -0.5)),
    "a head that undoes another, decided below": _plain(
        "bert", [LayerProgram([TELL_ALL]), LayerProgram([ON_WORD, UNDO])], BOTH
    ),
    "attention argues against the decision": _plain(
        "llama",
        [LayerProgram([TELL_ALL]), LayerProgram([UNDO_HALF])],
        BOTH,
        write=one_word(),
    ),
    "attention turns around what it was told": _plain(
        "bert",
        [LayerProgram([TELL_ALL]), LayerProgram([UNDO_TWICE])],
        {"heard": (5.0, -5.0), "told": (5.0, -5.0)},
    ),
    "attention as a flag": _flagging(),
    "a louder witness who is not seen": _witness(1.5, 1.0),
    "a louder witness in half of the texts": _witness(1.5, 0.5),
    "only the first six words count, and are seen": _first_half(-3.0),
    "only the first six words count, the later are seen": _first_half(9.2),
    "attention sharpens with the length of the text": _sharpening(5, 40),
    "texts of one word, decided beside attention": _lone(0.9),
    "the last word decides by being the last": _last_is_it(0.8),
    "the last word decides by being attended": _last_is_it(0.2),
    "the voice is seen, its copy is read": _copied_below(),
    "layers take turns, all audited": _taken_turns(("lower", "upper"), "all"),
    "layers take turns, the upper audited": _taken_turns(("lower", "upper"), "pooled"),
    "decided in the lower layer, a decoy above, all audited": _plain(
        "gpt2", [LayerProgram([ON_WORD]), LayerProgram([ON_DECOY])], site="all"
    ),
    "decided in the lower layer, the word above, all audited": _plain(
        "gpt2", [LayerProgram([ON_WORD]), LayerProgram([IDLE_ON_WORD])], site="all"
    ),
}
