"""Corpora of the Hugging Face hub, through the optional `datasets` package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from heedful.corpora.columns import find_columns, is_missing
from heedful.corpora.documents import Corpus
from heedful.corpora.files import corpus_of_table
from heedful.corpora.in_memory import parts_of
from heedful.corpora.tables import Table
from heedful.errors import InputError


def read_hub(
    name: str,
    text: str | None = None,
    label: str | None = None,
    seed: int = 0,
    tokeniser: str = "words",
) -> Corpus:
    """A text classification set by its hub name or local folder: `hf:NAME` or `hf:NAME:CONFIG`.

    Its train, validation and test splits are taken; missing ones are drawn from train by the seed.
    A dev or test split whose labels are all -1 or missing is left out, with a note. Columns are
    guessed as for files; class names come from the set where it has them.
    """
    try:
        import datasets
    except ImportError as error:
        raise InputError(
            f"hf:{name} needs the `datasets` package; install it with pip install 'heedful[hub]'."
        ) from error
    path, _, config = name.partition(":")
    if not path:
        raise InputError(f"hf:{name} names no data set; give hf:NAME or hf:NAME:CONFIG.")
    try:
        loaded = datasets.load_dataset(path, config or None)
    except Exception as error:  # the package raises many kinds: missing, offline, bad config
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f"hf:{name} cannot be loaded: {reason}") from error
    table, splits, features = parts_of(loaded)
    if "train" not in splits:
        raise InputError(f"hf:{name} has no train split; it has {', '.join(loaded)}.")
    columns = find_columns(table, f"hf:{name}", text, label)._replace(split=None)
    assert columns.label is not None
    classes = getattr(features[columns.label], "names", None)
    cells = table[columns.label]
    if all(cells[row] != -1 for row in splits["train"]):  # else -1 is a class
        table[columns.label] = [None if cell == -1 else cell for cell in cells]
    table, splits, notes = _labelled(table, columns.label, splits)
    reading = corpus_of_table(
        table, f"hf:{name}", columns, splits, seed, tokeniser=tokeniser, classes=classes
    )
    return replace(reading.corpus, notes={**notes, **reading.corpus.notes})


def _labelled(
    table: Table, label: str, splits: Mapping[str, list[int]]
) -> tuple[Table, dict[str, list[int]], dict[str, int]]:
    """The table without dev or test splits that have no label at all, and how many rows that was.

    Shared tasks keep the labels of their test split to themselves and write -1 instead.
    """
    is_missing_at = [is_missing(cell) for cell in table[label]]
    hidden = {
        f"{split} documents without any label, left out": split
        for split, rows in splits.items()
        if split != "train" and rows and all(is_missing_at[row] for row in rows)
    }
    notes = {note: len(splits[split]) for note, split in hidden.items()}
    kept: list[int] = []
    places: dict[str, list[int]] = {}
    for split, rows in splits.items():
        if split not in hidden.values():
            places[split] = list(range(len(kept), len(kept) + len(rows)))
            kept += rows
    return {column: [cells[row] for row in kept] for column, cells in table.items()}, places, notes
