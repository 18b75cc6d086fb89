"""Documents whose right reason is known: every unit says a class, and marked units decide.

A unit is a word, or a sentence around one, with a *role*, a class it says and a strength:

* `plain` says its class with a strength of 0.5 to 1.5, `weak` with 0.1;
* `marked` is a plain unit with a mark on it: the label is the class that the marked units say, and
  they are the evidence;
* `decoy` says nothing.

What the units say is drawn before the label is, and the label is independent of it: to count what
units say, without looking at the marks, is to guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from heedful.corpora.documents import Corpus, Document
from heedful.corpora.vocabulary import SPECIALS, Vocabulary
from heedful.errors import InputError, unknown
from heedful.runs.randomness import numpy_generator

LEVELS = 20
"""Strengths of plain and marked words: 0.5 to 1.5 in so many equal steps."""
WEAK = 0.1
ROLES = ("plain", "marked", "weak")
DECOYS = ("none", "anywhere", "end", "after")
EMPTY, DECOY = "so", "indeed"
"""A word that fills sentences, and the word that attention may be drawn to."""


class Unit(NamedTuple):
    """What one word stands for."""

    role: str
    """plain, marked, weak, decoy or empty."""
    says: int = -1
    """Class it speaks for; -1 for none."""
    level: int = 0

    @property
    def strength(self) -> float:
        """How loud it speaks."""
        if self.says < 0:
            return 0.0
        return WEAK if self.role == "weak" else 0.5 + self.level / (LEVELS - 1)

    @property
    def word(self) -> str:
        """How it is written."""
        if self.says < 0:
            return {"decoy": DECOY, "empty": EMPTY}[self.role]
        return f"{self.role}-{self.says}-{self.level}"


@dataclass(frozen=True)
class Shape:
    """How the documents of a known-answer corpus are built."""

    classes: int = 2
    units: tuple[int, int] = (8, 14)
    """Fewest and most units."""
    marks: int = 1
    """Marked units."""
    weak: float = 0.0
    """Share of the units that are weak; marked ones never are."""
    decoy: str = "none"
    """Where a decoy stands: none, anywhere, at the end, or right after the first mark."""
    is_marked_first: bool = False
    """Whether a document starts with its marked units."""
    words: int = 1
    """Words in a unit: with more than one, units are sentences."""

    def __post_init__(self) -> None:
        if self.decoy not in DECOYS:
            raise unknown("place of a decoy", self.decoy, DECOYS)
        if self.units[0] // self.classes < self.marks:
            raise InputError(
                f"{self.marks} marked units of one class need documents of at least "
                f"{self.marks * self.classes} units, got {self.units[0]}."
            )


def words_of(classes: int) -> dict[str, Unit]:
    """Every word of a corpus of so many classes and what it stands for."""
    units = [
        Unit(role, says, level)
        for role in ROLES
        for says in range(classes)
        for level in range(1 if role == "weak" else LEVELS)
    ]
    return {unit.word: unit for unit in [*units, Unit("decoy"), Unit("empty")]}


def vocabulary_of(classes: int) -> Vocabulary:
    """The words of a corpus of so many classes."""
    return Vocabulary(SPECIALS + tuple(words_of(classes)))


def known(shape: Shape, sizes: Mapping[str, int], seed: int = 0) -> Corpus:
    """So many documents of a shape in each split, the same for the same seed."""
    splits = {split: list(_documents(shape, split, size, seed)) for split, size in sizes.items()}
    classes = tuple(f"class {index}" for index in range(shape.classes))
    return Corpus(name="known", classes=classes, splits=splits, tokeniser="whitespace")


def _documents(shape: Shape, split: str, size: int, seed: int) -> Iterator[Document]:
    rng = numpy_generator(seed, "known", split)
    # Labels as even as they get, so that chance is 1 / classes.
    labels = rng.permutation(np.arange(size) % shape.classes)
    for number, label in enumerate(labels.tolist()):
        units = _units(shape, label, rng)
        yield _written(f"known/{seed}/{split}/{number}", shape, units, label, rng)


def _units(shape: Shape, label: int, rng: np.random.Generator) -> list[Unit]:
    """The units of one document in order."""
    count = int(rng.integers(shape.units[0], shape.units[1] + 1))
    classes = np.arange(shape.classes)
    rest = rng.choice(classes, count % shape.classes, replace=False)
    says = rng.permutation(np.concatenate([np.repeat(classes, count // shape.classes), rest]))
    is_weak = _weak(shape, says, rng)
    levels = rng.integers(0, LEVELS, count)
    # All that a unit says is settled before the label has a say: only marks depend on it.
    units = [
        Unit("weak", said) if weak else Unit("plain", said, level)
        for said, weak, level in zip(says.tolist(), is_weak.tolist(), levels.tolist(), strict=True)
    ]
    alike = [n for n, unit in enumerate(units) if unit.role == "plain" and unit.says == label]
    for place in rng.choice(alike, shape.marks, replace=False).tolist():
        units[place] = units[place]._replace(role="marked")
    if shape.is_marked_first:
        units.sort(key=lambda unit: unit.role != "marked")
    if shape.decoy != "none":
        first = next((i for i, unit in enumerate(units) if unit.role == "marked"), 0)
        places = {"anywhere": int(rng.integers(0, count + 1)), "end": count, "after": first + 1}
        units.insert(places[shape.decoy], Unit("decoy"))
    return units


def _weak(
    shape: Shape, says: Int[np.ndarray, " unit"], rng: np.random.Generator
) -> Bool[np.ndarray, " unit"]:
    """Which units are weak: of each class the same share, but never so many that marks lack."""
    is_weak = np.zeros(len(says), dtype=bool)
    for said in np.unique(says):
        alike = np.flatnonzero(says == said)
        count = min(int(shape.weak * len(alike)), len(alike) - shape.marks)
        is_weak[rng.choice(alike, max(count, 0), replace=False)] = True
    return is_weak


def _written(
    id: str, shape: Shape, units: list[Unit], label: int, rng: np.random.Generator
) -> Document:
    """The document in words: each unit alone, or somewhere in a sentence of empty words."""
    empty = Unit("empty")
    words: list[Unit] = []
    for unit in units:
        place = int(rng.integers(0, shape.words))
        words += [empty] * place + [unit] + [empty] * (shape.words - 1 - place)
    tokens = tuple(word.word for word in words)
    ends = np.cumsum([len(token) + 1 for token in tokens]) - 1
    starts = ends - [len(token) for token in tokens]
    return Document(
        id=id,
        text=" ".join(tokens),
        tokens=tokens,
        spans=np.stack([starts, ends], 1).astype(np.int32),
        label=label,
        sentence=np.repeat(np.arange(len(units), dtype=np.int32), shape.words),
        evidence=np.array([word.role == "marked" for word in words]),
    )
