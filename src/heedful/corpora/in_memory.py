"""Documents that a user holds in memory, as the table that a file would have been."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from heedful.corpora.columns import SPLIT_VALUES
from heedful.corpora.tables import Table, read_table
from heedful.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

Documents: TypeAlias = (
    "str | Path | pd.DataFrame | Mapping[str, Any] | Sequence[str] | "
    "tuple[Sequence[str], Sequence[Any]] | Any"
)
"""A file; or a DataFrame, a `datasets.Dataset` or dict of them, columns by name, texts, or texts
and labels."""
EXPECTED = (
    "expected a DataFrame, a Dataset of `datasets`, a dict of columns, a list of texts, or a pair "
    "(texts, labels)"
)


class NamedTable(NamedTuple):
    """Columns, and what they are called where something is wrong with them."""

    table: Table
    name: str


def table_of(data: Documents) -> NamedTable:
    """The columns of a file, or of what is held in memory.

    A `datasets.Dataset` says the names of its classes; a dict of them gets a column that says the
    split. A missing value is None.

    >>> table_of((["good", "bad"], [1, 0])).table
    {'text': ['good', 'bad'], 'label': [1, 0]}
    """
    if isinstance(data, str | Path):
        return NamedTable(read_table(Path(data)), str(Path(data)))
    name = type(data).__name__
    if hasattr(data, "columns") and hasattr(data, "to_dict"):
        table = _of_frame(data)
    elif _is_dataset(data):
        table = columns_of(data)
    elif isinstance(data, Mapping) and data and all(map(_is_dataset, data.values())):
        table = parts_of(data).table
        name = "Dataset"
    elif isinstance(data, Mapping):
        table = {str(column): list(cells) for column, cells in data.items()}
    else:
        table, name = _of_texts(data), "texts"
    lengths = {column: len(cells) for column, cells in table.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{count} of {column}" for column, count in lengths.items())
        raise InputError(f"Columns must be of one length, got {told}.")
    if not any(lengths.values()):
        raise InputError(f"The {name} has no rows; {EXPECTED}.")
    return NamedTable(table, name)


def _of_frame(frame: Any) -> Table:
    names = [str(name) for name in frame.columns]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(
            f"The DataFrame has more than one column named {repeated[0]!r}; give each its own name."
        )
    plain = frame.astype(object).where(frame.notna(), None)
    return {name: plain.iloc[:, place].tolist() for place, name in enumerate(names)}


def _of_texts(data: Any) -> Table:
    """Texts alone, or a pair of texts and their labels."""
    is_pair = isinstance(data, tuple) and len(data) == 2 and not isinstance(data[0], str)
    texts, labels = data if is_pair else (data, None)
    if not _is_list(texts) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"Got {type(data).__name__} for documents; {EXPECTED}.")
    if labels is None:
        return {"text": list(texts)}
    if not _is_list(labels):
        raise InputError(f"Got {type(labels).__name__} for labels; {EXPECTED}.")
    # Numbers of numpy and torch become Python's.
    return {"text": list(texts), "label": [x.item() if hasattr(x, "item") else x for x in labels]}


def _is_list(data: Any) -> bool:
    return hasattr(data, "__len__") and hasattr(data, "__iter__") and not isinstance(data, str)


def _is_dataset(data: Any) -> bool:
    """Whether this is a set of the `datasets` package, which need not be imported to tell."""
    return hasattr(data, "column_names") and hasattr(data, "features")


def columns_of(rows: Any, features: Mapping[str, Any] | None = None) -> Table:
    """The columns of a `datasets.Dataset`; where its features know the names of classes, these.

    A class of -1 is a label that is kept secret: none.
    """
    table: Table = {}
    for column in rows.column_names:
        names = getattr((features or rows.features)[column], "names", None)
        cells = list(rows[column])
        if names:
            cells = [None if cell in (None, -1) else names[cell] for cell in cells]
        table[column] = cells
    return table


class Parts(NamedTuple):
    """The parts of a dict of datasets below each other."""

    table: Table
    """With a column `split` that says which part a row is of."""
    splits: dict[str, list[int]]
    """Rows of each split."""
    features: Mapping[str, Any]
    """What the package knows of the columns; where parts differ, the first one's."""


def parts_of(loaded: Mapping[str, Any]) -> Parts:
    """One table of the train, dev and test parts; others ("unsupervised") are left out.

    A column that only some parts have is empty in the others, so that rows stay rows.
    """
    named = {part: SPLIT_VALUES[part] for part in loaded if part in SPLIT_VALUES}
    features: dict[str, Any] = {}
    for part in named:
        features = {**loaded[part].features, **features}
    table: Table = {}
    splits: dict[str, list[int]] = {}
    count = 0
    for part, split in named.items():
        rows = loaded[part]
        here = columns_of(rows, features) | {"split": [split] * len(rows)}
        for column in {**table, **here}:
            cells = table.setdefault(column, [None] * count)
            cells.extend(here.get(column, [None] * len(rows)))
        splits.setdefault(split, []).extend(range(count, count + len(rows)))
        count += len(rows)
    return Parts(table, splits, features)
