"""One process per folder."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from heedful.errors import InputError
from heedful.runs.provenance import now

LOCK = ".lock"


@contextmanager
def locked(folder: Path | str) -> Iterator[None]:
    """Holds a folder (made if missing) for this process; a second holder gets an InputError.

    The lock is the operating system's (`flock`) on a file that says who holds it. The system frees
    it when the process ends in whatever way, so a killed run or a reboot leaves no stale lock; the
    file is removed at a normal end.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = _acquired(folder)
    except OSError as error:
        raise InputError(
            f"Cannot write {folder}: {error.strerror}; choose another --out."
        ) from error
    try:
        holder = {"process": os.getpid(), "host": socket.gethostname(), "since": now()}
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(holder).encode(), 0)
        yield
    finally:
        (folder / LOCK).unlink(missing_ok=True)  # first: whoever opens it later starts afresh
        os.close(handle)


def _acquired(folder: Path) -> int:
    """The open, locked lock file of a folder."""
    path = folder / LOCK
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        if not _flock(handle):
            holder = os.pread(handle, 4096, 0)
            os.close(handle)
            raise _in_use(folder, holder)
        # The last holder may have removed the file between our opening it and locking it.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        os.close(handle)


def _flock(handle: int) -> bool:
    """Whether the lock is now ours."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # Some network file systems have no locks at all; working unguarded beats not working.
        return error.errno in (errno.ENOLCK, errno.EOPNOTSUPP)
    return True


def _in_use(folder: Path, holder: bytes) -> InputError:
    try:
        found = json.loads(holder)
        who = f"process {found['process']} on {found['host']} since {found['since']}"
    except (ValueError, KeyError, TypeError):  # the holder has not yet written its name
        who = "another process"
    return InputError(f"{folder} is in use by {who}; wait for it or choose another --out.")
