"""Which word goes with which in two files: `heedful align SRC TGT`, by IBM Model 1."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.corpora.parallel import paired_lines
from heedful.errors import InputError
from heedful.runs import write_json, write_text
from heedful.runs.progress import ticking

if TYPE_CHECKING:
    from scipy.sparse import csr_array

EMPTY_WORD = "<empty>"
"""How the empty word is written in the tables: what comes from no word of the source."""
MAX_TOKENS = 200
LEAST = 1e-3
"""Smaller probabilities are left out of the written table."""


@dataclass(frozen=True)
class Aligned:
    """What an alignment left behind."""

    folder: str
    pairs: int
    """Lines of each file."""
    empty: int
    """Pairs with an empty line on one side, which have no links."""
    long: int
    """Pairs left out of the counts because a line is too long; their links are empty too."""
    links: int
    unlinked: int
    """Target words that come from no source word: the empty word is at least as likely."""
    source_words: int
    """Different words, the empty word not counted."""
    target_words: int
    entries: int
    """Word pairs that meet in some line."""
    table_bytes: int
    """Memory of the sparse table."""
    losses: tuple[float, ...]
    """Nats per target word before each iteration."""
    seconds_per_iteration: float

    def lines(self) -> Iterator[str]:
        """What a person reads."""
        yield (
            f"{_counted(self.pairs, 'pair')}, {self.source_words:,} × {self.target_words:,} words, "
            f"{_counted(self.entries, 'word pair')} that {'meets' if self.entries == 1 else 'meet'}"
            f" ({self.table_bytes / 1e6:.1f} MB)"
        )
        for count, why in ((self.empty, "with an empty line"), (self.long, "with a longer line")):
            if count:
                has = "has" if count == 1 else "have"
                yield f"{_counted(count, 'pair')} {why} {has} no links."
        yield (
            f"{_counted(len(self.losses), 'iteration')}, {self.seconds_per_iteration:.2f} s each: "
            f"{self.losses[0]:.3f} nats per word at first, {self.losses[-1]:.3f} before the last"
        )
        if self.unlinked:
            has = "has" if self.unlinked == 1 else "have"
            yield (
                f"{_counted(self.unlinked, 'target word')} {has} no link: the empty word is at "
                "least as likely as any source word (--no-empty-word leaves it out)."
            )
        where = Path(self.folder) / "alignments.txt"
        yield f"{_counted(self.links, 'link')}: {where}"


def _counted(count: int, what: str) -> str:
    """`1 pair`, `2 pairs`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def align(
    source: Path | str,
    target: Path | str,
    out: Path | str,
    *,
    iterations: int = 5,
    has_empty_word: bool = True,
    lower: bool = False,
    max_tokens: int = MAX_TOKENS,
    show: bool = False,
) -> Aligned:
    """Word alignments of two files that hold the same sentences line by line, words set apart.

    The folder `out` gets `alignments.txt`, one line per pair with links `i-j` of source word i and
    target word j, from 0; `counts.tsv`, the co-occurrence counts; `translations.tsv`, the
    probability of a target word given a source word; and `alignment.json`.
    """
    from heedful.dynamics.cooccurrence import (
        alignments,
        cooccurrence,
        iterate,
        side,
        table_bytes,
        with_empty_word,
    )

    if iterations < 1:
        raise InputError(f"--iterations must be at least 1, got {iterations}.")
    if max_tokens < 1:
        raise InputError(f"--max-tokens must be at least 1, got {max_tokens}.")
    texts = [
        [(line.lower() if lower else line).split() for line in lines]
        for lines in paired_lines(Path(source), Path(target))
    ]
    is_empty = [not one or not other for one, other in zip(*texts, strict=True)]
    is_long = [max(len(one), len(other)) > max_tokens for one, other in zip(*texts, strict=True)]
    usable = [not (a or b) for a, b in zip(is_empty, is_long, strict=True)]
    if not any(usable):
        raise InputError(
            f"{source} and {target} have no pair of lines with 1 to {max_tokens} words on both "
            "sides; is one of them empty?"
        )
    kept = [[s if use else [] for s, use in zip(text, usable, strict=True)] for text in texts]
    words, ids = zip(*(numbered(text) for text in kept), strict=True)
    left, right = side(ids[0], len(words[0])), side(ids[1], len(words[1]))
    counts = cooccurrence(left, right)
    counts.sort_indices()
    if has_empty_word:
        left = with_empty_word(left)
    losses: list[float] = []
    started = time.perf_counter()
    with ticking("aligning", iterations, "iterations", show) as ticker:
        for step in iterate(left, right, iterations):
            losses.append(step.loss)
            ticker.advance(1, f"{step.loss:.3f} nats per word")
    seconds = (time.perf_counter() - started) / iterations
    found = alignments(step.table, left, right, len(words[0]) if has_empty_word else None)
    named = [*words[0], EMPTY_WORD]
    links = sum(map(len, found))
    folder = Path(out)
    write_text(
        folder / "alignments.txt",
        "".join(" ".join(f"{i}-{j}" for i, j in pair) + "\n" for pair in found),
    )
    write_text(folder / "counts.tsv", _table(counts, named, words[1], "count", 0.0))
    write_text(
        folder / "translations.tsv", _table(step.table, named, words[1], "probability", LEAST)
    )
    done = Aligned(
        folder=str(folder),
        pairs=len(found),
        empty=sum(is_empty),
        long=sum(is_long),
        links=links,
        unlinked=len(right.ids) - links,
        source_words=len(words[0]),
        target_words=len(words[1]),
        entries=int(step.table.nnz),
        table_bytes=table_bytes(step.table),
        losses=tuple(losses),
        seconds_per_iteration=seconds,
    )
    write_json(folder / "alignment.json", done)
    return done


def numbered(sentences: Sequence[Sequence[str]]) -> tuple[list[str], list[list[int]]]:
    """The different words in order of appearance, and the sentences as their numbers."""
    known: dict[str, int] = {}
    rows = [[known.setdefault(word, len(known)) for word in sentence] for sentence in sentences]
    return list(known), rows


def _table(
    table: csr_array, sources: Sequence[str], targets: Sequence[str], value: str, least: float
) -> str:
    """The entries as tab-separated lines, by source word, the largest first."""
    import numpy as np

    rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    order = np.lexsort((table.indices, -table.data, rows))
    order = order[table.data[order] >= least]
    entries = zip(
        rows[order].tolist(), table.indices[order].tolist(), table.data[order].tolist(), strict=True
    )
    lines = [f"{sources[i]}\t{targets[o]}\t{number:.6g}\n" for i, o, number in entries]
    return f"source\ttarget\t{value}\n" + "".join(lines)
