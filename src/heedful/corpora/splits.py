"""Splits that depend on the seed and on each instance's id, not on the order of the file."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

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
