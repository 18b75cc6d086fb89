"""Bags of made-up words in which each word's tie to a class is known.

See docs/studies/polarity.md, "Made-up words".

Every instance has ten distinct neutral words and two distinct words of one class, in random order:

data1       two classes, 6,000 instances each: clean
data2       the same, but a tenth of each class has both its class words from the other class
three       three classes, 4,000 instances each
ratio-A-B   two classes with A positive for every B negative instances, 12,000 in total
"""

from __future__ import annotations

import re

import numpy as np
from jaxtyping import Int

from heedful.corpora.documents import Corpus, Document
from heedful.corpora.entries import CATALOGUE
from heedful.errors import InputError, unknown
from heedful.runs.randomness import numpy_generator

TASKS = CATALOGUE["synthetic"].tasks
"""The sets of the polarity study; any other ratio may be asked for as well."""
NEUTRAL_WORDS, CLASS_WORDS = 10, 2
"""Words of each kind in an instance."""
NOISE = 0.1
"""Share of the instances of `data2` whose class words speak for the other class."""


def synthetic(
    task: str = "data1",
    seed: int = 0,
    *,
    instances: int = 12_000,
    neutral: int = 1_000,
    polar: int = 50,
    noise: float | None = None,
) -> Corpus:
    """The set of that name: `instances` for training, a sixth of that for dev and for test.

    `neutral` and `polar` are the numbers of neutral words and of words of each class; `noise` is
    the share of instances with the words of another class (0.1 in data2, else 0).
    """
    shares, classes = _shares(task)
    noise = (NOISE if task == "data2" else 0.0) if noise is None else noise
    if not 0 <= noise <= 1:
        raise InputError(f"noise is a share from 0 to 1, got {noise}.")
    if instances < len(classes):
        raise InputError(f"instances must be at least {len(classes)}, got {instances}.")
    if neutral < NEUTRAL_WORDS or polar < CLASS_WORDS:
        raise InputError(
            f"an instance has {NEUTRAL_WORDS} neutral and {CLASS_WORDS} class words, all distinct; "
            f"got {neutral} neutral words and {polar} of each class."
        )
    sizes = {"train": instances, "dev": max(instances // 6, 2), "test": max(instances // 6, 2)}
    splits = {}
    for split, size in sizes.items():
        generator = numpy_generator(seed, "synthetic", task, split)
        labels = _labels(shares, size)
        words = _drawn(generator, labels, len(classes), neutral, polar, noise)
        splits[split] = [
            _document(f"{split}-{number}", row, int(label), classes, neutral, polar)
            for number, (row, label) in enumerate(zip(words, labels, strict=True))
        ]
    return Corpus(f"synthetic:{task}", classes, splits, tokeniser="whitespace")


def _shares(task: str) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """The share of each class, in class order, and the classes."""
    if task in ("data1", "data2"):
        return (0.5, 0.5), ("negative", "positive")
    if task == "three":
        return (1 / 3, 1 / 3, 1 / 3), ("zero", "one", "two")
    found = re.fullmatch(r"ratio-(\d+)-(\d+)", task)
    if not found or "0" in found.groups():
        raise unknown("task of synthetic", task, TASKS)
    positive, negative = map(int, found.groups())
    total = positive + negative
    return (negative / total, positive / total), ("negative", "positive")


def _labels(shares: tuple[float, ...], size: int) -> Int[np.ndarray, " instance"]:
    """Labels in the given shares, at least one of each class."""
    ends = np.round(np.cumsum(shares) * size).astype(int)
    counts = np.maximum(np.diff(ends, prepend=0), 1)
    return np.repeat(np.arange(len(shares)), counts)[:size]


def _drawn(
    generator: np.random.Generator,
    labels: Int[np.ndarray, " instance"],
    classes: int,
    neutral: int,
    polar: int,
    noise: float,
) -> Int[np.ndarray, "instance 12"]:
    """Word numbers: neutral ones first, then those of each class in turn."""
    spoken = labels.copy()
    for label in range(classes):
        rows = np.flatnonzero(labels == label)
        lying = generator.permutation(rows)[: round(noise * len(rows))]
        spoken[lying] = (label + generator.integers(1, classes, len(lying))) % classes
    plain = _distinct(generator, len(labels), neutral, NEUTRAL_WORDS)
    chosen = _distinct(generator, len(labels), polar, CLASS_WORDS)
    chosen += neutral + polar * spoken[:, None]
    return np.asarray(generator.permuted(np.concatenate([plain, chosen], 1), axis=1))


def _distinct(
    generator: np.random.Generator, rows: int, words: int, take: int
) -> Int[np.ndarray, "row take"]:
    """Rows of distinct word numbers."""
    parts = [
        generator.random((min(1_000, rows - start), words)).argpartition(take - 1, 1)[:, :take]
        for start in range(0, rows, 1_000)
    ]
    return np.concatenate(parts)


def _document(
    id: str,
    row: Int[np.ndarray, " token"],
    label: int,
    classes: tuple[str, ...],
    neutral: int,
    polar: int,
) -> Document:
    kind = np.where(row < neutral, -1, (row - neutral) // polar)
    number = np.where(row < neutral, row, (row - neutral) % polar)
    tokens = tuple(
        f"{'neutral' if k < 0 else classes[k]}{n}"
        for k, n in zip(kind.tolist(), number.tolist(), strict=True)
    )
    ends = np.cumsum([len(token) + 1 for token in tokens]) - 1
    starts = np.concatenate([[0], ends[:-1] + 1])
    return Document(
        id=id,
        text=" ".join(tokens),
        tokens=tokens,
        spans=np.stack([starts, ends], 1).astype(np.int32),
        label=label,
        sentence=np.zeros(len(tokens), dtype=np.int32),
        evidence=kind == label,
    )
