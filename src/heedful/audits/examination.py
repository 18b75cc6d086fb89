"""Put a model to audits, batch by batch: read, explain, ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pandas as pd
import torch

from heedful.audits.finding import RowsOf
from heedful.corpora.batches import batches
from heedful.corpora.encoded import Encoded
from heedful.corpora.samples import Rows, subset
from heedful.importance import explain
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel, read


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
    """The rows of every audit, by its name; audits of the same documents share their readings.

    Each is given the importances of the named `methods`, or of all that the model offers where this
    is none. `among` says which documents an audit looks at where these are not all of them.
    """
    groups: dict[bytes | None, list[str]] = {}
    for name in audits:
        rows = (among or {}).get(name)
        groups.setdefault(None if rows is None else rows.tobytes(), []).append(name)
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in audits}
    for together in groups.values():
        rows = (among or {}).get(together[0])
        looked_at = documents if rows is None else subset(documents, rows)
        for reading in readings(model, looked_at, device, at_once):
            importance = explain(model, reading, methods, seed)
            for name in together:
                parts[name].append(audits[name](model, reading, importance, seed))
    return {name: joined(tables) for name, tables in parts.items()}


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
