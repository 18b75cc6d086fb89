"""A mechanism: a way to decide, as a program, with the words that may stand in each other's place.

What a right answer needs and no audit gives: which words can matter at all, and what else could
have been written in their place (`truth` takes it from there).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from heedful.corpora.documents import Corpus, Document
from heedful.corpora.encoded import EncodedCorpus, encode
from heedful.corpora.vocabulary import SPECIALS, Vocabulary
from heedful.runs.randomness import numpy_generator

if TYPE_CHECKING:  # the room of jobs knows audits, and no right answer may
    from heedful.jobs.decider import Decider

Part = Literal["open", "blind", "opponent"]
"""`open` mechanisms were known when the first rule was made; `blind` ones were written afterwards;
`opponent` ones after the second was frozen, by somebody who had not seen it."""

SAYING = (
    ("bad", "awful", "poor", "dreadful", "dull", "weak"),
    ("good", "great", "fine", "superb", "bright", "strong"),
    ("late", "slow", "tardy", "overdue", "lagging", "behind"),
    ("cheap", "costly", "dear", "priced", "bargain", "fee"),
    ("loud", "noisy", "quiet", "silent", "hushed", "blaring"),
)
"""Words that say a class, by class."""
VERDICTS = (
    ("avoid", "shun", "refuse", "skip"),
    ("choose", "take", "accept", "keep"),
    ("delay", "wait", "defer", "postpone"),
    ("buy", "order", "purchase", "pay"),
    ("report", "complain", "object", "protest"),
)
"""Words that give a verdict, by class, for texts in which others merely say something."""
NEUTRAL = ("table", "chair", "window", "river", "paper", "stone", "street", "garden")
"""Words that say nothing."""


class Built(NamedTuple):
    """A mechanism made: a model with its texts, and what may stand for what."""

    model: Decider
    corpus: EncodedCorpus
    substitutes: Mapping[str, tuple[str, ...]]
    """Every word that can matter, with the words that may stand in its place."""
    neutral: tuple[str, ...]
    """Words that may stand for every other word of the texts."""


Build = Callable[[int, int], Built]
"""Makes it from a seed and a number of test documents."""


@dataclass(frozen=True)
class Mechanism:
    """One observation of the calibration."""

    name: str
    build: Build
    part: Part
    """The section of `mechanisms.toml` that it stands in."""
    kind: str
    """heads, decoys, bypass, redundancy, many words, composition, …"""
    paragraph: str
    """What decides in it, so that a stranger can predict the right word."""
    dial: str = ""
    """The dial that it is a step of: all steps of one dial are one observation."""


class Text(NamedTuple):
    """What a document is made of."""

    words: Sequence[str]
    label: int
    evidence: Sequence[int] = ()
    """Positions of the words that carry the label, as planted."""
    sentence: Sequence[int] | None = None
    """Sentence of each word; without it every word is a unit."""


Writer = Callable[[np.random.Generator, int], Text]
"""Writes a text of a label."""


def corpus_of(
    write: Writer,
    sizes: Mapping[str, int],
    seed: int,
    *,
    words: Iterable[str],
    classes: int = 2,
    shares: Sequence[float] | None = None,
) -> EncodedCorpus:
    """So many texts in each split, labels as even as they get or by `shares`."""
    splits = {}
    for split, size in sizes.items():
        rng = numpy_generator(seed, "mechanism", split)
        cuts = np.cumsum(shares or [1 / classes] * classes)
        labels = np.searchsorted(cuts, (np.arange(size) + 0.5) / size, side="right")
        splits[split] = [
            _document(f"{split}/{seed}/{number}", write(rng, int(label)))
            for number, label in enumerate(rng.permutation(np.minimum(labels, classes - 1)))
        ]
    names = tuple(f"class {index}" for index in range(classes))
    vocabulary = Vocabulary(SPECIALS + tuple(dict.fromkeys(words)))
    return encode(Corpus("mechanism", names, splits, tokeniser="whitespace"), vocabulary)


def _document(id: str, text: Text) -> Document:
    ends = np.cumsum([len(word) + 1 for word in text.words]) - 1
    starts = ends - [len(word) for word in text.words]
    sentence = range(len(text.words)) if text.sentence is None else text.sentence
    return Document(
        id=id,
        text=" ".join(text.words),
        tokens=tuple(text.words),
        spans=np.stack([starts, ends], 1).astype(np.int32),
        label=text.label,
        sentence=np.asarray(sentence, dtype=np.int32),
        evidence=np.isin(np.arange(len(text.words)), text.evidence),
    )


def says(label: int, rng: np.random.Generator) -> str:
    """A word for a class."""
    return str(rng.choice(SAYING[label]))


def fillers(rng: np.random.Generator, count: int) -> list[str]:
    """So many words that say nothing."""
    return [str(word) for word in rng.choice(NEUTRAL, count)]


def scattered(
    rng: np.random.Generator, kept: Sequence[str], among: Sequence[str]
) -> tuple[list[str], list[int]]:
    """The kept words, in their order, at random places among the others; and these places."""
    places = np.sort(rng.choice(len(kept) + len(among), len(kept), replace=False))
    rest, order = iter(among), iter(kept)
    chosen = set(places.tolist())
    words = [next(order) if i in chosen else next(rest) for i in range(len(kept) + len(among))]
    return words, places.tolist()


def verdict(label: int, rng: np.random.Generator) -> str:
    """A word that gives a verdict."""
    return str(rng.choice(VERDICTS[label]))


def other_class(classes: int = 2) -> dict[str, tuple[str, ...]]:
    """Every word of a class, with its counterpart of the next class and a neutral word."""
    return {
        word: (lists[(label + 1) % classes][number], NEUTRAL[0])
        for lists in (SAYING, VERDICTS)
        for label in range(classes)
        for number, word in enumerate(lists[label])
    }
