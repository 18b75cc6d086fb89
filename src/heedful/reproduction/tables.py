"""Tables of a study: our numbers with their intervals, and the paper's beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from heedful.statistics import Estimate


def row(keys: Mapping[str, Any], **measured: Estimate | float | int | str | None) -> dict[str, Any]:
    """One row of a tidy table; an estimate fills `name`, `name low`, `name high` and `name n`.

    >>> row({"corpus": "sst"}, f1=Estimate(0.8, 0.7, 0.9, 50, "bca"))["f1 low"]
    0.7
    """
    found: dict[str, Any] = dict(keys)
    for name, value in measured.items():
        if isinstance(value, Estimate):
            found |= {name: value.value, f"{name} low": value.low, f"{name} high": value.high}
            found[f"{name} n"] = value.n
        else:
            found[name] = value
    return found


def numbers(text: str, keys: Sequence[str]) -> pd.DataFrame:
    """The paper's numbers from a block of text: a line of column names, then one line per row.

    Cells are split at blanks; the columns in `keys` stay text, `-` is nothing.

    >>> numbers('''
    ...     corpus accuracy
    ...     sst    80.1
    ...     imdb   -
    ... ''', ["corpus"]).to_dict("list")
    {'corpus': ['sst', 'imdb'], 'accuracy': [80.1, nan]}
    """
    lines = [line.split() for line in text.strip().splitlines() if line.strip()]
    header, *body = lines
    for cells in body:
        if len(cells) != len(header):
            raise ValueError(f"{len(header)} columns but {len(cells)} cells in {' '.join(cells)!r}")
    table = pd.DataFrame(body, columns=header)
    for name in header:
        if name not in keys:
            table[name] = pd.to_numeric(table[name].replace("-", None)).astype(float)
    return table


def beside(ours: pd.DataFrame, paper: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Our table with the paper's number and the difference after each column that both have.

    All rows of both are kept, ours first: one that the paper does not have, or that we could not
    compute, is empty on one side. `keys` are the columns that name a row.
    """
    ours = ours.set_index(list(keys))
    theirs = paper.set_index(list(keys))
    index = ours.index.append(theirs.index.difference(ours.index, sort=False))
    ours, theirs = ours.reindex(index), theirs.reindex(index)
    columns: dict[str, pd.Series[Any]] = {}
    for name in ours.columns:
        columns[name] = ours[name]
        if name in theirs:
            columns[f"{name}, paper"] = theirs[name]
            columns[f"{name}, difference"] = ours[name].astype(float) - theirs[name]
    columns |= {f"{name}, paper": theirs[name] for name in theirs if name not in ours}
    return pd.DataFrame(columns, index=index).reset_index()


def row_by_row(table: pd.DataFrame, sentence: str, between: str = "; ") -> str:
    """A sentence filled in from each row.

    >>> lengths = pd.DataFrame({"corpus": ["sst", "imdb"], "words": [19.3, 230.1]})
    >>> row_by_row(lengths, "{corpus} {words:.0f}")
    'sst 19; imdb 230'
    """
    return between.join(sentence.format_map(one) for one in table.to_dict("records"))


def gathered(parts: Mapping[str, Iterable[Mapping[str, Any]]]) -> pd.DataFrame:
    """One table from the rows of every corpus (what `results.each` gives)."""
    return pd.DataFrame([dict(one) for rows in parts.values() for one in rows])
