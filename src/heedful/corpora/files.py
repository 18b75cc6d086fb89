"""The user's own documents, from a CSV, TSV, JSON Lines or Parquet file, or held in memory."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from heedful.corpora.columns import (
    SPLIT_VALUES,
    Columns,
    class_name,
    find_columns,
    in_class_order,
    is_missing,
)
from heedful.corpora.documents import SPLITS, Corpus, Document
from heedful.corpora.in_memory import Documents, table_of
from heedful.corpora.labels import (
    MOST_LETTERS,
    Labelling,
    is_rating,
    match_labels,
    read_labels,
    threshold_hint,
)
from heedful.corpora.splits import SHARES, keyed_split
from heedful.corpora.tables import Table
from heedful.corpora.texts import document_of, pair_of
from heedful.errors import InputError
from heedful.runs.progress import ticking

LARGE = 50_000
"""Rows of a file from which on it takes long to read and much to keep."""
_SPLIT_MINIMUM = 3
_HALVES = re.compile("[\ud800-\udfff]")


class FileReading(NamedTuple):
    """A corpus read from a file, and what was decided on the way."""

    corpus: Corpus
    columns: Columns
    said: tuple[str, ...]
    """Lines for the user: which columns were taken and how the documents were split."""


def _texts(cells: Sequence[Any], notes: Counter[str]) -> list[str]:
    """The cells as texts; a missing one is an empty text. Oddities are counted."""
    texts = []
    for cell in cells:
        if cell is None or cell != cell:
            notes["missing text, read as empty"] += 1
            texts.append("")
        else:
            texts.append(_whole(cell if isinstance(cell, str) else str(cell)))
    notes["with an undecodable character, replaced"] += sum("�" in text for text in texts)
    return texts


def _whole(text: str) -> str:
    """The text with U+FFFD for halves of surrogate pairs (JSON's `\\ud800`): no file holds them."""
    return _HALVES.sub("�", text)


def _label(name: str, notes: Counter[str]) -> str:
    """The class name without halves of characters; an undecodable character in it is counted."""
    name = _whole(name)
    notes["with an undecodable character in the label, replaced"] += "�" in name
    return name


def _ids(cells: Sequence[Any] | None, texts: Sequence[str], where: str) -> list[str]:
    """Stable names: the id column, or a hash of the text with a number for repeats."""
    if cells is not None:
        ids = [_whole(class_name(cell)) for cell in cells]
        long = max(ids, key=len, default="")
        if len(long) > MOST_LETTERS:
            raise InputError(
                f"{where}: an id has {len(long):,} letters, {MOST_LETTERS} are the most; rename "
                "that column, so that ids are made of the texts."
            )
        repeated = [id for id, count in Counter(ids).items() if count > 1]
        if repeated:
            raise InputError(f"{where}: the id {repeated[0]!r} occurs more than once.")
        return ids
    seen: Counter[str] = Counter()
    ids = []
    for text in texts:
        name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        seen[name] += 1
        ids.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return ids


def _texts_and_ids(
    table: Table, columns: Columns, where: str, notes: Counter[str]
) -> tuple[list[str] | list[tuple[str, str]], list[str]]:
    """The texts, or pairs of texts, and their stable names."""
    cells = table[columns.id] if columns.id else None
    first = _texts(table[columns.text], notes)
    if columns.second is None:
        return first, _ids(cells, first, where)
    pairs = list(zip(first, _texts(table[columns.second], notes), strict=True))
    return pairs, _ids(cells, ["\n".join(pair) for pair in pairs], where)


def _documents(
    ids: Sequence[str],
    texts: Sequence[str | tuple[str, str]],
    labels: Sequence[int],
    tokeniser: str,
    where: str,
) -> list[Document]:
    """The texts as documents; of many it is said how far they are, and each is packed."""
    is_large = len(texts) >= LARGE
    documents = []
    with ticking(f"cutting {where} into words", len(texts), show=is_large) as ticker:
        for id, text, label in zip(ids, texts, labels, strict=True):
            documents.append(
                document_of(id, text, label, tokeniser, is_packed=is_large)
                if isinstance(text, str)
                else pair_of(id, *text, label, tokeniser)
            )
            if not len(documents) % 1000:
                ticker.advance(1000)
    return documents


def _rows(numbers: Sequence[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:5])
    return shown + (", ..." if len(numbers) > 5 else "")


def _class_names(
    cells: Sequence[Any], column: str, where: str, notes: Counter[str], labelling: Labelling
) -> tuple[list[str], tuple[str, ...]]:
    """The label column as class names, and what is said of them; a missing label is refused."""
    missing = [row for row, cell in enumerate(cells, start=1) if is_missing(cell)]
    if missing:
        raise InputError(
            f"{where} has {len(missing)} missing label(s) in column {column!r} "
            f"(row {_rows(missing)}); fill them in or delete the rows."
        )
    found = read_labels(cells, column, where, labelling)
    return [_label(str(name), notes) for name in found.names], found.said


def _split_rows(cells: Sequence[Any], column: str, where: str) -> dict[str, list[int]]:
    """Row numbers of each split, as the split column has them."""
    rows: dict[str, list[int]] = {}
    for row, cell in enumerate(cells):
        name = SPLIT_VALUES.get(str(cell).strip().lower())
        if name is None:
            raise InputError(
                f"{where}, row {row + 1}: split column {column!r} says {cell!r}, "
                "expected train, dev (val, valid, validation) or test."
            )
        rows.setdefault(name, []).append(row)
    return rows


def _refuse_small_classes(names: Sequence[str], where: str) -> None:
    for name, count in Counter(names).items():
        if count < _SPLIT_MINIMUM:
            raise InputError(
                f"{where}: class {name!r} has {count} document(s), too few to split into train, "
                f"dev and test; {_SPLIT_MINIMUM} or more are needed, or a split column."
            )


def complete_splits(
    given: Mapping[str, list[int]],
    ids: Sequence[str],
    names: Sequence[str],
    seed: int,
    where: str,
    shares: Mapping[str, float] = SHARES,
) -> dict[str, list[int]]:
    """All three splits: those given, and the missing ones drawn from train by the seed."""
    missing = [split for split in SPLITS if split not in given]
    if not missing:
        return dict(given)
    train = given["train"]
    _refuse_small_classes([names[row] for row in train], where)
    wanted = {split: shares[split] for split in SPLITS if split in ("train", *missing)}
    parts = keyed_split([ids[r] for r in train], [names[r] for r in train], wanted, seed)
    drawn = {split: [train[index] for index in rows] for split, rows in parts.items()}
    return {split: drawn.get(split, given.get(split, [])) for split in SPLITS}


def corpus_of_table(
    table: Table,
    name: str,
    columns: Columns,
    splits: Mapping[str, list[int]] | None = None,
    seed: int = 0,
    shares: Mapping[str, float] = SHARES,
    tokeniser: str = "words",
    classes: Sequence[str] | None = None,
    labelling: Labelling = Labelling(),
) -> FileReading:
    """A corpus of the table's rows; file-level faults raise, document-level oddities are counted.

    Kept and counted: empty and missing texts (each still gets a decision), one-token texts,
    undecodable characters (shown as U+FFFD), repeated texts.
    """
    assert columns.label is not None
    notes: Counter[str] = Counter()
    cells = table[columns.label]
    names, told = _class_names(cells, columns.label, name, notes, labelling)
    order = tuple(classes) if classes is not None else in_class_order(names)
    if len(set(names)) < 2:
        raise InputError(
            f"{name} has one class only ({names[0]!r} in column {columns.label!r}); "
            "a classifier needs two or more."
        )
    texts, ids = _texts_and_ids(table, columns, name, notes)
    if splits is None and columns.split is not None:
        splits = _split_rows(table[columns.split], columns.split, name)
        if "train" not in splits:
            raise InputError(f"{name}: split column {columns.split!r} has no train rows.")
    rows = complete_splits(
        splits or {"train": list(range(len(texts)))}, ids, names, seed, name, shares
    )
    trained = {names[row] for row in rows["train"]}
    for split in SPLITS:
        for row in rows[split]:
            if names[row] not in trained:
                raise InputError(
                    f"{name}: class {names[row]!r} occurs in {split} but not in train; "
                    "move some of its documents to train or leave the class out."
                )
    index = {class_: number for number, class_ in enumerate(order)}
    read = _documents(ids, texts, [index[one] for one in names], tokeniser, name)
    documents = {split: [read[row] for row in rows[split]] for split in SPLITS}
    count_oddities([d for split in documents.values() for d in split], notes)
    drawn = [split for split in SPLITS if split not in (splits or {})]
    sizes = " / ".join(str(len(rows[split])) for split in SPLITS)
    how = f"{' and '.join(drawn)} drawn by seed {seed}" if drawn else "as the file has them"
    said = (*columns.said(), *told, f"classes: {', '.join(order)}", f"splits: {sizes} ({how})")
    corpus = Corpus(
        name=name, classes=order, splits=documents, notes=dict(+notes), tokeniser=tokeniser
    )
    return FileReading(corpus, columns, said)


def count_oddities(documents: Sequence[Document], notes: Counter[str]) -> None:
    """Adds the counts of empty, one-token and repeated texts to the notes."""
    notes["without any token, kept"] += sum(not d.tokens for d in documents)
    notes["of one token, kept"] += sum(len(d.tokens) == 1 for d in documents)
    repeated = Counter(d.text for d in documents)
    notes["the same text as an earlier one, kept"] += sum(n - 1 for n in repeated.values())


def read_file(
    path: Documents,
    text: str | None = None,
    label: str | None = None,
    split: str | None = None,
    id: str | None = None,
    seed: int = 0,
    shares: Mapping[str, float] = SHARES,
    tokeniser: str = "words",
    second: str | None = None,
    labels: str | Mapping[str, str] | None = None,
    threshold: float | None = None,
) -> FileReading:
    """The labelled documents of a file, or held in memory, in train, dev and test.

    The format goes by the suffix: .csv, .tsv, .jsonl, .ndjson, .json (text may be followed by .gz)
    or .parquet. Columns that are not named are guessed and said. Without a split column each class
    is split 70/15/15 by the seed and the id, so that the order of the rows does not matter; a split
    column without dev or test has them drawn from its train rows. Numeric labels are ordered by
    number; ratings with decimals are cut in two at the `threshold`, and refused without one.
    `labels` gives labels other names: `neg=LABEL_0,pos=LABEL_1`, or a mapping.
    """
    table, name = table_of(path)
    columns = find_columns(table, name, text, label, split, id, second=second)
    return corpus_of_table(
        table, name, columns, seed=seed, shares=shares, tokeniser=tokeniser,
        labelling=Labelling.of(labels, threshold),
    )  # fmt: skip


def read_texts(
    path: Documents,
    classes: Sequence[str],
    text: str | None = None,
    label: str | None = None,
    id: str | None = None,
    tokeniser: str = "words",
    second: str | None = None,
    split: str | None = None,
    labels: str | Mapping[str, str] | None = None,
    threshold: float | None = None,
) -> FileReading:
    """The documents of a file, or held in memory, as a test split, for a model with `classes`.

    Labels are optional; a missing one is counted and the document kept without. Labels are matched
    by `match_labels`, after `labels` and `threshold` as in `read_file`, and one that the model does
    not know is refused by name. Ratings that nobody named are no labels, and said. `second` names
    the column of the second text, for models of pairs. Where a split column marks rows as test,
    only these are read: the model may have been trained on the others.
    """
    table, name = table_of(path)
    names = (text, label, split, id)
    columns = find_columns(table, name, *names, classes=classes, second=second)
    labelling = Labelling.of(labels, threshold)
    notes: Counter[str] = Counter()
    table, kept = _test_rows(table, columns, name)
    texts, ids = _texts_and_ids(table, columns, name, notes)
    given, told = _given(table, columns, name, classes, labelling, notes)
    notes["without a label"] += given.count(-1)
    documents = _documents(ids, texts, given, tokeniser, str(path))
    count_oddities(documents, notes)
    splits = {"test": documents}
    corpus = Corpus(name, tuple(classes), splits, notes=dict(+notes), tokeniser=tokeniser)
    said = (*columns.said(), *told, f"documents: {len(documents)}{kept}")
    return FileReading(corpus, columns, said)


def _given(
    table: Table,
    columns: Columns,
    where: str,
    classes: Sequence[str],
    labelling: Labelling,
    notes: Counter[str],
) -> tuple[list[int], tuple[str, ...]]:
    """The class of each row, -1 without one, and how labels were read."""
    column, nothing = columns.label, [-1] * len(table[columns.text])
    if column is None:
        if labelling != Labelling():
            raise InputError(f"{where}: name the column of the labels by --label.")
        return nothing, ()
    cells = table[column]
    if "label" in columns.guessed and labelling == Labelling() and is_rating(cells):
        hint = threshold_hint([class_name(cell) for cell in cells if not is_missing(cell)])
        return nothing, (f"{column} holds ratings and is not read as labels; {hint}",)
    found = read_labels(cells, column, where, labelling, classes)
    names = [name and _label(name, notes) for name in found.names]
    try:
        matched = match_labels(classes, sorted({name for name in names if name is not None}))
    except InputError as error:
        raise InputError(f"{where}, column {column!r}: {error}") from error
    places = [-1 if name is None else matched.places[name] for name in names]
    return places, (*found.said, *filter(None, [matched.said]))


def _test_rows(table: Table, columns: Columns, where: str) -> tuple[Table, str]:
    """The rows to audit, and how they were chosen: the test rows, where some are marked so."""
    if columns.split is None:
        return table, ""
    rows = _split_rows(table[columns.split], columns.split, where).get("test")
    every = len(table[columns.split])
    if rows is None:
        return table, " (none is marked test: all rows)"
    kept = {name: [cells[row] for row in rows] for name, cells in table.items()}
    return kept, f" (the test rows of {every})" if len(rows) < every else ""
