"""Corpora of the Hugging Face hub, through the optional `datasets` package."""

from __future__ import annotations

from typing import Any

from heedful.corpora.columns import SPLIT_VALUES, find_columns
from heedful.corpora.documents import Corpus
from heedful.corpora.files import corpus_of_table
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
    Columns are guessed as for files; class names come from the set where it has them.
    """
    try:
        import datasets
    except ImportError as error:
        raise InputError(
            f"hf:{name} needs the `datasets` package; install it with pip install 'heedful[hub]'."
        ) from error
    path, _, config = name.partition(":")
    try:
        loaded = datasets.load_dataset(path, config or None)
    except Exception as error:  # the package raises many kinds: missing, offline, bad config
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f"hf:{name} cannot be loaded: {reason}") from error
    table: Table = {}
    splits: dict[str, list[int]] = {}
    features: Any = None
    for part, rows in loaded.items():
        split = SPLIT_VALUES.get(part)
        if split is None:
            continue  # unlabelled or extra parts ("unsupervised")
        start = len(next(iter(table.values()), []))
        for column in rows.column_names:
            table.setdefault(column, []).extend(rows[column])
        splits.setdefault(split, []).extend(range(start, start + len(rows)))
        features = rows.features
    if "train" not in splits:
        raise InputError(f"hf:{name} has no train split; it has {', '.join(loaded)}.")
    columns = find_columns(table, f"hf:{name}", text, label)
    columns = columns._replace(split=None)
    assert columns.label is not None
    classes = getattr(features[columns.label], "names", None)
    if classes:
        cells = table[columns.label]
        table[columns.label] = [classes[cell] if cell >= 0 else None for cell in cells]
    reading = corpus_of_table(
        table, f"hf:{name}", columns, splits, seed, tokeniser=tokeniser, classes=classes
    )
    return reading.corpus
