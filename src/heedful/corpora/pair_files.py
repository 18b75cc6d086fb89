"""A user's two files of sentences as training and dev pairs, and links between their words.

What cannot be used (an empty side, a line that is too long) is left out and counted. The dev pairs
are drawn by what they say, so that the order of the lines does not matter; pairs that a model could
not tell apart are one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from heedful.corpora.parallel import Links, Pair, Parallel, paired_lines
from heedful.corpora.pieces import MAX_PIECES, PIECES, PieceTokeniser, normalised, train_pieces
from heedful.corpora.root import lines_of
from heedful.corpora.splits import draw
from heedful.errors import InputError

MAX_WORDS = 100
"""Of a line."""
DEV_SHARE = 0.1
MOST_DEV = 2_000
LEAST = 10
"""Different pairs below which there is nothing to split, and training pairs to learn from."""
MOST_PIECES = 1_000_000
"""That can be asked for; what a text supports is far less."""
WORDS_PER_PIECE = 10
"""A vocabulary nobody asked for has a piece for so many running words at most."""


@dataclass(frozen=True)
class UsablePairs:
    """The pairs of two files that can be used, and how many cannot."""

    pairs: tuple[Pair, ...]
    lines: tuple[int, ...]
    """The line of each pair, from 0."""
    empty: int
    long: int
    """Pairs with more than `max_words` words on a side."""
    of: int
    """Lines of each file."""
    max_words: int = MAX_WORDS
    many: int = 0
    """Pairs with more than `max_pieces` pieces on a side."""
    max_pieces: int = MAX_PIECES

    def kept(self, rows: Sequence[int], empty: int, many: int, max_pieces: int) -> UsablePairs:
        """Some of the pairs; of the others so many are empty, and have too many pieces."""
        return replace(
            self,
            pairs=tuple(self.pairs[row] for row in rows),
            lines=tuple(self.lines[row] for row in rows),
            empty=self.empty + empty,
            many=self.many + many,
            max_pieces=max_pieces,
        )

    def said(self, name: str) -> tuple[str, ...]:
        """What was left out, in sentences."""
        counts = {
            "an empty side": self.empty,
            f"a line of more than {self.max_words:,} words (--max-words)": self.long,
            f"a line of more than {self.max_pieces:,} pieces (the limit)": self.many,
        }
        return tuple(
            f"{count:,} of {self.of:,} {name} pairs {'has' if count == 1 else 'have'} {why}: left "
            "out."
            for why, count in counts.items()
            if count
        )


def usable_pairs(source: Path, target: Path, max_words: int = MAX_WORDS) -> UsablePairs:
    """The pairs of two files, without those with an empty side or more words than the limit."""
    if max_words < 1:
        raise InputError(f"--max-words must be at least 1, got {max_words}.")
    pairs = list(zip(*paired_lines(source, target), strict=True))
    is_empty = [not left or not right for left, right in pairs]
    is_long = [
        not empty and max(len(text.split()) for text in pair) > max_words
        for pair, empty in zip(pairs, is_empty, strict=True)
    ]
    rows = [row for row in range(len(pairs)) if not is_empty[row] and not is_long[row]]
    if not rows:
        raise InputError(
            f"{source} and {target} have no pair of lines with 1 to {max_words:,} words on both "
            "sides; check that they hold one sentence a line."
        )
    return UsablePairs(
        tuple(pairs[row] for row in rows), tuple(rows), sum(is_empty), sum(is_long), len(pairs),
        max_words,
    )  # fmt: skip


def as_said(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs as pieces see them: those that are equal are copies, whatever their blanks."""
    source, target = (normalised([pair[side] for pair in pairs]) for side in (0, 1))
    return list(zip(source, target, strict=True))


def dev_rows(pairs: Sequence[Pair], share: float = DEV_SHARE, seed: int = 0) -> list[int]:
    """Which pairs are for dev: a share of the different ones, drawn by seed and text.

    Of pairs that say the same the first stands for all.
    """
    if not 0 < share < 1:
        raise InputError(f"--dev-share must lie strictly between 0 and 1, got {share:g}.")
    first: dict[Pair, int] = {}
    for row, pair in enumerate(as_said(pairs)):
        first.setdefault(pair, row)
    if len(first) < LEAST:
        raise InputError(
            f"The files have {len(first)} different {'pair' if len(first) == 1 else 'pairs'} to "
            f"learn from, at least {LEAST} are needed (and thousands to learn a language); give "
            "more sentences."
        )
    count = min(max(round(share * len(first)), 1), MOST_DEV)
    chosen = draw(["\t".join(pair) for pair in first], count, seed)
    rows = list(first.values())
    return [rows[place] for place in chosen]


