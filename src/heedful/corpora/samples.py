"""Which documents of a split are looked at, and these alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from heedful.corpora.encoded import Encoded
from heedful.errors import InputError
from heedful.runs.randomness import key

Rows = np.ndarray[Any, np.dtype[np.int64]]
"""Places of documents in their split."""


def sampled(names: Sequence[str], most: int, seed: int) -> Rows:
    """The documents that are audited: all, or a draw keyed by (seed, id), in corpus order."""
    if most < 0:
        raise InputError(f"--documents is how many are drawn, 0 for all, got {most}.")
    every = np.arange(len(names))
    return every if most == 0 or len(names) <= most else np.sort(drawn(names, every, most, seed))


def drawn(names: Sequence[str], rows: Rows, most: int, seed: int) -> Rows:
    """So many of the rows; a smaller draw is the beginning of a larger one."""
    order = sorted(rows.tolist(), key=lambda row: key(seed, "audited", names[row]))
    return np.array(order[:most], dtype=np.int64)


def subset(encoded: Encoded, rows: Rows | Sequence[int]) -> Encoded:
    """The documents in these rows alone, in the order given."""
    of = np.asarray(rows, dtype=np.int64)
    lengths = encoded.lengths[of]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    where = np.arange(starts[-1]) + np.repeat(encoded.starts[of] - starts[:-1], lengths)
    documents, labels = encoded.documents, encoded.word_labels
    return replace(
        encoded,
        ids=encoded.ids[where],
        starts=starts,
        labels=encoded.labels[of],
        sentence=encoded.sentence[where],
        names=tuple(encoded.names[row] for row in of),
        evidence=None if encoded.evidence is None else encoded.evidence[where],
        documents=None if documents is None else [documents[row] for row in of],
        word_labels=None if labels is None else labels[where],
    )
