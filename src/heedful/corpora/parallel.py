"""Sentences in two languages, line by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.corpora.root import expect, find, lines_of, root_of
from heedful.errors import unknown

SOURCE = "github.com/multi30k/dataset, data/task1/raw (Elliott et al. 2016, 2017)"
COUNTS: dict[str, tuple[str, int]] = {
    "train": ("train", 29_000),
    "dev": ("val", 1_014),
    "test": ("test_2016_flickr", 1_000),
    "test_2017_flickr": ("test_2017_flickr", 1_000),
    "test_2017_mscoco": ("test_2017_mscoco", 461),
}
"""The file of each split and how many pairs it has."""
FILES = tuple(f"multi30k/{file}.{lang}.gz" for file, _ in COUNTS.values() for lang in ("en", "de"))


@dataclass(frozen=True)
class Parallel:
    """Pairs of sentences in splits."""

    name: str
    """How the corpus is asked for."""
    languages: tuple[str, str]
    """Source and target language."""
    splits: Mapping[str, Sequence[tuple[str, str]]]
    """(source, target) pairs; `train`, `dev`, `test` and further test sets."""


def load_parallel(
    name: str = "multi30k",
    data_root: str | Path | None = None,
    languages: tuple[str, str] = ("de", "en"),
) -> Parallel:
    """A parallel corpus of the data root; German to English unless asked otherwise."""
    if name != "multi30k":
        raise unknown("parallel corpus", name, ["multi30k"])
    root = root_of(data_root)
    splits = {}
    for split, (file, count) in COUNTS.items():
        sides = []
        for language in languages:
            path = find(root, f"multi30k/{file}.{language}.gz", SOURCE)
            sentences = [line.strip() for line in lines_of(path)]
            expect(path, {"sentences": len(sentences)}, {"sentences": count})
            sides.append(sentences)
        splits[split] = list(zip(*sides, strict=True))
    return Parallel(name, languages, splits)