def learnt_pieces(pairs: Sequence[Pair], size: int | None = None) -> PieceTokeniser:
    """Pieces of both sides: exactly so many, or without a size as many as the text supports.

    That is a piece for ten running words, at least the characters and at most 8,000.
    """
    texts = [text for pair in pairs for text in pair]
    if size is not None and not 1 <= size <= MOST_PIECES:
        raise InputError(f"--pieces must be from 1 to {MOST_PIECES:,}, got {size:,}.")
    if size is not None:
        return train_pieces(texts, size)
    characters = len(set("".join(unicodedata.normalize("NFKC", text) for text in texts)))
    words = sum(len(text.split()) for text in texts)
    wanted = min(max(words // WORDS_PER_PIECE, characters + 8), PIECES)
    return train_pieces(texts, wanted, is_exact=False)


def fitting(
    found: UsablePairs, pieces: PieceTokeniser, max_pieces: int = MAX_PIECES
) -> UsablePairs:
    """The pairs whose sides have at least one piece and at most so many."""
    sides = [pieces.encode([pair[side] for pair in found.pairs]) for side in (0, 1)]
    sizes = [(len(one), len(two)) for one, two in zip(*sides, strict=True)]
    rows = [row for row, both in enumerate(sizes) if min(both) and max(both) <= max_pieces]
    empty = sum(not min(both) for both in sizes)
    many = len(sizes) - len(rows) - empty
    if not rows and not many:
        raise InputError(
            "Every pair has a side that holds nothing but blanks and control characters; give "
            "files of sentences."
        )
    if not rows:
        raise InputError(
            f"Every pair has more than {max_pieces:,} pieces on a side, the limit; raise --pieces, "
            "or give shorter sentences."
        )
    return found.kept(rows, empty, many, max_pieces)


def as_parallel(name: str, train: Sequence[Pair], dev: Sequence[Pair]) -> Parallel:
    """Training and dev pairs as a corpus."""
    return Parallel(name, ("source", "target"), {"train": list(train), "dev": list(dev)})


def read_links(path: Path, found: UsablePairs) -> list[Links]:
    """The links of each usable pair from a file of `i-j`, one line for each line of the texts."""
    if not path.is_file():
        raise InputError(f"{path} is not a file; `heedful align` writes one as alignments.txt.")
    lines = lines_of(path)
    if len(lines) != found.of:
        raise InputError(
            f"{path} has {len(lines):,} lines, the sentences it should link {found.of:,}; give the "
            "alignment of these very files."
        )
    return [
        _links(path, line, lines[line], pair)
        for line, pair in zip(found.lines, found.pairs, strict=True)
    ]


def _links(path: Path, number: int, line: str, pair: Pair) -> Links:
    links = []
    counts = [len(text.split()) for text in pair]
    for word in line.split():
        match = re.fullmatch(r"(\d{1,9})-(\d{1,9})", word)
        if match is None:
            raise InputError(
                f"{path}, line {number + 1:,}: expected links such as 0-0 1-2, got {word[:40]!r}."
            )
        link = int(match[1]), int(match[2])
        if link[0] >= counts[0] or link[1] >= counts[1]:
            raise InputError(
                f"{path}, line {number + 1:,}: link {word} goes beyond the sentences, which have "
                f"{counts[0]} and {counts[1]} words counted from 0."
            )
        links.append(link)
    return tuple(links)


def piece_links(
    pairs: Sequence[Pair], links: Sequence[Links], pieces: PieceTokeniser
) -> list[Links | None]:
    """Links between words as links between pieces; none where words do not tell the pieces.

    All pieces of a word have its links. Positions count pieces from 0, without start and end.
    """
    words = sorted({word for pair in pairs for text in pair for word in text.split()})
    known = dict(zip(words, pieces.encode(words), strict=True))
    whole = zip(*(pieces.encode([pair[side] for pair in pairs]) for side in (0, 1)), strict=True)
    found: list[Links | None] = []
    for pair, sentences, own in zip(pairs, whole, links, strict=True):
        cut = [[known[word] for word in text.split()] for text in pair]
        if [list(chain(*side)) for side in cut] != list(sentences):
            found.append(None)  # cut otherwise as a sentence than word by word
            continue
        left, right = (_places([len(word) for word in side]) for side in cut)
        found.append(tuple((i, j) for a, b in own for i in left[a] for j in right[b]))
    return found


def _places(sizes: Sequence[int]) -> list[range]:
    """The positions of parts that follow each other."""
    ends = [sum(sizes[: place + 1]) for place in range(len(sizes))]
    return [range(end - size, end) for end, size in zip(ends, sizes, strict=True)]
