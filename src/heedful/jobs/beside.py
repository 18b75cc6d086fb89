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
    """Our table with the paper's numbers and the differences beside each column that both have.

    All rows of both are kept, ours first: a row the paper does not have, or that we could not
    compute, shows as empty on one side.
    """
    if not len(ours):
        ours = pd.DataFrame(columns=[*keys, *ours.columns.difference(list(keys))])
    shared = [name for name in paper.columns if name not in keys]
    renamed = paper.rename(columns={name: f"{name}, paper" for name in shared})
    for key in keys:
        ours, renamed = ours.astype({key: object}), renamed.astype({key: object})
    joined = ours.merge(renamed, on=list(keys), how="outer", sort=False)
    places = {tuple(values): number for number, values in enumerate(_rows(ours, keys))}
    places = {v: n for n, v in enumerate(dict.fromkeys([*places, *_rows(renamed, keys)]))}
    joined = joined.iloc[sorted(range(len(joined)), key=lambda i: places[_rows(joined, keys)[i]])]
    order = list(keys)
    for name in (column for column in joined.columns if column not in keys):
        if name.endswith(", paper"):
            continue
        order.append(name)
        base = name.removesuffix(" n")
        if base in shared and (name != base or f"{name} n" not in joined.columns):
            joined[f"{base}, difference"] = joined[base].astype(float) - joined[f"{base}, paper"]
            order += [f"{base}, paper", f"{base}, difference"]
    order += [name for name in joined.columns if name not in order]
    return joined[order].reset_index(drop=True)


def gathered(parts: Mapping[str, Iterable[Mapping[str, Any]]]) -> pd.DataFrame:
    """One table from the rows of every corpus (what `results.each` gives)."""
    return pd.DataFrame([dict(one) for rows in parts.values() for one in rows])


def _rows(table: pd.DataFrame, keys: Sequence[str]) -> list[tuple[Any, ...]]:
    return list(table[list(keys)].itertuples(index=False, name=None))
