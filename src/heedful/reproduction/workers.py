"""Several processes over the steps of studies: small trainings leave a GPU idle when alone.

A step is a closure and cannot be sent to another process, so every worker imports the studies,
makes the same plans and takes a step that is ready and that no other worker holds: the longest
first, so that none is waited for at the end, and of those about as long one of the corpus that it
has just read. What a worker finishes lies on disk, where the others and the reproduction afterwards
find it.

The workers share the memory of one GPU. Each gives back what a step leaves cached; a step that
finds no room beside the others waits until no other is ready, and is then done by itself.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import Any

from heedful.errors import InputError
from heedful.reproduction.request import STEPS, StudyRequest
from heedful.reproduction.results import OutOfMemory, Results, Skipped, Step, StepClock
from heedful.reproduction.sharing_card import sharing_card
from heedful.reproduction.study import Study
from heedful.runs import (
    fingerprint,
    give_back_memory,
    locked,
    read_json,
    remove_leftovers,
    write_json,
)
from heedful.runs.threads import usable_cores

WORKING = ".working"
"""Folder of the steps' locks and of the reasons for skipping, inside the steps."""
PAUSE = 0.5
"""Seconds before a worker without a ready step looks again."""
LOOK = 2.0
"""Seconds between two looks at what the workers have done."""


def compute_together(
    modules: Sequence[str], jobs: int | None, request: StudyRequest, show: bool = False
) -> int:
    """How many steps were left to do, now done by `jobs` processes at once (as many as cores).

    Each of the modules holds a STUDY. One thread each: the processes are what runs side by side.
    The folders are held meanwhile; `reproduce_study` then finds the steps done.
    """
    if jobs is not None and jobs < 1:
        raise InputError(f"--jobs must be at least 1, got {jobs}.")
    request = request.here()
    with ExitStack() as held:
        shares = []
        for module in modules:
            study = _study(module)
            folder = request.folder(study)
            held.enter_context(locked(folder))
            remove_leftovers(folder)
            shutil.rmtree(folder / STEPS / WORKING, ignore_errors=True)
            held.callback(shutil.rmtree, folder / STEPS / WORKING, ignore_errors=True)
            shares.append(_Share.of(study, request))
        left = sum(len(share.todo) for share in shares)
        if left:
            jobs = min(jobs or usable_cores(), left)
            with sharing_card(request.device, jobs, show) as environment:
                task = [json.dumps(list(modules)), json.dumps(request.to_json())]
                _run(task, jobs, environment, _Progress(shares, jobs) if show else None)
    return left


def _run(
    task: Sequence[str], jobs: int, environment: Mapping[str, str], progress: _Progress | None
) -> None:
    """Starts the workers and waits for all of them; none outlives this process, even a killed one.

    Each reads from a pipe that nobody writes to and that ends with this process.
    """
    alone = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "heedful.runs.orphans", "heedful.reproduction.workers", *task],
            env={**os.environ, **alone, **environment},
            stdin=subprocess.PIPE,
        )
        for _ in range(jobs)
    ]
    try:
        while any(worker.poll() is None for worker in started):
            time.sleep(PAUSE)
            if progress is not None and time.monotonic() - progress.looked > LOOK:
                progress.tell()
        if progress is not None:
            progress.tell()
        codes = [worker.wait() for worker in started]
    except BaseException:
        for worker in started:
            worker.terminate()
        raise
    if any(codes):
        raise RuntimeError(f"a worker ended with code {next(filter(None, codes))}; see above")


def work(modules: str, request: str) -> None:
    """Takes ready steps until none is left; what one worker had to skip no other tries."""
    asked = StudyRequest.from_json(json.loads(request))
    shares = [_Share.of(_study(module), asked) for module in json.loads(modules)]
    corpus = ""
    while todo := [(share, one) for share in shares for one in share.left()]:
        ready = [(share, one) for share, one in todo if share.is_ready(one)]
        # A step that another worker holds is ready too: large ones are taken after all others.
        light = [(share, one) for share, one in ready if not share.mark(one, "large").is_file()]
        for share, one in sorted(light or ready, key=lambda it: it[0].turn(it[1], corpus)):
            if share.took(one) if light else share.took_alone(one):
                corpus = _corpus(one)
                break
        else:
            time.sleep(PAUSE)


