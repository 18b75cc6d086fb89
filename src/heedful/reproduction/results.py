"""Steps of a study and their results: computed once, kept on disk, shared, resumed after a kill."""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from heedful.errors import InputError
from heedful.runs import JSON, Form, commit, fingerprint, is_done, is_out_of_memory, now, step

T = TypeVar("T")

JOURNAL = "journal.jsonl"
"""One line per computed step: where, how long, by which commit. Travels with the steps."""
NO_ROOM = "{} found no memory left on {}; end what else runs there, or use a larger device"
KEPT = 16
"""Loaded results kept in memory."""


class Skipped(Exception):
    """A result that cannot be had, with the reason a person should read."""

    @property
    def reason(self) -> str:
        """Why, in a sentence."""
        return str(self)


class OutOfMemory(Skipped):
    """A result that the device had no room for at the moment."""


@dataclass(frozen=True, eq=False)
class Step(Generic[T]):
    """A piece of work of at most a few minutes, named and keyed by all that it depends on.

    `compute` gets the results, from which it takes those of `needs`. An InputError inside it (a
    missing corpus, a diverged training) skips this step and all that need it; any other error is
    a bug and ends the run.
    """

    name: str
    """Unique in the study; slashes make folders. Build it with `named`."""
    compute: Callable[[Results], T]
    inputs: Mapping[str, Any]
    """Everything the result depends on beside `needs`, in values that have a JSON form."""
    form: Form[T] = JSON
    """How the result lies on disk: JSON, TABLE or one of `heedful.reproduction.stages`."""
    needs: tuple[Step[Any], ...] = ()
    version: int = 1
    """Raise it when the code changes what the step gives: old results are then recomputed."""
    absent: str = ""
    """Why its result may be nowhere (data that few have), told where nothing is computed."""

    @cached_property
    def key(self) -> dict[str, Any]:
        """What the result is looked up by: own inputs and, by fingerprint, those of the needs."""
        return {
            "version": self.version,
            "inputs": dict(self.inputs),
            "needs": {need.name: need.fingerprint for need in self.needs},
        }

    @cached_property
    def fingerprint(self) -> str:
        """That of the key, reckoned once: workers ask for it at every look at what is left."""
        return fingerprint(self.key)

    @property
    def kind(self) -> str:
        """What steps of about equal length have in common."""
        return _kind(self.name)

    def beside(self, *parts: object) -> str:
        """The name of a step in the folder of this one."""
        return named(*self.name.split("/")[:-1], *parts)


def named(*parts: object) -> str:
    """A step's or file's name from parts, safe on every file system: `bilstm*2` is `bilstm-2`.

    >>> named("sst", "bilstm*2+additive", 0)
    'sst/bilstm-2+additive/0'
    """
    return "/".join(re.sub(r"[^\w.+=,-]", "-", str(part)).lstrip(".") or "-" for part in parts)


