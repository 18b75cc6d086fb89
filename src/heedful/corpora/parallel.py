"""Sentences in two languages, line by line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.corpora.root import expect, find, lines_of, not_utf8, root_of
from heedful.corpora.splits import keyed_split
from heedful.errors import InputError, unknown

SOURCE = "github.com/multi30k/dataset, data/task1/raw (Elliott et al. 2016, 2017)"
IWSLT = "the IWSLT 2014 German-English evaluation campaign, split as in the fairseq recipe"
NEWS = "the News Commentary corpus of OPUS (opus.nlpl.eu), plain text, one sentence a line"
COUNTS: dict[str, tuple[str, int]] = {
    "train": ("train", 29_000),
    "dev": ("val", 1_014),
    "test": ("test_2016_flickr", 1_000),
    "test_2017_flickr": ("test_2017_flickr", 1_000),
    "test_2017_mscoco": ("test_2017_mscoco", 461),
}
"""The file of each split and how many pairs it has."""
FILES = tuple(f"multi30k/{file}.{lang}.gz" for file, _ in COUNTS.values() for lang in ("en", "de"))
IWSLT_FILES = tuple(
    f"iwslt14/{split}.{lang}" for split in ("train", "valid", "test") for lang in ("de", "en")
)
NEWS_FILES = tuple(
    f"news-commentary/{pair}.{lang}"
    for pair in ("en-nl", "en-pt", "it-pt")
    for lang in pair.split("-")
)
"""Of the pairs of languages of the dynamics study; others are read by the same rule."""
MAX_WORDS = 1_000
"""Words of a sentence at most, so that a file without line breaks is noticed."""

Pair = tuple[str, str]
Links = tuple[tuple[int, int], ...]
"""The (source, target) positions of one pair that go together."""


@dataclass(frozen=True)
class Parallel:
    """Pairs of sentences in splits."""

    name: str
    """How the corpus is asked for."""
    languages: tuple[str, str]
    """Source and target language."""
    splits: Mapping[str, Sequence[Pair]]
    """(source, target) pairs; `train`, `dev`, `test` and further test sets."""
    alignments: Mapping[str, Sequence[Links]] | None = None
    """The (source, target) positions of words that translate each other, where that is known."""


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
        from heedful.corpora.planted_pairs import planted_pairs

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


def paired_lines(source: Path, target: Path) -> tuple[list[str], list[str]]:
    """The lines of two files, as many in one as in the other; empty ones are among them."""
    for path in (source, target):
        if not path.is_file():
            raise InputError(f"{path} is not a file; give two text files of one sentence a line.")
    one, two = ([line.strip() for line in lines_of(path)] for path in (source, target))
    for path, lines in ((source, one), (target, two)):
        for number, line in enumerate(lines, 1):
            if "\0" in line:  # UTF-16 without its mark, or no text at all, may pass for UTF-8
                raise not_utf8(path, number)
    if len(one) != len(two):
        raise InputError(
            f"{source} has {len(one):,} lines and {target} has {len(two):,}; line by "
            "line they must translate each other."
        )
    if not one:
        raise InputError(f"{source} and {target} are empty; give one sentence a line.")
    one[0], two[0] = (lines[0].removeprefix("\ufeff").strip() for lines in (one, two))
    return one, two


def read_pairs(source: Path, target: Path, max_words: int = MAX_WORDS) -> list[Pair]:
    """The pairs of two files, line by line.

    Files of different length, empty lines and endless lines are refused: the lines of such files
    would not belong together.
    """
    sides = paired_lines(source, target)
    for path, lines in zip((source, target), sides, strict=True):
        empty = [number for number, line in enumerate(lines, 1) if not line]
        if empty:
            raise InputError(
                f"{path}, line {empty[0]:,} is empty ({len(empty):,} such lines); remove it here "
                "and its translation in the other file."
            )
        for number, line in enumerate(lines, 1):
            if (count := len(line.split())) > max_words:
                raise InputError(
                    f"{path}, line {number:,} has {count:,} words, more than the limit of "
                    f"{max_words:,}; split it, or raise the limit."
                )
    return list(zip(*sides, strict=True))


def _multi30k(root: Path, languages: tuple[str, str]) -> Mapping[str, Sequence[Pair]]:
    splits = {}
    for split, (file, count) in COUNTS.items():
        sides = []
        for language in languages:
            path = find(root, f"multi30k/{file}.{language}.gz", SOURCE)
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