@dataclass
class _Share:
    """One study's steps, as one of several processes sees them."""

    results: Results
    todo: list[Step[Any]]
    """Those that were left when this process began."""
    name: str
    seconds: Mapping[str, float]
    """How long a step of a kind took before, on average."""
    done: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, study: Study, request: StudyRequest) -> _Share:
        """What is left of a study."""
        results, wanted = request.steps(study)
        (results.folder / WORKING).mkdir(parents=True, exist_ok=True)
        before = {kind: fmean(took) for kind, took in results.seconds().items()}
        return cls(results, results.planned(wanted), study.name, before)

    def mark(self, one: Step[Any], kind: str) -> Path:
        """What a worker leaves behind for the others: `large`, `done`, or why it was `skipped`."""
        name = fingerprint({"step": one.name, "key": one.fingerprint})
        return self.results.folder / WORKING / f"{name}.{kind}"

    def left(self) -> list[Step[Any]]:
        """The steps still to be done, without those that some worker had to skip."""
        skipped = self.results.skipped
        for one in self.todo:
            if (note := self.mark(one, "skipped")).is_file():
                skipped[one.name] = read_json(note)["reason"]
            for need in one.needs:
                if need.name in skipped:
                    skipped.setdefault(one.name, skipped[need.name])
        self.todo = [one for one in self.todo if one.name not in skipped and not self.is_done(one)]
        return self.todo

    def is_done(self, one: Step[Any]) -> bool:
        """Whether the result is there.

        Asking the disk hashes the result, which for a run takes a while: a yes is kept, and what
        another worker has just finished is not asked about.
        """
        if one.name not in self.done and (
            self.mark(one, "done").is_file() or self.results.has(one)
        ):
            self.done.add(one.name)
        return one.name in self.done

    def is_ready(self, one: Step[Any]) -> bool:
        """Whether all that it needs is there."""
        return all(map(self.is_done, one.needs))

    def turn(self, one: Step[Any], corpus: str) -> tuple[int, bool]:
        """Where it stands in line: twice as long comes sooner, then the corpus just read."""
        seconds = self.seconds.get(one.kind, 1.0)
        return -int(max(seconds, 1.0)).bit_length(), _corpus(one) != corpus

    def took(self, one: Step[Any], is_alone: bool = False) -> bool:
        """Whether this worker got the step: then done, skipped or found too large for now."""
        results = self.results
        try:
            with locked(self.mark(one, "held")):
                if results.has(one) or self.mark(one, "skipped").is_file():
                    return False
                try:
                    results[one]
                    self.mark(one, "done").touch()
                except Skipped as skipped:
                    if isinstance(skipped, OutOfMemory) and not is_alone:
                        print(f"{one.name} waits for room", file=sys.stderr, flush=True)
                        del results.skipped[one.name]
                        self.mark(one, "large").touch()
                    else:
                        write_json(self.mark(one, "skipped"), {"reason": skipped.reason})
        except InputError:  # another worker holds it
            return False
        give_back_memory()
        return True

    def took_alone(self, one: Step[Any]) -> bool:
        """`took` of a step that found no room beside others: one such step at a time."""
        try:
            with locked(self.results.folder / WORKING / "alone"):
                return self.took(one, is_alone=True)
        except InputError:  # another worker is at one
            return False


class _Progress:
    """One display of what all workers do: each step that ends is a line with the time left."""

    def __init__(self, shares: Sequence[_Share], jobs: int) -> None:
        self.jobs, self.count, self.looked = jobs, 0, time.monotonic()
        self.waiting = [(share, {one.name: one for one in share.todo}) for share in shares]
        self.read = [len(share.results.journal()) for share in shares]
        kinds = [_kind(share, one) for share in shares for one in share.todo]
        before = [(share.name, share.results.seconds()) for share in shares]
        told = {f"{name} {kind}": took for name, kinds in before for kind, took in kinds.items()}
        self.clock = StepClock(kinds, told)

    def tell(self) -> None:
        """A line for each step that has ended since the last look."""
        for place, (share, waiting) in enumerate(self.waiting):
            lines = share.results.journal()[self.read[place] :]
            self.read[place] += len(lines)
            for line in lines:
                if one := waiting.pop(line["step"], None):
                    self._ended(share, one, line["seconds"], f"{line['seconds']:.1f} s")
            share.left()
            for name, why in share.results.skipped.items():
                if one := waiting.pop(name, None):
                    self._ended(share, one, 0.0, f"skipped: {why}")
        self.looked = time.monotonic()

    def _ended(self, share: _Share, one: Step[Any], seconds: float, how: str) -> None:
        self.count += 1
        self.clock.took(_kind(share, one), seconds)
        line = self.clock.line(self.count, f"{share.name}/{one.name}, {how}", self.jobs)
        print(line, file=sys.stderr, flush=True)


def _kind(share: _Share, one: Step[Any]) -> str:
    return f"{share.name} {one.kind}"


def _corpus(one: Step[Any]) -> str:
    """The corpus of a step, by which its name begins."""
    return one.name.partition("/")[0]


def _study(module: str) -> Study:
    found: Study = import_module(module).STUDY
    return found


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    work(*sys.argv[1:3])
