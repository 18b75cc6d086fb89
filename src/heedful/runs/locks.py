"""One process per folder."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from heedful.errors import InputError
from heedful.runs.provenance import now

LOCK = ".lock"
_BEGINNING = b'{"process": '


@contextmanager
def locked(folder: Path | str) -> Iterator[bool]:
    """Holds a folder (made if missing) for this process; a second holder gets an InputError.

    Gives whether the folder can be written.

    The lock is the operating system's (`flock`) on a file that says who holds it. The system frees
    it when the process ends in whatever way, so a killed run or a reboot leaves no stale lock; the
    file is removed at a normal end. A folder that is there and cannot be written is not locked:
    what is finished can be read from it, and whatever is written to it says why it cannot be.
    """
    folder = Path(folder)
    handle = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = _acquired(folder)
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES) or not folder.is_dir():
            raise InputError(
                f"Cannot write {folder}: {error.strerror}; choose another --out."
            ) from error
    try:
        if handle is not None:
            holder = {"process": os.getpid(), "host": socket.gethostname(), "since": now()}
            with suppress(OSError):  # a full disk holds the lock, if not the name
                os.ftruncate(handle, 0)
                os.pwrite(handle, json.dumps(holder).encode(), 0)
        yield handle is not None
    finally:
        if handle is not None:
            (folder / LOCK).unlink(missing_ok=True)  # first: whoever opens it later starts afresh
            os.close(handle)


def _acquired(folder: Path) -> int:
    """The open, locked lock file of a folder; a link or another's file in its place is refused."""
    path = folder / LOCK
    while True:
        if path.is_symlink():
            raise _not_ours(path)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        handle = os.open(path, flags, 0o666)
        if not _is_ours(handle):
            os.close(handle)
            raise _not_ours(path)
        if not _flock(handle):
            holder = os.pread(handle, 4096, 0)
            os.close(handle)
            raise _in_use(folder, holder)
        # The last holder may have removed the file between our opening it and locking it.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        os.close(handle)


def _is_ours(handle: int) -> bool:
    """Whether it is a file of this name alone that we wrote, or an empty one."""
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        return False
    return os.pread(handle, len(_BEGINNING), 0) in (b"", _BEGINNING)


def _not_ours(path: Path) -> InputError:
    return InputError(
        f"{path} is a link or another program's file, where heedful writes who holds the folder; "
        "move it away or choose another --out."
    )


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
