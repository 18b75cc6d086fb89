"""Progress on stderr: a bar with speed and time left, or a line now and then off a terminal."""

from __future__ import annotations

import _thread
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from heedful.errors import visible

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

QUIET_SECONDS = 10.0
"""Least time between two lines when stderr is not a terminal."""
SILENT_SECONDS = 20.0
"""Most time between two lines, however slow the work."""


class Ticker:
    """Something that counts up to a total and says how far it is."""

    def __init__(self, label: str, total: int, unit: str) -> None:
        self.label, self.total, self.unit = visible(label), total, unit
        self.done = self.skipped = 0
        self.note = ""
        self._started = self._said = self._moved = time.monotonic()

    def advance(self, count: int = 1, note: str | None = None) -> None:
        """Counts further; `note` is shown behind the numbers."""
        self.done += count
        self._moved = time.monotonic()
        self.remark(self.note if note is None else note)

    def remark(self, note: str) -> None:
        """Shows `note` behind the numbers from now on."""
        self.note = visible(note)
        self._show()

    def skip(self, count: int) -> None:
        """Counts what an earlier run has done, which says nothing about the speed of this one."""
        if count:
            self.skipped += count
            self.say(f"{self.label} goes on from {count:,} of {self.total:,} {self.unit}.")
            self.advance(count)

    def say(self, line: str) -> None:
        """Says a line of its own."""
        print(visible(line), file=sys.stderr, flush=True)

    def _speed(self, seconds: float) -> float:
        return (self.done - self.skipped) / max(seconds, 1e-9)

    def _show(self) -> None:
        now = time.monotonic()
        # As soon as there is something to reckon from, what takes long says how long.
        is_estimate = self._said == self._started and 1 <= now - self._started < self._left(now)
        self._say_line(now, 0 if is_estimate else QUIET_SECONDS)

    def beat(self) -> None:
        """Says a line where none was said for long."""
        self._say_line(time.monotonic(), SILENT_SECONDS)

    def _say_line(self, now: float, least: float) -> None:
        if now - self._said >= least:
            self._said = now
            seconds = (self._moved if self.done > self.skipped else now) - self._started
            self.say(self.line(seconds))

    def _left(self, now: float) -> float:
        """Seconds that are left at the speed so far; none before anything is done."""
        speed = self._speed(now - self._started)
        return (self.total - self.done) / speed if speed > 0 else 0.0

    def line(self, seconds: float) -> str:
        """How far it is, as one line of text."""
        speed = self._speed(seconds)
        told = f"{self.label}: {self.done:,}/{self.total:,} {self.unit}, "
        if speed > 0:
            left = (self.total - self.done) / speed
            told += f"{in_words(speed, self.unit)}, {duration(left)} left"
        else:
            told += f"{duration(seconds)} so far"
        return f"{told} {self.note}".rstrip()


def in_words(speed: float, unit: str) -> str:
    """A speed as people say it: so many a second, or so many seconds for one.

    >>> in_words(40.2, "documents"), in_words(0.08, "documents")
    ('40 documents/s', '12 s a document')
    """
    if speed >= 1:
        return f"{speed:,.0f} {unit}/s"
    return f"{1 / speed:,.{0 if speed < 0.1 else 1}f} s a {unit.removesuffix('s')}"


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(90), duration(600), duration(9000)
    ('90 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


class _Silent(Ticker):
    def _show(self) -> None:
        pass

    def say(self, line: str) -> None:
        pass


class _Bar(Ticker):
    def __init__(self, label: str, total: int, unit: str, bar: Progress, task: TaskID) -> None:
        super().__init__(label, total, unit)
        self._bar, self._task = bar, task

    def _show(self) -> None:
        speed = self._speed(time.monotonic() - self._started)
        said = f"{in_words(speed, self.unit) if speed > 0 else ''} {self.note}"
        self._bar.update(self._task, completed=self.done, said=said)

    def say(self, line: str) -> None:
        self._bar.console.print(line, highlight=False)


@contextmanager
def ticking(label: str, total: int, unit: str = "documents", show: bool = True) -> Iterator[Ticker]:
    """A ticker for a piece of work of known size."""
    if not show:
        yield _Silent(label, total, unit)
    elif not sys.stderr.isatty():
        ticker, is_over = Ticker(label, total, unit), threading.Event()

        def beat() -> None:
            with suppress(MemoryError):
                while not is_over.wait(SILENT_SECONDS / 4):
                    ticker.beat()

        # Not `Thread.start`, which waits for ever for a thread that had no memory to begin.
        _thread.start_new_thread(beat, ())
        try:
            yield ticker
        finally:
            is_over.set()
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
