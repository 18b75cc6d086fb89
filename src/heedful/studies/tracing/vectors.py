"""The word vectors of the tracing study's models: as they are, or made wider or narrower.

Vectors are inputs, so their width is that of the model. What a wider model gains and what better
vectors would is told apart by vectors that say the same in more dimensions: padded with zeros, or
rotated into them. Narrower ones keep the directions in which the known words differ most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Float32

from heedful.models.transformer import VECTOR_LENGTH

FIFTY = 50
"""Dimensions of the vectors that are at hand for every word."""
Table = Float[np.ndarray, "word dim"]


@dataclass(frozen=True)
class VectorChoice:
    """Which vectors a model reads."""

    dim: int
    """Dimensions that the model sees."""
    way: str = "plain"
    """plain, padded with zeros, rotated into more dimensions, or reduced to fewer."""
    missing: str = "random"
    """What a word without a vector has: a random one of its seed, or zero."""
    source: int = 100
    """Dimensions of the file that they come from."""
    as_if: int | None = None
    """Words that have no vector in this file have none here either."""


def shaped(
    found: Table,
    wanted: VectorChoice,
    seed: int,
    is_missing: Bool[np.ndarray, " word"] | None = None,
) -> Float32[np.ndarray, "word wide"]:
    """The vectors a model of this seed reads; rows of nan in `found` are words without one.

    A word without a vector is drawn before anything is turned, with the spread of the known
    entries: so all widths say the same of it. `is_missing` names further words to be without one.
    Turning and reducing do not depend on the seed.
    """
    table = found.astype(np.float64)
    lacks = np.isnan(table).any(1)
    lacks = lacks if is_missing is None else lacks | is_missing
    known = table[~lacks]
    table[lacks] = 0
    if wanted.missing == "random":
        drawn = np.random.default_rng([seed, table.shape[1]]).normal(size=table.shape)
        table[lacks] = known.std() * drawn[lacks]
    return _turned(table, known, wanted).astype(np.float32)


def _turned(table: Table, known: Table, wanted: VectorChoice) -> Table:
    dim = table.shape[1]
    if wanted.way == "padded":
        table = np.pad(table, ((0, 0), (0, wanted.dim - dim)))
    elif wanted.way == "rotated":
        table = table @ _orthonormal(wanted.dim, dim).T
    elif wanted.way == "reduced":
        directions = np.linalg.svd(known, full_matrices=False)[2][: wanted.dim]
        # Turned again, so that no entry is larger than another by what it stands for.
        table = table @ directions.T @ _orthonormal(wanted.dim, wanted.dim).T
    return table


def _orthonormal(rows: int, columns: int) -> Float[np.ndarray, "row column"]:
    """Orthonormal columns in a direction drawn once and for all."""
    found: Float[np.ndarray, "row column"] = np.linalg.qr(
        np.random.default_rng(rows).normal(size=(rows, columns))
    )[0]
    return found


def made_up(words: int, dim: int) -> Table:
    """Random vectors of a vocabulary, where no file of them is at hand."""
    return VECTOR_LENGTH * np.random.default_rng(dim).normal(size=(words, dim))
