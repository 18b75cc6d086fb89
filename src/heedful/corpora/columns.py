"""Which column holds what: named by the user, or guessed and said."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from shlex import quote
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
READ = ("text", "second", "label", "split")
"""What a column can be named for, each another one."""
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
    second: str | None = None
    """The second text of a pair; named by the user, never guessed."""
    other: str | None = None
    """Another column of texts that is not read, where the text was guessed."""
    unread: tuple[str, ...] = ()
    """Columns of numbers that may be labels of a trained model and are not read as such."""

    def said(self) -> tuple[str, ...]:
        """One line per column: `text column: review (guessed)`."""
        named = {"text": self.text, "second text": self.second, "label": self.label}
        named |= {"split": self.split, "id": self.id}
        lines = tuple(
            f"{role} column: {name}" + (" (guessed)" if role in self.guessed else "")
            for role, name in named.items()
            if name is not None
        )
        pair = f"{self.other} holds texts too; for pairs of texts name both: --text and --text2"
        lines += () if self.other is None else (pair,)
        return lines + tuple(
            f"{name} holds numbers of classes and is not read; if it is the label: --label {name}"
            for name in map(quote, self.unread)
        )


def is_missing(value: Any) -> bool:
    """Whether a cell has no value: None, not a number, empty, or a usual word for it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return isinstance(value, str) and value.strip().lower() in _MISSING


def class_name(value: Any) -> str:
    """A label as a class name; 3.0 and 3 are the same class, as is é written in two ways."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return unicodedata.normalize("NFC", str(value).strip())


def in_class_order(names: Sequence[str]) -> tuple[str, ...]:
    """Distinct class names: by number when all are numbers, else by letter."""
    distinct = set(names)
    try:
        return tuple(sorted(distinct, key=lambda name: (float(name), name)))
    except ValueError:
        return tuple(sorted(distinct))


def _refuse_one_for_two(named: Mapping[str, str], where: str) -> None:
    """Raises where one column is to be, say, both text and label: nothing could be learnt of it."""
    roles: dict[str, str] = {}
    for role, column in named.items():
        if column in roles:
            raise InputError(
                f"{where}: column {column!r} was named for the {roles[column]} and the {role}; "
                "name another one."
            )
        roles[column] = role


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
    """Whether most cells name a split: a mistyped one is then refused, not the whole column."""
    named = sum(str(cell).strip().lower() in SPLIT_VALUES for cell in cells)
    return 2 * named > len(cells)


def _is_unique(cells: Sequence[Any]) -> bool:
    return not any(map(is_missing, cells)) and len(set(map(str, cells))) == len(cells)


def find_columns(
    table: Table,
    where: str,
    text: str | None = None,
    label: str | None = None,
    split: str | None = None,
    id: str | None = None,
    classes: Sequence[str] = (),
    second: str | None = None,
) -> Columns:
    """The columns to use: those named, else those that the names or the contents suggest.

    For a model that knows `classes` a label column is optional: without a usual name it is one that
    holds these; numbers of the classes alone are no ground to guess, and said.
    """
    guessed = []
    given = (("text", text), ("second", second), ("label", label), ("split", split), ("id", id))
    named = {role: _named(table, name, role, where) for role, name in given if name is not None}
    _refuse_one_for_two({role: named[role] for role in READ if role in named}, where)
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
        if found is None:
            found = _of_classes(free, classes) if classes else _fewest_values(free, [])
        if found is not None:
            named["label"] = found
            guessed.append("label")
        elif not classes:
            raise InputError(
                f"{where} has no column that looks like a label among {', '.join(table)}; "
                "name it with --label."
            )
    return Columns(
        named["text"],
        named.get("label"),
        named.get("split"),
        named.get("id"),
        tuple(guessed),
        named.get("second"),
        _other(free, named) if "text" in guessed and "second" not in named else None,
        _numbered(free, classes) if "label" not in named else (),
    )


def _of_classes(table: Table, classes: Sequence[str]) -> str | None:
    """The first column that holds names of the classes, and nothing else."""
    known = {name.casefold() for name in classes}
    return next((column for column, cells in table.items() if _values(cells) <= known), None)


def _numbered(table: Table, classes: Sequence[str]) -> tuple[str, ...]:
    """The columns that hold numbers of the classes, 0 among them, and nothing else."""
    numbers = {str(place) for place in range(len(classes))}
    values = {column: {v.removesuffix(".0") for v in _values(c)} for column, c in table.items()}
    return tuple(column for column, seen in values.items() if "0" in seen and seen <= numbers)


def _values(cells: Sequence[Any]) -> set[str]:
    """What stands in a column, whatever the case; a word that no class has where nothing does."""
    return {class_name(cell).casefold() for cell in cells if not is_missing(cell)} or {""}


def _other(free: Table, named: Mapping[str, str]) -> str | None:
    """Another column of several different words a cell: the second text of a pair, perhaps."""
    for column, cells in free.items():
        texts = [cell for cell in cells if isinstance(cell, str)]
        words = sum(len(text.split()) for text in texts)
        has_many = len(set(texts)) > len(texts) / 2 and words > 3 * len(texts)
        if column not in named.values() and has_many:
            return column
    return None
