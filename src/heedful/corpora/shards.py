"""Documents in many files, read one file at a time: from the disk, or from an object store."""

from __future__ import annotations

import glob
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.corpora.files import FileReading, read_texts
from heedful.corpora.tables import SUFFIXES, suffix_of
from heedful.errors import InputError

_STORE = re.compile(r"[a-z][a-z0-9+.-]+://")


def are_shards(data: str) -> bool:
    """Whether this names files to be read one at a time: by a pattern, or in an object store."""
    is_pattern = any(sign in data for sign in "*?[") and not Path(data).exists()
    return is_pattern or bool(_STORE.match(data))


def shards_of(pattern: str) -> tuple[str, ...]:
    """The files that the pattern names, in the order of their names."""
    if store := _STORE.match(pattern):
        fs = _opened(pattern)
        found = [store[0] + str(name) for name in fs.glob(pattern.removeprefix(store[0]))]
    else:
        found = [str(Path(name).resolve()) for name in glob.glob(pattern, recursive=True)]
    files = sorted(name for name in found if suffix_of(Path(name)) in SUFFIXES)
    if not files:
        raise InputError(
            f"{pattern} names no file that can be read; expected some of {', '.join(SUFFIXES)}."
        )
    return tuple(files)


@dataclass(frozen=True)
class ShardReader:
    """Reads files of one kind, for a model that knows its classes."""

    classes: tuple[str, ...]
    tokeniser: str = "words"
    options: Mapping[str, Any] | None = None
    """Columns and labels as `read_texts` takes them."""
    columns: tuple[str | None, ...] | None = None
    """Columns of text, label, split and id that every file must have; none: of its own."""

    def read(self, file: str) -> FileReading:
        """The documents of one file; an InputError names it where it cannot be read."""
        options = dict(self.options or {})
        if self.columns is not None:
            named = zip(("text", "label", "split", "id"), self.columns, strict=True)
            options |= {role: name for role, name in named if name is not None}
        with fetched(file) as path:
            try:
                found = read_texts(path, self.classes, tokeniser=self.tokeniser, **options)
            except InputError as error:
                raise InputError(str(error).replace(str(path), file)) from error
        if self.columns is not None and tuple(found.columns[:4]) != self.columns:
            raise InputError(
                f"{file} has other columns than the files before it: {_said(found.columns[:4])}, "
                f"expected {_said(self.columns)}."
            )
        return found


def _said(columns: tuple[str | None, ...]) -> str:
    named = zip(("text", "label", "split", "id"), columns, strict=True)
    return ", ".join(f"{role} in {name!r}" for role, name in named if name is not None)


@contextmanager
def fetched(file: str) -> Iterator[Path]:
    """The file on this disk, for as long as it is read."""
    if not _STORE.match(file):
        yield Path(file)
        return
    fs, name = _opened(file), file.rsplit("/", 1)[-1]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        try:
            with fs.open(file, "rb") as source, path.open("wb") as target:
                shutil.copyfileobj(source, target)
        except OSError as error:
            raise InputError(f"{file} cannot be read: {error.strerror or error}.") from error
        yield path


def _opened(url: str) -> Any:
    """The file system of an object store."""
    try:
        import fsspec
    except ImportError:
        raise InputError(
            f"{url} lies in an object store, which takes the package fsspec; install "
            "heedful[cluster]."
        ) from None
    try:
        return fsspec.filesystem(url.partition("://")[0])
    except (ValueError, ImportError) as error:
        raise InputError(f"{url} cannot be opened: {error}.") from error
