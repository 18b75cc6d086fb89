"""Which column holds what: named by the user, or guessed and said."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from heedful.corpora.tables import Table
from heedful.errors import InputError

TEXT_NAMES = (
    "text", "review", "sentence", "content", "body", "document", "comment", "message", "tweet",
    "post", "description", "abstract", "reviewtext", "review_text", "sms",
)  # fmt: skip
LABEL_NAMES = (
    "label", "labels", "class", "target", "sentiment", "category", "polarity", "rating", "stars",
    "score", "topic", "y", "gold",
)  # fmt: skip
SPLIT_NAMES = ("split", "fold", "partition", "subset", "set")
ID_NAMES = ("id", "doc_id", "docid", "document_id", "review_id", "uid", "uuid")
SPLIT_VALUES: Mapping[str, str] = {
    "train": "train", "training": "train",
    "dev": "dev", "val": "dev", "valid": "dev", "validation": "dev", "development": "dev",
    "test": "test", "testing": "test",
}  # fmt: skip
_MISSING = frozenset(("", "nan", "null", "na", "n/a", "<na>"))
_MANY_CLASSES = 50


class Columns(NamedTuple):
    """The columns in use; those that a file need not have may be None."""

    text: str
    label: str | None
    split: str | None
    id: str | None
    guessed: tuple[str, ...]
    """Which of the four were guessed."""

    def said(self) -> tuple[str, ...]:
        """One line per column: `text column: review (guessed)`."""
        named = {"text": self.text, "label": self.label, "split": self.split, "id": self.id}
        return tuple(
            f"{role} column: {name}" + (" (guessed)" if role in self.guessed else "")
            for role, name in named.items()
            if name is not None
        )


def is_missing(value: Any) -> bool:
    """Whether a cell has no value: None, not a number, empty, or a usual word for it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return isinstance(value, str) and value.strip().lower() in _MISSING


def class_name(value: Any) -> str:
    """A label as a class name; 3.0 and 3 are the same class."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def in_class_order(names: Sequence[str]) -> tuple[str, ...]:
    """Distinct class names: by number when all are numbers, else by letter."""
    distinct = set(names)
    try:
        return tuple(sorted(distinct, key=lambda name: (float(name), name)))
    except ValueError:
        return tuple(sorted(distinct))


def _named(table: Table, name: str, role: str, where: str) -> str:
    if name in table:
        return name
    close = get_close_matches(name, list(table), n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise InputError(
        f"{where} has no {role} column {name!r}; its columns are {', '.join(table)}.{hint}"
    )


def _known(table: Table, names: Sequence[str]) -> str | None:
    """The first column with one of the usual names, whatever its case."""
    lowered = {column.lower(): column for column in reversed(table)}
    return next((lowered[name] for name in names if name in lowered), None)


def _longest(table: Table, besides: Sequence[str | None]) -> str | None:
    """The column with the longest strings on average."""
    lengths = {
        column: sum(len(cell) for cell in cells if isinstance(cell, str)) / max(len(cells), 1)
        for column, cells in table.items()
        if column not in besides and any(isinstance(cell, str) for cell in cells)
    }
    return max(lengths, key=lambda column: lengths[column]) if lengths else None


def _fewest_values(table: Table, besides: Sequence[str | None]) -> str | None:
    """The column with the fewest distinct values, if it can be a label: 2 to 50, each repeated."""
    counts = {}
    for column, cells in table.items():
        distinct = len({class_name(cell) for cell in cells if not is_missing(cell)})
        if column not in besides and 2 <= distinct <= min(_MANY_CLASSES, len(cells) // 2):
            counts[column] = distinct
    return min(counts, key=lambda column: counts[column]) if counts else None


def _is_split(cells: Sequence[Any]) -> bool:
    return all(str(cell).strip().lower() in SPLIT_VALUES for cell in cells)


def _is_unique(cells: Sequence[Any]) -> bool:
    return not any(map(is_missing, cells)) and len(set(map(str, cells))) == len(cells)


def find_columns(
    table: Table,
    where: str,
    text: str | None = None,
    label: str | None = None,
    split: str | None = None,
    id: str | None = None,
    needs_label: bool = True,
) -> Columns:
    """The columns to use: those named, else those that the names or the contents suggest."""
    guessed = []
    named = {
        role: _named(table, name, role, where)
        for role, name in (("text", text), ("label", label), ("split", split), ("id", id))
        if name is not None
    }
    if "split" not in named:
        found = _known(table, SPLIT_NAMES)
        if found is not None and found not in named.values() and _is_split(table[found]):
            named["split"] = found
            guessed.append("split")
    if "id" not in named:
        found = _known(table, ID_NAMES)
        if found is not None and found not in named.values() and _is_unique(table[found]):
            named["id"] = found
            guessed.append("id")
    free = {column: cells for column, cells in table.items() if column not in named.values()}
    if "text" not in named:
        labelled = _known(free, LABEL_NAMES)
        found = _known(free, TEXT_NAMES) or _longest(free, [labelled])
        if found is None:
            raise InputError(
                f"{where} has no column that looks like text among {', '.join(table)}; "
                "name it with --text."
            )
        named["text"] = found
        guessed.append("text")
        free.pop(found)
    if "label" not in named:
        found = _known(free, LABEL_NAMES)
        if found is None and needs_label:
            found = _fewest_values(free, [])
        if found is not None:
            named["label"] = found
            guessed.append("label")
        elif needs_label:
            raise InputError(
                f"{where} has no column that looks like a label among {', '.join(table)}; "
                "name it with --label."
            )
    return Columns(
        named["text"], named.get("label"), named.get("split"), named.get("id"), tuple(guessed)
    )
