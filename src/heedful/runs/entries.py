"""What a path may be that somebody else has made: a plain file, or a folder of such."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from heedful.errors import InputError


def refuse_pipe(path: Path | str) -> None:
    """Raises for a pipe, a socket or a device, which reading would wait for without an end."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise InputError(f"{path} is a pipe, socket or device; expected a plain file.")


def refuse_pipes(folder: Path | str, deep: int = 1) -> None:
    """The same for what lies in a folder, and in folders so many levels below."""
    for entry in _entries(folder, deep):
        refuse_pipe(entry.path)


def refuse_links(folder: Path) -> None:
    """Raises for a link anywhere in a folder, which could lead out of it."""
    for entry in _entries(folder):
        if entry.is_symlink():
            raise InputError(
                f"{entry.path} is a link, and heedful follows none inside a run; put the file "
                "or folder itself there."
            )


def refuse_other_bytes(folder: Path) -> None:
    """Raises for a name that is no UTF-8, under which tables cannot be written."""
    try:
        str(folder).encode("utf-8")
    except UnicodeEncodeError:
        said = f"{folder} has bytes in its name that are no UTF-8; name another --out."
        raise InputError(said) from None


def _entries(folder: Path | str, deep: int | None = None) -> Iterator[os.DirEntry[str]]:
    """What lies in a folder, and in folders so many levels below (all: None); links are ends."""
    try:
        found = os.scandir(folder)
    except FileNotFoundError:  # gone since it was listed
        return
    with found as entries:
        for entry in entries:
            yield entry
            if deep != 0 and entry.is_dir(follow_symlinks=False):
                yield from _entries(entry.path, None if deep is None else deep - 1)
