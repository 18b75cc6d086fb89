"""Progress on stderr: a bar with speed and time left, or a line now and then off a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from heedful.errors import visible

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

QUIET_SECONDS = 10.0
"""Least time between two lines when stderr is not a terminal."""


class Ticker:
    """Something that counts up to a total and says how far it is."""

    def __init__(self, label: str, total: int, unit: str) -> None:
        self.label, self.total, self.unit = visible(label), total, unit
        self.done = self.skipped = 0
        self.note = ""
        self._started = self._said = time.monotonic()

    def advance(self, count: int = 1, note: str | None = None) -> None:
        """Counts further; `note` is shown behind the numbers."""
        self.done += count
        self.note = self.note if note is None else visible(note)
        self._show()

    def skip(self, count: int) -> None:
        """Counts what an earlier run has done, which says nothing about the speed of this one."""
        if count:
            self.skipped += count
            self._say(f"{self.label} goes on from {count:,} of {self.total:,} {self.unit}.")
            self.advance(count)

    def _say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def _speed(self, seconds: float) -> float:
        return (self.done - self.skipped) / max(seconds, 1e-9)

    def _show(self) -> None:
        now = time.monotonic()
        if now - self._said >= QUIET_SECONDS:
            self._said = now
            print(self.line(now - self._started), file=sys.stderr, flush=True)

    def line(self, seconds: float) -> str:
        """How far it is, as one line of text."""
        speed = self._speed(seconds)
        left = (self.total - self.done) / speed if speed > 0 else float("inf")
        return (
            f"{self.label}: {self.done:,}/{self.total:,} {self.unit}, "
            f"{speed:,.0f} {self.unit}/s, {left:.0f} s left {self.note}"
        ).rstrip()


class _Silent(Ticker):
    def _show(self) -> None:
        pass

    def _say(self, line: str) -> None:
        pass


class _Bar(Ticker):
    def __init__(self, label: str, total: int, unit: str, bar: Progress, task: TaskID) -> None:
        super().__init__(label, total, unit)
        self._bar, self._task = bar, task

    def _show(self) -> None:
        speed = self._speed(time.monotonic() - self._started)
        said = f"{speed:,.0f} {self.unit}/s {self.note}"
        self._bar.update(self._task, completed=self.done, said=said)

    def _say(self, line: str) -> None:
        self._bar.console.print(line, highlight=False)


@contextmanager
def ticking(label: str, total: int, unit: str = "documents", show: bool = True) -> Iterator[Ticker]:
    """A ticker for a piece of work of known size."""
    if not show:
        yield _Silent(label, total, unit)
    elif not sys.stderr.isatty():
        yield Ticker(label, total, unit)
    else:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TimeRemainingColumn(),
            TextColumn("[dim]{task.fields[said]}"),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            yield _Bar(label, total, unit, bar, bar.add_task(label, total=total, said=""))
