"""One thread that computes for everybody: in steps, what is quick first, and never too much of it.

A model is lent to one computation at a time, so there is one worker. Work is cut into steps; after
each of them what is more urgent goes first. A step that is under way gives way too: the model is
watched while it runs, and a step whose client has gone, or that holds up something quicker, ends at
the model's next call. What was held up is begun again, and after a few times left in peace.
"""

from __future__ import annotations

import _thread
import heapq
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from torch import nn

from heedful.errors import InputError

Event = dict[str, Any]
"""Something that the client is told, as plain data."""

EDIT, FIRST, LATER, IDLE = range(4)
"""What goes first: an edit that somebody waits for, the first look at a text, the rest of its
explanations, and what is done when there is nothing else to do."""
MOST_JOBS = 16
"""Work in flight; more is answered with `Busy`."""
MOST_INTERRUPTIONS = 4
"""How often a step is begun again before it is left in peace."""
BEGINS = 60
"""Seconds after which a thread that has not begun never will."""

logger = logging.getLogger(__name__)


class Busy(Exception):
    """So much is under way already that nothing more is taken."""


class Interrupted(BaseException):
    """Ends a step from inside a model; not an `Exception`, so that nothing on the way keeps it."""


class WorkStep(NamedTuple):
    """A part of a job: the model it uses, and what computes its event."""

    model: nn.Module
    compute: Callable[[], Event]


@dataclass(eq=False)
class Job:
    """Work for one client."""

    steps: deque[WorkStep]
    """What is left to do; a step may add others behind itself."""
    tell: Callable[[Event | None], None]
    """Is given every event, and None at the end; called in the worker's thread."""
    urgency: int = FIRST
    is_cancelled: bool = False
    interruptions: int = 0
    """How often the step in hand was begun in vain."""


@dataclass
class Worker:
    """A thread and the jobs that wait for it."""

    most: int = MOST_JOBS
    _waiting: list[tuple[int, int, Job]] = field(default_factory=list)
    _in_flight: set[int] = field(default_factory=set)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _numbers: Iterator[int] = field(default_factory=count)
    _is_stopped: bool = False
    _is_begun: threading.Event = field(default_factory=threading.Event)
    _is_over: threading.Event = field(default_factory=threading.Event)

    @property
    def in_flight(self) -> int:
        """How many jobs wait or are being done, idle work left out."""
        return len(self._in_flight)

    def start(self) -> None:
        """Begins to work."""
        # Not `Thread.start`, which waits for ever for a thread that had no memory to begin.
        _thread.start_new_thread(self._work, ())
        if not self._is_begun.wait(BEGINS):
            raise MemoryError("a thread did not begin")

    def stop(self) -> None:
        """Ends the thread, at the next call of a model; jobs that wait are dropped."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        if self._is_begun.is_set():
            self._is_over.wait()

    def submit(self, job: Job) -> None:
        """Takes a job, or raises `Busy`; idle work is always taken."""
        with self._changed:
            if job.urgency != IDLE:
                if len(self._in_flight) >= self.most:
                    raise Busy
                self._in_flight.add(id(job))
            self._push(job)
            self._changed.notify_all()

    def cancel(self, job: Job) -> None:
        """Forgets a job, wherever it is."""
        with self._changed:
            job.is_cancelled = True
            self._waiting = [entry for entry in self._waiting if entry[2] is not job]
            heapq.heapify(self._waiting)
            self._in_flight.discard(id(job))

    def _push(self, job: Job) -> None:
        heapq.heappush(self._waiting, (job.urgency, next(self._numbers), job))

    def _work(self) -> None:
        self._is_begun.set()
        try:
            self._run()
        finally:
            self._is_over.set()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_stopped)
                if self._is_stopped:
                    return
                _, _, job = heapq.heappop(self._waiting)
            is_more = self._advance(job)
            with self._changed:
                if is_more and not job.is_cancelled:
                    self._push(job)
                else:
                    self._in_flight.discard(id(job))

    def _advance(self, job: Job) -> bool:
        """Does a job's next step; whether there is more to do."""
        step = job.steps[0]

        def must_stop() -> bool:
            may_wait = job.interruptions < MOST_INTERRUPTIONS
            held_up = may_wait and any(entry[0] < job.urgency for entry in self._waiting[:1])
            return job.is_cancelled or self._is_stopped or held_up

        try:
            with interruptible(step.model, must_stop):
                event = step.compute()
        except Interrupted:
            job.interruptions += 1
            return True
        except InputError as error:
            job.tell({"error": str(error)})
        except Exception:
            logger.exception("a step of the live page failed")
            job.tell({"error": "This could not be computed; the terminal says why.", "ours": True})
        else:
            job.steps.popleft()
            job.interruptions, job.urgency = 0, max(job.urgency, LATER)
            job.tell(event)
            if job.steps:
                return True
        job.tell(None)
        return False


@contextmanager
def interruptible(model: nn.Module, must_stop: Callable[[], bool]) -> Iterator[None]:
    """Lends a model whose every part looks up, before it runs, whether to go on."""

    def look_up(*_: object) -> None:
        if must_stop():
            raise Interrupted

    handles = [part.register_forward_pre_hook(look_up) for part in model.modules()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
