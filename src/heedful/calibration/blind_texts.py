"""How the blind mechanisms are put together: texts of planted words, and three kinds of models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from heedful.calibration.compiled_stream import LayerProgram, StreamProgram, compiled
from heedful.calibration.compiled_words import Feature, weighing, windowed
from heedful.calibration.mechanism import (
    NEUTRAL,
    SAYING,
    Build,
    Built,
    Text,
    Writer,
    corpus_of,
    fillers,
    scattered,
)
from heedful.calibration.mechanisms_words import vocabulary
from heedful.corpora.encoded import EncodedCorpus

Substitutes = Mapping[str, tuple[str, ...]]
Draw = Callable[[np.random.Generator, int], Sequence[str]]
"""The planted words of a text of a label."""


def counterparts(*lists: Sequence[str], neutral: bool = True) -> dict[str, tuple[str, ...]]:
    """Words of the lists may stand for those of the other lists with their number."""
    return {
        word: (
            *(other[number % len(other)] for other in lists if other is not own),
            *((NEUTRAL[0],) if neutral else ()),
        )
        for own in lists
        for number, word in enumerate(own)
    }


VOICES = counterparts(*SAYING[:2])
"""Words that say one of two classes, each with its counterpart and a neutral word."""
NOTHING = [0.0, 0.0]
"""What a feature says of two classes that is there for its score alone."""


def one_of(words: Sequence[str], rng: np.random.Generator) -> str:
    """A word of a list."""
    return str(rng.choice(list(words)))


def shuffled(words: Iterable[str], rng: np.random.Generator) -> list[str]:
    """The words in any order."""
    return [str(word) for word in rng.permutation(list(words))]


def among(draw: Draw, others: tuple[int, int] = (7, 12), *, in_order: bool = False) -> Writer:
    """Texts with the planted words (in any order, or in theirs) scattered among neutral ones."""

    def write(rng: np.random.Generator, label: int) -> Text:
        kept = list(draw(rng, label))
        kept = kept if in_order else shuffled(kept, rng)
        words, places = scattered(rng, kept, fillers(rng, int(rng.integers(*others))))
        return Text(words, label, places)

    return write


def amid(draw: Draw) -> Writer:
    """Texts with the planted words in one piece amid neutral ones, three or more on either side."""

    def write(rng: np.random.Generator, label: int) -> Text:
        before, after = (fillers(rng, int(rng.integers(3, 7))) for _ in range(2))
        phrase = draw(rng, label)
        places = range(len(before), len(before) + len(phrase))
        return Text([*before, *phrase, *after], label, places)

    return write


def _corpus(
    write: Writer,
    documents: int,
    seed: int,
    substitutes: Substitutes,
    more: Iterable[str],
    classes: int,
    shares: Sequence[float] | None,
) -> EncodedCorpus:
    replaced = [word for own, others in substitutes.items() for word in (own, *others)]
    words = (*vocabulary(classes), *replaced, *more)
    return corpus_of(write, {"test": documents}, seed, words=words, classes=classes, shares=shares)


def tabled(
    write: Writer,
    scores: Mapping[str, float],
    said: Mapping[str, Sequence[float]],
    substitutes: Substitutes,
    *,
    shares: Sequence[float] | None = None,
    bias: Sequence[float] | None = None,
    within: Mapping[str, float] | None = None,
) -> Build:
    """A table of words with substitutes of its own; as many classes as words say."""

    def build(seed: int, documents: int) -> Built:
        classes = len(next(iter(said.values())))
        more = (*scores, *said)
        corpus = _corpus(write, documents, seed, substitutes, more, classes, shares)
        model = weighing(corpus, scores, said, bias=bias, within=within)
        return Built(model, corpus, substitutes, NEUTRAL)

    return build


def convolved(write: Writer, features: Sequence[Feature], substitutes: Substitutes) -> Build:
    """A convolution with substitutes of its own."""

    def build(seed: int, documents: int) -> Built:
        more = [word for feature in features for word, _ in feature.taps]
        corpus = _corpus(write, documents, seed, substitutes, more, 2, None)
        return Built(windowed(corpus, features), corpus, substitutes, NEUTRAL)

    return build


def transformed(
    kind: str,
    write: Writer,
    start: Mapping[str, Mapping[str, float]],
    layers: Sequence[LayerProgram],
    decides: Mapping[str, Sequence[float]],
    substitutes: Substitutes,
    *,
    site: str = "pooled",
    knows_places: bool = False,
) -> Build:
    """A Transformer's program with words and substitutes of its own; classes as it decides."""

    def build(seed: int, documents: int) -> Built:
        classes = len(next(iter(decides.values())))
        corpus = _corpus(write, documents, seed, substitutes, start, classes, None)
        program = StreamProgram(start, layers, decides, knows_places)
        return Built(compiled(kind, program, corpus, site), corpus, substitutes, NEUTRAL)

    return build