@dataclass
class Results:
    """The finished steps of a study, and the way to finish more: `results[step]`."""

    folder: Path
    """`<out>/<study>/steps`."""
    device: str = "cpu"
    """Where models run, e.g. `cuda`."""
    may_compute: bool = True
    """Whether a missing result is computed; otherwise it is skipped."""
    show: bool = False
    """Whether progress is told on stderr."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Reasons by step."""
    missing: dict[str, str] = field(default_factory=dict)
    """Reasons by corpus, noted by `each` since `noting` began."""
    _loaded: OrderedDict[str, Any] = field(default_factory=OrderedDict)

    def __getitem__(self, wanted: Step[T]) -> T:
        """The result of a step; raises Skipped where there is none."""
        if wanted.name in self.skipped:
            raise Skipped(self.skipped[wanted.name])
        mark = f"{wanted.name} {wanted.fingerprint}"
        if mark not in self._loaded:
            self._loaded[mark] = self._result(wanted)
            if len(self._loaded) > KEPT:
                self._loaded.popitem(last=False)
        self._loaded.move_to_end(mark)
        found: T = self._loaded[mark]
        return found

    def has(self, wanted: Step[Any]) -> bool:
        """Whether the step's result is on disk."""
        return is_done(self.folder, wanted.name, inputs=wanted.key, form=wanted.form)

    def lacking(self, wanted: Iterable[Step[Any]]) -> list[str]:
        """Why those of the steps that were skipped were."""
        return [self.skipped[one.name] for one in wanted if one.name in self.skipped]

    def each(self, corpora: Iterable[str], make: Callable[[str], T]) -> dict[str, T]:
        """What `make` gives for each corpus; those it cannot be had for are noted as missing.

        Skipped where there is none at all, so that tables are never made of nothing.
        """
        found = {}
        for corpus in corpora:
            try:
                found[corpus] = make(corpus)
            except Skipped as skipped:
                self.missing[corpus] = skipped.reason
        if not found:
            reasons = list(dict.fromkeys(self.missing.values()))
            raise Skipped("; ".join(reasons) or "no corpus at hand")
        return found

    @contextmanager
    def noting(self) -> Iterator[dict[str, str]]:
        """Lends a fresh record of missing corpora."""
        before, self.missing = self.missing, {}
        try:
            yield self.missing
        finally:
            self.missing = before

    def scratch(self, wanted: Step[Any]) -> Path:
        """A folder for what a step must not lose (checkpoints); it goes when its result is saved.

        Whatever ends the step before, a kill or an error after the training, leaves it as it is.
        """
        folder = self._unfinished(wanted)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def finish(self, wanted: Iterable[Step[Any]]) -> None:
        """Computes what is not there yet, in order, saying how far it is and how long it takes."""
        todo = self.planned(wanted)
        clock = StepClock([one.name for one in todo], self.seconds())
        for number, one in enumerate(todo, 1):
            if self.show:
                print(clock.line(number, one.name), file=sys.stderr, flush=True)
            started = time.perf_counter()
            reason = next((self.skipped[n.name] for n in one.needs if n.name in self.skipped), None)
            try:
                if reason is not None:
                    raise Skipped(reason)
                self[one]
            except Skipped as skipped:
                self.skipped[one.name] = skipped.reason
                if self.show:
                    print(f"  skipped: {skipped.reason}", file=sys.stderr, flush=True)
            clock.took(one.name, time.perf_counter() - started)

    def planned(self, wanted: Iterable[Step[Any]]) -> list[Step[Any]]:
        """The steps still to be done, each after its needs; the needs of done steps are not."""
        seen: dict[str, Step[Any]] = {}
        order: list[Step[Any]] = []

        def visit(one: Step[Any]) -> None:
            if one.name in seen:
                if seen[one.name].key != one.key:
                    raise ValueError(f"two steps are named {one.name!r} but have other inputs")
                return
            seen[one.name] = one
            if self.has(one):
                return
            for need in one.needs:
                visit(need)
            order.append(one)

        for one in wanted:
            visit(one)
        return order

    def journal(self) -> list[dict[str, Any]]:
        """What was computed, where and how long it took; damaged lines are left out."""
        path = self.folder / JOURNAL
        lines = path.read_text("utf-8").splitlines() if path.is_file() else []
        found = []
        for line in lines:
            try:
                found.append(json.loads(line))
            except ValueError:  # the last line of a killed run
                continue
        return found

    def _result(self, wanted: Step[T]) -> T:
        def compute() -> T:
            if not self.may_compute:
                waits = "not computed yet, and only finished steps were asked for"
                raise Skipped(wanted.absent or waits)
            started = time.perf_counter()
            value = wanted.compute(self)
            self._note(wanted, time.perf_counter() - started)
            return value

        try:
            found = step(self.folder, wanted.name, compute, inputs=wanted.key, form=wanted.form)
        except (InputError, Skipped) as error:
            self.skipped[wanted.name] = str(error)
            raise Skipped(str(error)) from error
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            self.skipped[wanted.name] = NO_ROOM.format(wanted.name, self.device)
            raise OutOfMemory(self.skipped[wanted.name]) from error
        shutil.rmtree(self._unfinished(wanted), ignore_errors=True)
        return found

    def _unfinished(self, wanted: Step[Any]) -> Path:
        return self.folder / "unfinished" / f"{named(wanted.name)}-{wanted.fingerprint}"

    def _note(self, wanted: Step[Any], seconds: float) -> None:
        entry: dict[str, Any] = {"step": wanted.name, "device": described(self.device)}
        entry |= {"commit": commit(), "seconds": round(seconds, 3), "at": now()}
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / JOURNAL).open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def seconds(self) -> dict[str, list[float]]:
        """How long steps took on a device like this one, by their kind."""
        device = described(self.device)
        found: dict[str, list[float]] = {}
        for entry in self.journal():
            if entry["device"] == device:
                found.setdefault(_kind(entry["step"]), []).append(entry["seconds"])
        return found


def described(device: str) -> str:
    """The device in words."""
    if device.startswith("cuda"):
        import torch

        return torch.cuda.get_device_name(torch.device(device))
    return device


def _kind(name: str) -> str:
    """What steps of about equal length have in common: the last part of their names."""
    return name.rsplit("/", 1)[-1]


class StepClock:
    """How far the steps are, and how long those left will take, from others of their kind."""

    def __init__(self, names: Sequence[str], seconds: Mapping[str, Sequence[float]]) -> None:
        self.total, self.waiting = len(names), Counter(map(_kind, names))
        self.seconds = {kind: (sum(values), len(values)) for kind, values in seconds.items()}

    def took(self, name: str, seconds: float) -> None:
        """Notes how long a step took, which is no longer waited for."""
        spent, count = self.seconds.get(_kind(name), (0.0, 0))
        self.seconds[_kind(name)] = spent + seconds, count + 1
        self.waiting[_kind(name)] -= 1

    def line(self, number: int, name: str, at_once: int = 1) -> str:
        """What is said when a step begins, of which so many are done at once."""
        return f"step {number}/{self.total}, {self._left(at_once)}: {name}"

    def _left(self, at_once: int) -> str:
        count = sum(count for _, count in self.seconds.values())
        if not count:
            return "time left unknown"
        typical = sum(spent for spent, _ in self.seconds.values()) / count
        total = 0.0
        for kind, waiting in self.waiting.items():
            spent, done = self.seconds.get(kind, (typical, 1))
            total += waiting * spent / done
        total /= at_once
        return f"~{total / 60:.0f} min left" if total >= 90 else f"~{total:.0f} s left"
