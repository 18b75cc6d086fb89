"""A process that kills itself at its k-th file operation, and notes the work that it did before."""

from __future__ import annotations

import builtins
import io
import os
import signal
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

CHANGING = ("rename", "replace", "remove", "unlink", "mkdir", "rmdir", "ftruncate", "pwrite")
"""Functions of `os` that change what lies on disk."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_write, _write_at = os.write, os.pwrite


class Watched:
    """What a process does to files: every operation has two moments, just before and just after."""

    def __init__(self, kill_at: int | None, work: Path, moments: Path) -> None:
        self.kill_at, self.moment = kill_at, 0
        self.work = os.open(work, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.moments = os.open(moments, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def begin(self) -> None:
        """Puts itself in the place of every function that writes; only in a process to be killed.

        Libraries in other languages write between two of these moments, under a temporary name.
        """
        for name in CHANGING:
            setattr(os, name, self._around(getattr(os, name), lambda *_, **__: True))
        os.open = self._around(os.open, lambda path, flags, *_, **__: bool(flags & WRITING))
        io.open = builtins.open = self._around(io.open, _is_for_writing)
        # A killed process loses nothing that it has handed to the system: no need to wait.
        os.fsync = self._around(lambda handle: None, lambda handle: True)

    def did(self, what: str) -> None:
        """Notes a piece of work in a file that outlives a kill."""
        _write(self.work, f"{what}\n".encode())

    def _around(self, do: Callable[..., Any], is_counted: Callable[..., bool]) -> Any:
        @wraps(do)
        def done(*given: Any, **named: Any) -> Any:
            if not is_counted(*given, **named):
                return do(*given, **named)
            self._pass()
            result = do(*given, **named)
            self._pass()
            return result

        return done

    def _pass(self) -> None:
        self.moment += 1
        if self.moment == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        _write_at(self.moments, str(self.moment).encode(), 0)


def _is_for_writing(file: Any, mode: str = "r", *_: Any, **__: Any) -> bool:
    return not isinstance(file, int) and any(sign in mode for sign in "wax+")


def note_work(watched: Watched) -> None:
    """Notes every update of a training and every computed step.

    How many updates or batches are kept together is a matter of seconds, of the machine's that is;
    here it is as few as can be, so that what a kill may cost can be counted.
    """
    from heedful.calibration import calibrate
    from heedful.jobs import examination
    from heedful.reproduction import results
    from heedful.training import loop

    def update(run: Any, batch: Any, do: Callable[..., None] = loop._Run._update) -> None:
        watched.did("update")
        do(run, batch)

    def noting(do: Callable[..., Any]) -> Callable[..., Any]:
        def step(folder: Any, name: str, compute: Callable[[], Any], **named: Any) -> Any:
            return do(folder, name, lambda: (watched.did(name), compute())[1], **named)

        return step

    loop._Run._update = update
    loop.CHEAP = float("inf")
    examination.SHARD_SECONDS = 0.0
    for module in (calibrate, examination, results):
        module.step = noting(module.step)
