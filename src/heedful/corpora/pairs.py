"""Pairs of sequences as ids: what a translator reads, alone or in padded batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.corpora.batches import Batch, moved
from heedful.corpora.tasks import Sequences
from heedful.errors import InputError
from heedful.runs.steps import fingerprint

PAD, START, END, UNKNOWN = 0, 1, 2, 3
"""Ids of the special pieces."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Some pairs side by side, padded on the right, ready for teacher forcing."""

    source: Int[Tensor, "sentence unit"]
    """Start, the source's pieces, end."""
    before: Int[Tensor, "sentence step"]
    """What the decoder has written: start, then the target's pieces."""
    target: Int[Tensor, "sentence step"]
    """What it should write next: the target's pieces, then the end."""
    source_lengths: Int[Tensor, " sentence"]
    """On the CPU always: a GPU would have to be waited for."""
    target_lengths: Int[Tensor, " sentence"]
    """Likewise."""
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def has_padding(self) -> bool:
        """Whether any source is shorter than the longest."""
        return bool((self.source_lengths < self.source.shape[1]).any())

    @property
    def source_mask(self) -> Bool[Tensor, "sentence unit"]:
        """True where there is a source position."""
        return _mask(self.source_lengths, self.source)

    @property
    def target_mask(self) -> Bool[Tensor, "sentence step"]:
        """True where there is a word to write."""
        return _mask(self.target_lengths, self.target)

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The source positions of each pair as text: their ids."""
        rows = zip(self.source.tolist(), self.source_lengths.tolist(), strict=True)
        return tuple(tuple(map(str, ids[:n])) for ids, n in rows)

    def to(self, device: torch.device | str) -> Pairs:
        """The same pairs on another device; the lengths stay on the CPU."""
        given = self.source, self.before, self.target
        source, before, target = (moved(part, device) for part in given)
        return replace(self, source=source, before=before, target=target)

    def repeated(self, times: int) -> Pairs:
        """Every pair so many times, its copies side by side."""
        return replace(
            self,
            source=self.source.repeat_interleave(times, 0),
            before=self.before.repeat_interleave(times, 0),
            target=self.target.repeat_interleave(times, 0),
            source_lengths=self.source_lengths.repeat_interleave(times),
            target_lengths=self.target_lengths.repeat_interleave(times),
            names=tuple(name for name in self.names for _ in range(times)),
        )


def _mask(lengths: Tensor, like: Tensor) -> Bool[Tensor, "sentence place"]:
    place = torch.arange(like.shape[1], device=like.device)
    return place < moved(lengths, like.device)[:, None]


def of_task(sequences: Sequences, seed: int = 0) -> Pairs:
    """The sequences of one seed of a task."""
    source, before, target = (x[seed] for x in sequences)
    count = len(source)
    return Pairs(
        source, before, target,
        torch.full((count,), source.shape[1]), torch.full((count,), target.shape[1]),
        tuple(map(str, range(count))),
    )  # fmt: skip


def instances(pairs: Pairs) -> Batch:
    """One document per word to write: the source's positions, labelled with the word.

    Only numbers are repeated; what a model makes of a source is shared.
    """
    sentence, step = pairs.target_mask.nonzero(as_tuple=True)
    rows = zip(sentence.tolist(), step.tolist(), strict=True)
    return Batch(
        ids=pairs.source[sentence],
        mask=pairs.source_mask[sentence],
        labels=pairs.target[sentence, step],
        sentence=torch.zeros_like(pairs.source)[sentence],
        names=tuple(f"{pairs.names[row]}:{t}" for row, t in rows),
    )


def pair_of(instance: str) -> str:
    """The name of the pair that an instance is a word of."""
    return instance.rpartition(":")[0]


@dataclass(frozen=True, eq=False)
class PairSide:
    """One side of a split: ids one after the other, without start and end."""

    ids: Int[np.ndarray, " piece"]
    starts: Int[np.ndarray, " pair_and_one"]

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> PairSide:
        """The side whose sequences these are."""
        starts = np.cumsum([0, *(len(row) for row in rows)])
        nothing = np.zeros(0, dtype=np.int32)
        ids = np.concatenate([nothing, *(np.asarray(row, dtype=np.int32) for row in rows)])
        return cls(ids, starts.astype(np.int64))

    @property
    def lengths(self) -> Int[np.ndarray, " pair"]:
        """Pieces of each sequence, without start and end."""
        return np.diff(self.starts)

    def lengths_of(self, rows: Int[np.ndarray, "row"]) -> Int[np.ndarray, "row"]:
        """Those of some sequences."""
        found: np.ndarray = self.starts[rows + 1] - self.starts[rows]
        return found

    def row(self, number: int) -> list[int]:
        """The ids of one sequence."""
        found: list[int] = self.ids[self.starts[number] : self.starts[number + 1]].tolist()
        return found


@dataclass(frozen=True, eq=False)
class PairSplit:
    """The pairs of one split."""

    source: PairSide
    target: PairSide
    names: tuple[str, ...]
    texts: tuple[str, ...]
    """The targets as written: what BLEU compares with."""

    def __len__(self) -> int:
        return len(self.names)

    def chosen(self, rows: Sequence[int]) -> PairSplit:
        """The named pairs, in the order given."""
        return PairSplit(
            PairSide.of([self.source.row(row) for row in rows]),
            PairSide.of([self.target.row(row) for row in rows]),
            tuple(self.names[row] for row in rows),
            tuple(self.texts[row] for row in rows),
        )


@dataclass(frozen=True, eq=False)
class EncodedPairs:
    """A parallel corpus as ids."""

    name: str
    splits: Mapping[str, PairSplit]
    pieces: tuple[str, ...]
    """How each id is written."""
    model: bytes
    """The tokeniser's own file."""

    @property
    def fingerprint(self) -> str:
        """Changes when any id of any split does."""
        found: dict[str, object] = {"pieces": len(self.pieces)}
        for name, split in self.splits.items():
            for side, ids in (("source", split.source), ("target", split.target)):
                weights = np.arange(1, len(ids.ids) + 1, dtype=np.int64)
                mixed = (ids.ids.astype(np.int64) + 1) * weights * 0x9E3779B1
                found[f"{name} {side}"] = [len(ids.starts), int(mixed.sum())]
        return fingerprint(found)


