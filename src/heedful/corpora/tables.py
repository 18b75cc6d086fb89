"""Columns of a CSV, TSV, JSON Lines or Parquet file, or one sentence about what is wrong."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Literal

from heedful.errors import InputError
from heedful.runs.entries import refuse_pipe
from heedful.runs.progress import ticking

Table = dict[str, list[Any]]
"""Columns by name, all of one length; a missing value is None."""

_UNDECODABLE = 0.05
"""A file with a larger share of bytes that are not UTF-8 is not taken for text."""


_RATIO, _UNPACKED = 200, 100_000_000
"""Text packs to a tenth, hardly to a hundredth; what unpacks to more than this is a trap."""
_LIST = re.compile(r"\s*\[")
_LONG = 10_000_000
"""Characters of JSON Lines from which on reading tells how far it is."""
_LABELS = 100
"""A column with more different cells is no column of labels."""
_CELLS = 100_000_000
"""A packed table with more would fill the memory."""


def bytes_of(path: Path) -> bytes:
    """The file's bytes, unpacked where its name ends in `.gz`; a trap is refused."""
    refuse_pipe(path)
    try:
        if path.suffix != ".gz":
            return path.read_bytes()
        most = max(_UNPACKED, _RATIO * path.stat().st_size)
        with gzip.open(path) as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise InputError(
                f"{path} unpacks to more than {most / 1e6:,.0f} MB, {_RATIO} times its size, which "
                "no text does; unpack it and look."
            )
        return data
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} is not a whole gzip file ({error}); fetch it again.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error


def decode(data: bytes, path: Path) -> str:
    """UTF-8 text with or without a byte order mark; stray bytes become U+FFFD."""
    for mark, name in ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16")):
        if data.startswith(mark):
            raise InputError(f"{path} is {name} text, expected UTF-8; save it again as UTF-8.")
    if b"\0" in data:
        raise InputError(f"{path} holds binary data, expected UTF-8 text.")
    text = data.decode("utf-8-sig", errors="replace")
    if text.count("�") > _UNDECODABLE * len(text):
        raise InputError(f"{path} is not UTF-8 text: too many bytes cannot be decoded.")
    return text


def _refuse_repeats(names: list[str], path: Path) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(
            f"{path} has more than one column named {repeated[0]!r}; give each its own name."
        )


