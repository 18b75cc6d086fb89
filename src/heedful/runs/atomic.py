"""Files that are either whole or not there: written under another name, then renamed."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.errors import InputError
from heedful.runs.entries import refuse_pipe
from heedful.runs.memory import refuse_without_room

if TYPE_CHECKING:
    import pandas as pd

_MARK = ".tmp"
_OURS = re.compile(r"\..*\.[0-9a-f]{12}\.tmp(\.\w+)?", re.DOTALL)
_FORMULAS = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def writing(path: Path | str) -> Iterator[Path]:
    """A temporary path near `path` that becomes `path` when the block ends well.

    The file is flushed to the disk before it is renamed; after an error it is removed and what was
    at `path` before is untouched. The suffix is kept, since writers choose their format by it. It
    lies in a folder of its own, which takes in what libraries write beside (safetensors does).
    Missing parent folders are made.
    """
    refuse_without_room()
    path = Path(path)
    folder = _temporary(path)
    temporary = folder / path.name
    try:
        with _explained(path):
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
            folder.mkdir(parents=True)
            temporary.touch(exist_ok=False)
        with _explained(path, only=_DISK_FULL):
            yield temporary
        with _explained(path):
            _sync(temporary)
            temporary.replace(path)
            _sync(path.parent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def writing_folder(path: Path | str) -> Iterator[Path]:
    """A temporary folder beside `path` that takes its place when the block ends well.

    An older folder at `path` is moved aside first and deleted last; a kill between the two renames
    leaves no folder at `path`, never a mixed one.
    """
    refuse_without_room()
    path = Path(path)
    temporary, old = _temporary(path), _temporary(path)
    with _explained(path):
        if path.exists() and not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        temporary.mkdir(parents=True)
    try:
        with _explained(path, only=_DISK_FULL):
            yield temporary
        with _explained(path):
            for file in sorted(temporary.rglob("*")):
                _sync(file)
            if path.exists():
                path.rename(old)
            temporary.rename(path)
            _sync(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def remove_leftovers(folder: Path | str) -> None:
    """Deletes what killed processes left half-written; only for who holds the folder's lock."""
    named = [path for path in Path(folder).rglob(f".*{_MARK}*") if _OURS.fullmatch(path.name)]
    for leftover in named:
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def write_text(path: Path | str, text: str) -> None:
    """Writes UTF-8 text, whole or not at all."""
    with writing(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))


def write_csv(path: Path | str, table: pd.DataFrame, float_format: str | None = None) -> None:
    """Writes a table that may hold a user's words, whole or not at all.

    A spreadsheet would carry out a text that begins as a formula does: an apostrophe before it
    keeps it a text, and `read_csv` takes it away again.
    """
    with writing(path) as temporary:
        _each_text(table, _kept).to_csv(
            temporary, index=False, float_format=float_format, lineterminator="\n"
        )


def read_csv(path: Path | str) -> pd.DataFrame:
    """The table that `write_csv` wrote, its texts as they were."""
    import pandas as pd

    return _each_text(pd.read_csv(path), _given)


def _each_text(table: pd.DataFrame, change: Callable[[Any], Any]) -> pd.DataFrame:
    """The table with its texts, and the names of its columns, changed."""
    import pandas as pd

    changed = table.copy()
    for place, kind in enumerate(table.dtypes):
        if kind.kind not in "biuf":
            cells = [change(cell) for cell in table.iloc[:, place]]
            changed.isetitem(place, pd.Series(cells, dtype=object).to_numpy())
    changed.columns = pd.Index([change(name) for name in table.columns], dtype=object)
    return changed


def _is_formula(cell: Any) -> bool:
    return isinstance(cell, str) and cell.lstrip().startswith(_FORMULAS)


def _kept(cell: Any) -> Any:
    return f"'{cell}" if _is_formula(cell) else cell


def _given(cell: Any) -> Any:
    is_kept = isinstance(cell, str) and cell[:1] == "'" and _is_formula(cell[1:])
    return cell[1:] if is_kept else cell


def write_json(path: Path | str, value: Any) -> None:
    """Writes JSON in insertion order, whole or not at all; see `plain` for what is converted."""
    value = plain(value)
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        write_text(path, text + "\n")
    except UnicodeEncodeError:  # half a surrogate pair, from a damaged document: escape it
        write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def read_json(path: Path | str) -> Any:
    """The content of a JSON file, or an error that names the file and what is wrong with it."""
    path = Path(path)
    refuse_pipe(path)
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; check the path.") from None
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}; check the path.") from None
    except (ValueError, RecursionError) as error:  # bad JSON, bytes that are no text, deep nesting
        raise InputError(
            f"{path} is not valid JSON ({error}); it is damaged or not ours: "
            "delete it and run the command again."
        ) from None


def plain(value: Any) -> Any:
    """The value in JSON's own types.

    Not-a-number and infinities become null (JSON has neither), tuples lists, paths strings, numpy
    and torch scalars and arrays Python's; dataclasses become objects, by `to_json` where they have
    one. Anything else is a TypeError: a result nobody can read back should not be written.
    """
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_name(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "to_json"):
        return plain(value.to_json())
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "tolist"):  # numpy and torch, recognised without importing either
        return plain(value.tolist())
    raise TypeError(f"{type(value).__name__} has no JSON form: {value!r}")


def _name(key: Any) -> str:
    """An object's key: strings as they are, whole numbers as digits."""
    if isinstance(key, str):
        return key
    if isinstance(key, int) and not isinstance(key, bool):
        return str(int(key))
    raise TypeError(f"a JSON key is a string or a whole number, got {key!r}")


def _temporary(path: Path) -> Path:
    """A fresh hidden name beside `path`, with its suffix."""
    return path.with_name(f".{path.stem}.{secrets.token_hex(6)}{_MARK}{path.suffix}")


def _sync(path: Path) -> None:
    """Flushes a file or a folder's entries to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _explained(path: Path, only: set[int] | None = None) -> Iterator[None]:
    """Turns the system's refusal to write into a sentence; `only` limits it to some errors."""
    try:
        yield
    except Exception as error:
        # Libraries in other languages have errors of their own, which quote the system's words.
        full = [os.strerror(code) for code in _DISK_FULL if os.strerror(code) in str(error)]
        code = error.errno if isinstance(error, OSError) else None
        if not full and (not isinstance(error, OSError) or (only and code not in only)):
            raise
        said = full[0] if full else getattr(error, "strerror", None) or error
        raise InputError(f"Cannot write {path}: {said}; choose another --out.") from error
