"""Sentences in two languages, line by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.corpora.root import lines_of, not_utf8
from heedful.errors import InputError

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
