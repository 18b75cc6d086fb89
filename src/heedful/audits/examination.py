"""Put a model to audits, batch by batch: read, explain, ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from heedful.audits.finding import RowsOf
from heedful.corpora.batches import batches
from heedful.corpora.encoded import Encoded
from heedful.corpora.samples import Rows, subset
from heedful.importance import explain
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel, read
from heedful.runs.meter import spent_on


class Portion(NamedTuple):
    """How much is read at once."""

    documents: int = 64
    tokens: int | None = 32_768
    """Documents × longest document; none sets no bound."""


def examine(
    model: AttentiveModel,
    documents: Encoded,
    audits: Mapping[str, RowsOf],
    methods: Sequence[str] | None = (),
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
    among: Mapping[str, Rows] | None = None,
    at_once: Portion = Portion(),
) -> dict[str, pd.DataFrame]:
    """The rows of every audit, by its name; every document is read and explained once.

    Each is given the importances of the named `methods`, or of all that the model offers where this
    is none. `among` says which documents an audit looks at where these are not all of them.
    """
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in audits}
    for rows, names in looked_at(np.arange(len(documents)), audits, among or {}):
        for reading in readings(model, subset(documents, rows), device, at_once):
            importance = explain(model, reading, methods, seed)
            for name in names:
                with spent_on(name):
                    parts[name].append(audits[name](model, reading, importance, seed))
    return {name: joined(tables) for name, tables in parts.items()}


def looked_at(
    documents: Rows, audits: Iterable[str], among: Mapping[str, Rows]
) -> list[tuple[Rows, tuple[str, ...]]]:
    """The documents in parts that the same audits look at, with these audits.

    >>> looked_at(np.arange(4), ("a", "b"), {"b": np.array([2])})
    [(array([0, 1, 3]), ('a',)), (array([2]), ('a', 'b'))]
    """
    parts: dict[tuple[str, ...], list[int]] = {}
    sets = {name: set(rows.tolist()) for name, rows in among.items()}
    for row in documents.tolist():
        names = tuple(name for name in audits if name not in sets or row in sets[name])
        parts.setdefault(names, []).append(row)
    return [(np.array(rows), names) for names, rows in parts.items() if names]


def readings(
    model: AttentiveModel,
    documents: Encoded,
    device: torch.device | str = "cpu",
    at_once: Portion = Portion(),
) -> Iterator[Reading]:
    """The documents as the model reads them, in batches of similar length."""
    for batch in batches(documents, at_once.documents, max_tokens=at_once.tokens):
        yield read(model, batch.to(device))


def joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The tables below each other; those without rows have no say in what a column holds."""
    filled = [table for table in tables if len(table)]
    if not filled:
        return tables[0] if tables else pd.DataFrame({"instance": []})
    return pd.concat(filled, ignore_index=True)
