"""The sentences that a user's translator learns from and is measured on, with their links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from heedful.corpora.pair_files import (
    LEAST,
    UsablePairs,
    as_parallel,
    as_said,
    dev_rows,
    fitting,
    learnt_pieces,
    read_links,
    usable_pairs,
)
from heedful.corpora.pairs import EncodedPairs
from heedful.corpora.parallel import Links, Pair
from heedful.corpora.pieces import PieceTokeniser, encode_parallel
from heedful.corpora.splits import draw
from heedful.dynamics.cooccurrence import EM, alignments, iterate, side, with_empty_word
from heedful.dynamics.watch import COUNTED
from heedful.errors import InputError
from heedful.jobs.align import numbered


@dataclass(frozen=True)
class Texts:
    """Training and dev pairs of the files, and which rows of the first file are for dev."""

    train: UsablePairs
    dev: UsablePairs
    rows: tuple[int, ...] | None
    """Rows of `train` that are its dev pairs; none where these have files of their own."""

    @classmethod
    def read(cls, files: Sequence[Path], share: float | None, max_words: int, seed: int) -> Texts:
        """The usable pairs of two files, a share of them for dev, or of two and two."""
        found = usable_pairs(files[0], files[1], max_words)
        if share is None:
            return cls(found, usable_pairs(files[2], files[3], max_words), None)
        rows = dev_rows(found.pairs, share, seed)
        return cls(found, found, tuple(rows))

    def encoded(self, size: int | None, name: str) -> tuple[Texts, EncodedPairs]:
        """The pairs that fit, and their corpus; pieces are learnt from training pairs alone.

        A pair that does not fit teaches no pieces either: without it they are learnt anew.
        """
        texts, learnt_from = self, 0
        while len(texts.train_pairs) != learnt_from:
            texts._check()
            learnt_from = len(texts.train_pairs)
            pieces = learnt_pieces(texts.train_pairs, size)
            texts = texts._fitting(pieces)
        texts._check()
        corpus = as_parallel(name, texts.train_pairs, texts.dev_pairs)
        return texts, encode_parallel(corpus, pieces=pieces)

    def _fitting(self, pieces: PieceTokeniser) -> Texts:
        train, dev = (fitting(part, pieces) for part in (self.train, self.dev))
        rows = self.rows
        if rows is not None:
            lines = {self.train.lines[row] for row in rows}
            rows = tuple(row for row, line in enumerate(train.lines) if line in lines)
        return Texts(train, dev, rows)

    def _check(self) -> None:
        if not self.dev_pairs:
            raise InputError("No dev pair is left; give more or shorter sentences.")
        count = len(self.train_pairs)
        if not count:
            raise InputError(
                "All training pairs are copies of dev pairs; give other files by --dev, or leave "
                "it out to have a share of the pairs kept for dev."
            )
        if count < LEAST:
            raise InputError(
                f"{count} training {'pair is' if count == 1 else 'pairs are'} left beside the dev "
                f"pairs, at least {LEAST} are needed; give more sentences."
            )

    @cached_property
    def train_pairs(self) -> list[Pair]:
        """What is learnt from: what is no dev pair, nor a copy of one."""
        given, measured = self.train.pairs, set(as_said(self.dev_pairs))
        said = as_said(given)
        return [pair for pair, key in zip(given, said, strict=True) if key not in measured]

    @property
    def dev_pairs(self) -> list[Pair]:
        """What everything is measured on."""
        rows = range(len(self.dev.pairs)) if self.rows is None else self.rows
        return [self.dev.pairs[row] for row in rows]

    def links(self, alignment: Path | None, seed: int) -> list[Links]:
        """Links between the words of the dev pairs: read, or made by IBM Model 1."""
        if alignment is not None:
            links = read_links(Path(alignment), self.dev)
            return links if self.rows is None else [links[row] for row in self.rows]
        dev, train = self.dev_pairs, self.train_pairs
        some = draw([str(row) for row in range(len(train))], COUNTED, seed)
        return ibm_links([*dev, *(train[row] for row in some)], EM)[: len(dev)]

    def said(self) -> list[str]:
        """What was left out."""
        told = [*self.train.said("given"), *(() if self.rows is not None else self.dev.said("dev"))]
        copies = len(self.train.pairs) - len(self.train_pairs) - len(self.rows or ())
        if copies == 1:
            told.append("1 given pair is a copy of a dev pair and not trained on.")
        elif copies:
            told.append(f"{copies:,} given pairs are copies of dev pairs and not trained on.")
        return told


def ibm_links(pairs: Sequence[Pair], iterations: int) -> list[Links]:
    """Links between the words of each pair by IBM Model 1, as `heedful align` makes them."""
    (source, left), (target, right) = (
        numbered([pair[which].split() for pair in pairs]) for which in (0, 1)
    )
    one, two = with_empty_word(side(left, len(source))), side(right, len(target))
    *_, last = iterate(one, two, iterations)
    return alignments(last.table, one, two, len(source))
