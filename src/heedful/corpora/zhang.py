r"""The CSV corpora of Zhang, Zhao & LeCun (2015): AG News, Yelp, Amazon, Yahoo Answers.

Each lies in the folder of its published archive (`yelp_review_full_csv/train.csv`, `test.csv`) or
in one with our short name (`yelp_full/`), plain or gzipped: no header, the class number from 1,
then one or more text fields in which `\n` stands for a line break and `""` for a quote.
"""

from __future__ import annotations

import csv
import gzip
import heapq
import html
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from heedful.corpora.documents import Corpus
from heedful.corpora.entries import CATALOGUE, Entry
from heedful.corpora.recipes import Row, Wanted, build
from heedful.corpora.root import expect, find, locate
from heedful.corpora.splits import key
from heedful.errors import InputError, unknown

SOURCE = CATALOGUE["yelp_full"].source
FAMILIES = ("ag_news", "yelp_full", "amazon_full", "yahoo_answers")
AG_SUBSET = "train_subset.csv"
"""A part of AG News's training file that may stand in its place, and the rows of its classes."""
AG_SUBSET_COUNTS = (7_099, 7_093, 7_062, 7_010)
_LOST_AMPERSAND = re.compile(r"\s?(?<!&)#(\d+);")


def _clean(field: str) -> str:
    """A text field with its escapes undone: line breaks, quotes, HTML entities."""
    field = field.replace("\\n", "\n").replace('\\"', '"').replace("\\", " ")
    field = _LOST_AMPERSAND.sub(lambda match: f"&#{match[1]};", field)
    return html.unescape(field)


def _records(path: Path) -> Iterator[list[str]]:
    """The file's CSV records; nothing is held in memory."""
    opened = gzip.open if path.suffix == ".gz" else open
    limit = csv.field_size_limit(1 << 30)
    try:
        with opened(path, "rt", encoding="utf-8", newline="") as file:
            yield from csv.reader(file)
    except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is damaged ({error}); fetch it again.") from error
    finally:
        csv.field_size_limit(limit)


def _file(root: Path, entry: Entry, split: str) -> Path:
    """Where the split's CSV is: in the short folder, or in that of the archive."""
    file = next(name for name in entry.files if name.endswith(f"/{split}.csv"))
    names = (f"{entry.name}/{split}.csv", file, *entry.alternatives[file])
    return find(root, next((name for name in names if locate(root, name)), file), entry.source)


def _rows(
    path: Path,
    entry: Entry,
    split: str,
    counts: Mapping[int, int],
    kept: Mapping[int, int],
    wanted: Wanted,
    limit: int | None,
) -> list[Row]:
    """The rows of the kept classes; at most `limit` of them, drawn by the seed while reading."""
    found: Counter[int] = Counter()

    def stream() -> Iterator[Row]:
        for number, record in enumerate(_records(path)):
            if len(record) < 2 or not record[0].isdecimal():
                raise InputError(
                    f"{path}, record {number + 1}: expected a class number and text fields."
                )
            class_ = int(record[0])
            found[class_] += 1
            if class_ in kept:
                fields = record[1:] if wanted.recipe.with_title else record[2:]
                text = "\n\n".join(_clean(field) for field in fields if field)
                yield Row(f"{split}-{number}", text, kept[class_])

    rows = (
        list(stream())
        if limit is None
        else heapq.nsmallest(limit, stream(), key=lambda row: key(wanted.seed, row.id))
    )
    other = entry.counts.get("other_test")
    if split == "test" and found.total() == other:
        counts = dict.fromkeys(counts, other // len(counts))
    expect(
        path,
        {f"rows of class {class_}": n for class_, n in found.items()},
        {f"rows of class {class_}": n for class_, n in counts.items()},
    )
    return rows


def ag_classes(task: str) -> dict[int, int]:
    """Which class numbers of AG News a task keeps, and their labels: `world-business`."""
    names = {"world": 1, "sports": 2, "business": 3, "scitech": 4}
    if not task:
        return {number: number - 1 for number in names.values()}
    chosen = task.split("-")
    for name in chosen:
        if name not in names:
            raise unknown("class of ag_news", name, names)
    if len(set(chosen)) < 2:
        raise InputError(f"ag_news:{task} has one class only; name two or more, joined by -.")
    return {names[name]: label for label, name in enumerate(dict.fromkeys(chosen))}


def read_zhang(
    family: str, wanted: Wanted, limit: int | None = None, stand_in_for: str | None = None
) -> Corpus:
    """One of the four corpora; fields are joined by an empty line, so a title is a sentence.

    `limit` keeps that many documents of each split, drawn by the seed. AG News is read from its
    training subset where the full file is not there, and the notes say so.
    """
    entry = CATALOGUE[family]
    names = entry.names[""]
    numbers = range(1, len(names) + 1)
    kept = (
        ag_classes(wanted.task)
        if family == "ag_news"
        else {number: number - 1 for number in numbers}
    )
    rows: dict[str, list[Row]] = {}
    notes = {}
    for split in ("train", "test"):
        path, size = _file(wanted.root, entry, split), entry.counts[split] // len(names)
        counts = dict.fromkeys(numbers, size)
        if path.name.startswith(AG_SUBSET):
            counts = dict(zip(numbers, AG_SUBSET_COUNTS, strict=True))
            missing = sum(size - counts[number] for number in kept)
            notes["training rows of the official set that are not here"] = missing
        rows[split] = _rows(path, entry, split, counts, kept, wanted, limit)
    classes = [names[number - 1] for number in kept]
    return build(wanted, classes, rows, notes, stand_in_for)
