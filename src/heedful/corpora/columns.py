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
    second: str | None = None
    """The second text of a pair; named by the user, never guessed."""
    other: str | None = None
    """Another column of texts that is not read, where the text was guessed."""

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
        return lines if self.other is None else (*lines, pair)


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
    second: str | None = None,
) -> Columns:
    """The columns to use: those named, else those that the names or the contents suggest."""
    guessed = []
    given = (("text", text), ("second", second), ("label", label), ("split", split), ("id", id))
    named = {role: _named(table, name, role, where) for role, name in given if name is not None}
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
        named["text"],
        named.get("label"),
        named.get("split"),
        named.get("id"),
        tuple(guessed),
        named.get("second"),
        _other(free, named) if "text" in guessed and "second" not in named else None,
    )


def _other(free: Table, named: Mapping[str, str]) -> str | None:
    """Another column of several different words a cell: the second text of a pair, perhaps."""
    for column, cells in free.items():
        texts = [cell for cell in cells if isinstance(cell, str)]
        words = sum(len(text.split()) for text in texts)
        has_many = len(set(texts)) > len(texts) / 2 and words > 3 * len(texts)
        if column not in named.values() and has_many:
            return column
    return None


class Matched(NamedTuple):
    """Which class of a model each label of the data is."""

    places: Mapping[str, int]
    said: str
    """How they were matched, where it was not by equal names; else nothing."""


def match_labels(classes: Sequence[str], labels: Sequence[str]) -> Matched:
    """The class of each label: by name, else whatever the case, else by the number of the class.

    Numbers are taken for those of the classes only where 0 is among them and all of them exist:
    ratings from 1 to 5 are not ids. Anything else is refused with both lists.

    >>> match_labels(("NEGATIVE", "POSITIVE"), ("negative", "positive")).places
    {'negative': 0, 'positive': 1}
    >>> match_labels(("LABEL_0", "LABEL_1"), ("0", "1")).said
    'labels 0, 1 are taken for the numbers of the classes LABEL_0, LABEL_1'
    """
    exact = {name: place for place, name in enumerate(classes)}
    if set(labels) <= set(exact):
        return Matched({label: exact[label] for label in labels}, "")
    folded = {name.casefold(): place for place, name in enumerate(classes)}
    lowered = [label.casefold() for label in labels]
    is_one_to_one = len(folded) == len(classes) and len(set(lowered)) == len(labels)
    if is_one_to_one and set(lowered) <= set(folded):
        index = {label: folded[label.casefold()] for label in labels}
        pairs = ", ".join(f"{label} = {classes[place]}" for label, place in index.items())
        return Matched(index, f"labels matched whatever their case: {pairs}")
    numbers = {str(place) for place in range(len(classes))}
    if "0" in labels and set(labels) <= numbers:
        numbered = {label: int(label) for label in labels}
        names = ", ".join(classes[place] for place in sorted(numbered.values()))
        said = f"labels {', '.join(sorted(numbered))} are taken for the numbers of the classes"
        return Matched(numbered, f"{said} {names}")
    strange = sorted(set(labels) - set(classes))
    raise InputError(
        "The data has labels that the model does not know: "
        f"{', '.join(map(repr, strange[:5]))}{', ...' if len(strange) > 5 else ''}; it knows "
        f"{', '.join(map(repr, classes))}. Rename them in the data (or in id2label of a "
        "transformers model's config.json), or remove those rows."
    )
