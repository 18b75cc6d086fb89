"""Parallel corpora by name: Multi30k, IWSLT14, News Commentary, and planted pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from heedful.corpora.entries import CATALOGUE
from heedful.corpora.parallel import Pair, Parallel
from heedful.corpora.planted_pairs import planted_pairs
from heedful.corpora.root import expect, find, lines_of, root_of
from heedful.corpora.splits import keyed_split
from heedful.errors import InputError, unknown

MULTI30K = CATALOGUE["multi30k"]
IWSLT, NEWS = (CATALOGUE[name].source for name in ("iwslt14", "news-commentary"))
"""Where the files come from."""


def load_parallel(
    name: str = "multi30k",
    data_root: str | Path | None = None,
    languages: tuple[str, str] | None = None,
) -> Parallel:
    """A parallel corpus of the data root; German to English unless asked otherwise.

    `planted` is generated. `iwslt14` is read from iwslt14/{train,valid,test}.LANGUAGE, and
    `news-commentary` from news-commentary/FROM-TO.LANGUAGE with its pairs split 90 to 10.
    """
    if name == "planted":
        return planted_pairs()
    readers: dict[str, Callable[[Path, tuple[str, str]], Mapping[str, Sequence[Pair]]]] = {
        "multi30k": _multi30k,
        "iwslt14": _iwslt14,
        "news-commentary": _news_commentary,
    }
    if name not in readers:
        raise unknown("parallel corpus", name, [*readers, "planted"])
    default = ("en", "nl") if name == "news-commentary" else ("de", "en")
    chosen = default if languages is None else languages
    return Parallel(name, chosen, readers[name](root_of(data_root), chosen))


def _multi30k(root: Path, languages: tuple[str, str]) -> Mapping[str, Sequence[Pair]]:
    splits = {}
    for split, (file, count) in MULTI30K.counts.items():
        sides = []
        for language in languages:
            path = find(root, f"multi30k/{file}.{language}.gz", MULTI30K.source)
            sentences = [line.strip() for line in lines_of(path)]
            expect(path, {"sentences": len(sentences)}, {"sentences": count})
            sides.append(sentences)
        splits[split] = list(zip(*sides, strict=True))
    return splits


def _iwslt14(root: Path, languages: tuple[str, str]) -> Mapping[str, Sequence[Pair]]:
    files = {"train": "train", "dev": "valid", "test": "test"}
    return {
        # The published counts hold one empty pair each, from the end of the files
        # (docs/studies/dynamics.md, "Errata").
        split: _without_empty(
            *(find(root, f"iwslt14/{file}.{language}", IWSLT) for language in languages)
        )
        for split, file in files.items()
    }


def _news_commentary(root: Path, languages: tuple[str, str]) -> Mapping[str, Sequence[Pair]]:
    name = "-".join(languages)
    files = [find(root, f"news-commentary/{name}.{language}", NEWS) for language in languages]
    pairs = [pair for pair in _without_empty(*files) if not all(map(_is_numerical, pair))]
    # Ninety in a hundred train; the rest is what everything is measured on, as published.
    ids = [f"{name}/{number}" for number in range(len(pairs))]
    rows = keyed_split(ids, ["pair"] * len(ids), {"train": 0.9, "dev": 0.1})
    return {split: [pairs[row] for row in chosen] for split, chosen in rows.items()}


def _without_empty(source: Path, target: Path) -> list[Pair]:
    """The pairs of two files, those with an empty side left out."""
    sides = [[line.strip() for line in lines_of(path)] for path in (source, target)]
    if len(sides[0]) != len(sides[1]):
        raise InputError(
            f"{source} has {len(sides[0]):,} lines and {target} has {len(sides[1]):,}; one is half "
            "downloaded or another version: fetch both again."
        )
    return [(one, two) for one, two in zip(*sides, strict=True) if one and two]


def _is_numerical(sentence: str) -> bool:
    return not any(letter.isalpha() for letter in sentence)