def collate_pairs(split: PairSplit, rows: Sequence[int]) -> Pairs:
    """The named pairs of a split as one padded batch, in the order given."""
    numbers = np.asarray(rows, dtype=np.int64)
    sources, targets = split.source, split.target
    return Pairs(
        source=_padded(sources, numbers, has_start=True, has_end=True),
        before=_padded(targets, numbers, has_start=True),
        target=_padded(targets, numbers, has_end=True),
        source_lengths=torch.from_numpy(sources.lengths_of(numbers) + 2),
        target_lengths=torch.from_numpy(targets.lengths_of(numbers) + 1),
        names=tuple(split.names[row] for row in rows),
    )


def pair_batches(
    split: PairSplit, batch_size: int, generator: np.random.Generator | None = None
) -> Iterator[tuple[Int[np.ndarray, " sentence"], Pairs]]:
    """All pairs once with their row numbers: in random order, or sorted by length without one."""
    if not len(split):
        raise InputError("There are no pairs to make batches of.")
    if generator is None:
        order = np.lexsort((split.target.lengths, split.source.lengths))
    else:
        order = generator.permutation(len(split))
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        yield rows, collate_pairs(split, rows.tolist())


def _padded(
    side: PairSide,
    rows: Int[np.ndarray, " sentence"],
    *,
    has_start: bool = False,
    has_end: bool = False,
) -> Int[Tensor, "sentence place"]:
    """Some sequences side by side; without a loop over them, which would cost a training step."""
    lengths = side.lengths_of(rows)
    longest = int(lengths.max())
    found = np.full((len(rows), has_start + longest + has_end), PAD, dtype=np.int64)
    place = np.arange(longest)
    index = np.minimum(side.starts[rows][:, None] + place, len(side.ids) - 1)
    words = found[:, has_start : has_start + longest]
    np.copyto(words, side.ids[index], where=place < lengths[:, None])
    if has_start:
        found[:, 0] = START
    if has_end:
        found[np.arange(len(rows)), has_start + lengths] = END
    return torch.from_numpy(found)


def save_pairs(corpus: EncodedPairs, folder: Path) -> None:
    """Writes a corpus of ids: one parquet file per split, the tokeniser as its own file."""
    import pandas as pd

    from heedful.runs import TABLE, write_json, writing

    for name, split in corpus.splits.items():
        table = pd.DataFrame(
            {
                "name": list(split.names),
                "source": [split.source.row(row) for row in range(len(split))],
                "target": [split.target.row(row) for row in range(len(split))],
                "text": list(split.texts),
            }
        )
        with writing(folder / f"{name}.parquet") as path:
            TABLE.save(path, table)
    with writing(folder / "pieces.model") as path:
        path.write_bytes(corpus.model)
    write_json(folder / "corpus.json", {"name": corpus.name, "splits": list(corpus.splits)})
    write_json(folder / "pieces.json", list(corpus.pieces))


def load_pairs(folder: Path) -> EncodedPairs:
    """The corpus kept in a folder."""
    from heedful.runs import TABLE, read_json

    stored = read_json(folder / "corpus.json")
    splits = {}
    for name in stored["splits"]:
        table = TABLE.load(folder / f"{name}.parquet")
        splits[name] = PairSplit(
            PairSide.of(list(table["source"])),
            PairSide.of(list(table["target"])),
            tuple(table["name"]),
            tuple(table["text"]),
        )
    pieces = tuple(read_json(folder / "pieces.json"))
    return EncodedPairs(stored["name"], splits, pieces, (folder / "pieces.model").read_bytes())
