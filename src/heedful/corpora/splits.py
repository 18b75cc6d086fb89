"""Splits that depend on the seed and on each instance's id, not on the order of the file.

`redrawn` draws those of a prepared corpus again: does a number hang on the split?
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from heedful.corpora.encoded import Encoded, EncodedCorpus
from heedful.corpora.samples import subset
from heedful.errors import InputError

SHARES: Mapping[str, float] = {"train": 0.7, "dev": 0.15, "test": 0.15}


def key(seed: int, id: str) -> bytes:
    """Where an instance stands in the seed's random order."""
    return hashlib.blake2b(
        f"{seed}\0{id}".encode("utf-8", "surrogatepass"), digest_size=16
    ).digest()


def _sizes(total: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers near the shares that add up to the total, none 0 if that can be avoided."""
    exact = [share * total / sum(shares) for share in shares]
    sizes = [int(size) for size in exact]
    by_remainder = sorted(range(len(shares)), key=lambda i: sizes[i] - exact[i])
    for index in by_remainder[: total - sum(sizes)]:
        sizes[index] += 1
    for index, size in enumerate(sizes):
        largest = sizes.index(max(sizes))
        if size == 0 and shares[index] > 0 and sizes[largest] > 1:
            sizes[index], sizes[largest] = 1, sizes[largest] - 1
    return sizes


def keyed_split(
    ids: Sequence[str],
    labels: Sequence[Hashable],
    shares: Mapping[str, float] = SHARES,
    seed: int = 0,
) -> dict[str, list[int]]:
    """Row numbers of each split, each class cut in the given shares.

    Within a class, rows are ordered by a hash of (seed, id), so that neither the order of the rows
    nor the other classes matter. Shares are rounded so that they add up; a class with at least as
    many rows as there are splits is in all of them. Rows come back in their first order.
    """
    if any(share < 0 for share in shares.values()) or not any(shares.values()):
        raise InputError(f"Shares must not be negative nor all zero, got {dict(shares)}.")
    rows_of: dict[Hashable, list[int]] = defaultdict(list)
    for row, label in enumerate(labels):
        rows_of[label].append(row)
    parts: dict[str, list[int]] = {name: [] for name in shares}
    for rows in rows_of.values():
        rows.sort(key=lambda row: key(seed, ids[row]))
        start = 0
        for name, size in zip(parts, _sizes(len(rows), list(shares.values())), strict=True):
            parts[name] += rows[start : start + size]
            start += size
    return {name: sorted(rows) for name, rows in parts.items()}


def draw(ids: Sequence[str], count: int, seed: int = 0) -> list[int]:
    """Row numbers of `count` rows (or all, if fewer) drawn by (seed, id), in their first order."""
    order = sorted(range(len(ids)), key=lambda row: key(seed, ids[row]))
    return sorted(order[:count])


Pools = Mapping[str, Mapping[str, float]]
"""Splits put together (`train+dev`), and the shares of the new splits drawn from them; a share
named `left out` is in none."""
LEFT_OUT = "left out"


def redrawn(corpus: EncodedCorpus, seed: int, pools: Pools | None = None) -> EncodedCorpus:
    """The corpus with new splits, each class cut in the same shares, drawn by (seed, id).

    Without pools all documents are put together and cut in splits as large as those they had. The
    vocabulary stays: its ids name the same words.
    """
    sizes = {split: float(len(part)) for split, part in corpus.splits.items()}
    found: dict[str, list[Encoded]] = {}
    for names, shares in (pools or {"+".join(sizes): sizes}).items():
        unknown = [name for name in names.split("+") if name not in corpus.splits]
        if unknown:
            raise InputError(f"{corpus.name} has no split {unknown[0]!r} to draw from.")
        pool = together([corpus.splits[name] for name in names.split("+")])
        drawn = keyed_split(pool.names, pool.labels.tolist(), shares, seed)
        for split, rows in drawn.items():
            if split != LEFT_OUT:
                found.setdefault(split, []).append(subset(pool, rows))
    splits = {split: together(parts) for split, parts in found.items()}
    return replace(corpus, splits=splits)


def together(parts: Sequence[Encoded]) -> Encoded:
    """The documents of several splits, one split after the other, without the raw text.

    Evidence and labels of words stay only where every split has them.
    """
    if len(parts) == 1:
        return parts[0]
    evidence = [part.evidence for part in parts if part.evidence is not None]
    labels = [part.word_labels for part in parts if part.word_labels is not None]
    return replace(
        parts[0],
        ids=np.concatenate([part.ids for part in parts]),
        starts=np.concatenate([[0], np.cumsum(np.concatenate([p.lengths for p in parts]))]),
        labels=np.concatenate([part.labels for part in parts]),
        sentence=np.concatenate([part.sentence for part in parts]),
        names=tuple(name for part in parts for name in part.names),
        evidence=np.concatenate(evidence) if len(evidence) == len(parts) else None,
        documents=None,
        word_labels=np.concatenate(labels) if len(labels) == len(parts) else None,
    )
