"""What a shard leaves on disk: rows of every audit, sums behind every measure, documents by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from safetensors.numpy import load_file, save_file

from heedful.runs import TABLE, Form, read_json, write_json
from heedful.statistics.sums import Sums

SUMS, INDEX = "sums.safetensors", "sums.json"


class ShardFound(NamedTuple):
    """What was found on one shard."""

    rows: Mapping[str, pd.DataFrame]
    """Of every audit."""
    sums: Mapping[tuple[str, str, str], Sums]
    """By audit, measure and method."""
    sample: pd.DataFrame
    """Its documents that are first by key."""
    counts: Mapping[str, Any]
    """How many documents, and what was done to them."""


def _save(folder: Path, found: ShardFound) -> None:
    for name, table in found.rows.items():
        TABLE.save(folder / f"{name}.parquet", table)
    TABLE.save(folder / "sample.parquet", found.sample)
    write_json(folder / "counts.json", found.counts)
    arrays: dict[str, np.ndarray] = {}
    places: dict[int, int] = {}
    index = []
    for key, sums in found.sums.items():  # several measures may be made of the same sums
        if id(sums.totals) not in places:
            place = places[id(sums.totals)] = len(places)
            arrays[f"{place}.totals"] = np.ascontiguousarray(sums.totals)
            arrays[f"{place}.few"] = np.ascontiguousarray(sums.few)
        index.append([*key, places[id(sums.totals)], sums.n, sums.undefined])
    if arrays:
        save_file(arrays, folder / SUMS)
    write_json(folder / INDEX, index)


SHARD: Form[Any] = Form("", _save, lambda folder: folder)
"""What goes in is found on a shard, what comes back is its folder: nothing is held in memory."""


def sums_in(folder: Path) -> Iterator[tuple[tuple[str, str, str], Sums]]:
    """The sums of a shard by audit, measure and method."""
    index = read_json(folder / INDEX)
    arrays = load_file(folder / SUMS) if index else {}
    for audit, measure, method, place, n, undefined in index:
        totals, few = arrays[f"{place}.totals"], arrays[f"{place}.few"]
        yield (audit, measure, method), Sums(totals, n, undefined, few)


def keys_of(table: pd.DataFrame, most: int) -> np.ndarray:
    """The rows of the smallest keys, each name once."""
    order = table["key"].to_numpy().argsort(kind="stable")
    is_first = ~table["id"].iloc[order].duplicated().to_numpy()
    return np.asarray(order[is_first][:most])