def _separated(text: str, path: Path, separator: str) -> Table:
    """The columns of a CSV or TSV; the first line names them."""
    import pandas as pd

    is_plain = separator == "\t" and _has_stray_quotes(text)
    quoting: Literal[0, 3] = 3 if is_plain else 0  # csv.QUOTE_NONE, csv.QUOTE_MINIMAL
    source = io.StringIO(text)
    try:
        cells = pd.read_csv(
            source, sep=separator, header=None, dtype=str, na_filter=False, quoting=quoting
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(f"{path} is not a well-formed table: {str(error).strip()}.") from error
    names = [str(name).strip() for name in cells.iloc[0]]
    _refuse_repeats(names, path)
    body = cells.iloc[1:]
    table = {
        name: [cell if isinstance(cell, str) else None for cell in body[index].tolist()]
        for index, name in enumerate(names)
    }
    _refuse_nameless(table, path, separator)
    _refuse_swallowed(table, path, separator)
    return table


def _refuse_nameless(table: Table, path: Path, separator: str) -> None:
    """Raises where the first line is a row: its label is that of many others."""
    for name, cells in table.items():
        if len(table) > 1 and cells.count(name) > 1 and len(set(cells)) <= _LABELS:
            named = separator.join("label" if one == name else "text" for one in table)
            raise InputError(
                f"{path} has no line of names: its first line has {name!r} as {cells.count(name):,}"
                f" other rows do. Put one such as {named!r} above it, with a name for each column."
            )


def _has_stray_quotes(text: str) -> bool:
    """Whether lines between tabs are rows as they stand, and some cell opens a quote it never ends.

    Text that was put between tabs as it was, messages say, has its quotation marks as letters.
    """
    rows = [line.rstrip("\r").split("\t") for line in text.split("\n") if line.strip()]
    if len({len(row) for row in rows}) != 1 or len(rows[0]) < 2:
        return False
    opened = (cell for row in rows for cell in row if cell.startswith('"'))
    return any(cell.count('"') % 2 for cell in opened)


def _refuse_swallowed(table: Table, path: Path, separator: str) -> None:
    """Raises where a cell holds whole rows: between two stray quotes lines are no longer rows.

    Rows are lines that have as many cells as there are columns (the first: as are left), one of
    which stands in its column elsewhere too, as a label does.
    """
    columns = [{cell for cell in cells if cell} for cells in table.values()]
    for place, cells in enumerate(table.values()):
        for row, cell in enumerate(cells, start=1):
            for number, line in enumerate(cell.split("\n")[:-1] if cell else ()):
                beside = columns if number else columns[place:]
                found = line.rstrip("\r").split(separator)
                is_row = len(found) == len(beside) > 1
                if is_row and any(one in seen for one, seen in zip(found, beside, strict=True)):
                    raise InputError(
                        f"{path}, row {row}: a cell goes on after {line[:60]!r}, which looks like "
                        'a row of its own; a quote (") is stray or not closed. Remove it, or '
                        "double it inside a quoted cell."
                    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    repeated = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if repeated:
        raise ValueError(f"the key {repeated[0]!r} occurs twice")
    return dict(pairs)


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not well-formed JSON ({error}).") from error


def _json_lines(text: str, path: Path) -> Table:
    """The columns of JSON Lines, or of one JSON list of objects."""
    records = iter(_json(text, str(path))) if _LIST.match(text) else None
    table: Table = {}
    for number, record in enumerate(records or _lines(text, path)):
        if not isinstance(record, dict):
            raise InputError(
                f"{path}, record {number + 1}: expected a JSON object, got {type(record).__name__}."
            )
        for name in record:
            if name not in table:
                table[name] = [None] * number
        for name, cells in table.items():
            cells.append(record.get(name))
    return table


def _lines(text: str, path: Path) -> Iterator[Any]:
    """What each line says, one at a time: lines and records would fill the memory together."""
    start, size = 0, len(text)
    with ticking(f"reading {path}", size, "characters", show=size >= _LONG) as ticker:
        for number in count(1):
            if start > size:
                return
            end = text.find("\n", start)
            end = size if end < 0 else end
            if not text[start:end].isspace() and end > start:
                yield _json(text[start:end], f"{path}, line {number}")
            if not number % 1000:
                ticker.advance(end - ticker.done)
            start = end + 1


def _parquet(path: Path) -> Table:
    """The columns of a Parquet file."""
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            told = file.metadata
            is_small = told.num_rows * told.num_columns <= _CELLS
            # No threads: without memory to start them it would wait for ever.
            table = file.read(use_threads=False) if is_small else pyarrow.table({})
    except (pyarrow.ArrowException, OSError, ValueError) as error:  # also names that are no UTF-8
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise InputError(f"{path} is not a readable Parquet file: {reason}.") from error
    if not is_small:
        raise InputError(
            f"{path} has {told.num_rows:,} rows of {told.num_columns:,} columns; more than "
            f"{_CELLS:,} cells are not read at once. Take a sample."
        )
    _refuse_repeats(table.column_names, path)
    return {name: _cells(table.column(name), name, path) for name in table.column_names}


def _cells(column: Any, name: str, path: Path) -> list[Any]:
    """The values of a Parquet column; what Python has no value for is read as text or number."""
    import pyarrow

    texts = pyarrow.binary(), pyarrow.string()
    for kind in (None, *texts, pyarrow.int64(), pyarrow.int32()):
        try:
            values = (column if kind is None else column.cast(kind)).to_pylist()
        except (pyarrow.ArrowException, ValueError, OverflowError):
            continue  # dates beyond Python's, strings that are not UTF-8
        return [
            value.decode("utf-8", errors="replace") if isinstance(value, bytes) else value
            for value in values
        ]
    raise InputError(f"{path}: column {name!r} cannot be read; leave it out.")


_PARSERS: dict[str, Callable[[str, Path], Table]] = {
    ".csv": lambda text, path: _separated(text, path, ","),
    ".tsv": lambda text, path: _separated(text, path, "\t"),
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json_lines,
}
SUFFIXES = (*_PARSERS, ".parquet")


def suffix_of(path: Path) -> str:
    """The suffix that says the format: that before `.gz` for compressed text."""
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    return plain.suffix.lower()


def read_table(path: Path) -> Table:
    """The file's columns, by its suffix; `.gz` may follow the suffix of a text format."""
    if path.is_dir():
        raise InputError(f"{path} is a folder, expected a file ({', '.join(SUFFIXES)}).")
    if not path.exists():
        raise InputError(f"{path} does not exist; expected a file ({', '.join(SUFFIXES)}).")
    refuse_pipe(path)
    suffix = suffix_of(path)
    if suffix == ".parquet" and path.suffix != ".gz":
        table = _parquet(path)
    elif suffix in _PARSERS:
        text = decode(bytes_of(path), path)
        if not text.strip():
            raise InputError(f"{path} is empty; expected one document per row or line.")
        table = _PARSERS[suffix](text, path)
    else:
        raise InputError(
            f"{path} has the suffix {path.suffix or 'of no format'!r}; "
            f"expected one of {', '.join(SUFFIXES)} (text formats also with .gz)."
        )
    if not any(table.values()):
        raise InputError(f"{path} has no rows below its header; expected one document per row.")
    return table
