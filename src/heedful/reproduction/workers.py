"""Several processes over the steps of one study: small trainings leave a GPU idle when alone.

A step is a closure and cannot be sent to another process, so every worker imports the study, makes
the same plan and takes the next step that is ready and that no other worker holds. What a worker
finishes lies on disk, where the others and the reproduction afterwards find it.

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
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from heedful.errors import InputError
from heedful.jobs.decider import device_of
from heedful.reproduction.results import OutOfMemory, Results, Skipped, Step
from heedful.reproduction.study import Study
from heedful.runs import (
    fingerprint,
    give_back_memory,
    locked,
    read_json,
    remove_leftovers,
    write_json,
)
from heedful.runs.orphans import end_with_parent

WORKING = ".working"
"""Folder of the steps' locks and of the reasons for skipping, inside the steps."""
PAUSE = 0.5
"""Seconds before a worker without a ready step looks again."""


def compute_together(
    module: str,
    jobs: int,
    *,
    only: Iterable[str] = (),
    scale: str = "smoke",
    corpora: Iterable[str] = (),
    seeds: int | None = None,
    out: Path | str = "runs/reproduce",
    data_root: Path | str | None = None,
    device: str = "cpu",
) -> int:
    """How many steps were left to do, now done by `jobs` processes at once.

    `module` holds the STUDY. One thread each: the processes are what runs side by side. The folder
    is held meanwhile; `reproduce_study` then finds the steps done.
    """
    if jobs < 1:
        raise InputError(f"--jobs must be at least 1, got {jobs}.")
    study = _study(module)
    task: dict[str, Any] = {
        "module": module, "only": list(only), "scale": scale, "corpora": list(corpora),
        "seeds": seeds, "out": str(out), "device": str(device_of(device)),
        "data_root": None if data_root is None else str(data_root),
    }  # fmt: skip
    folder = Path(out) / study.name
    with locked(folder):
        remove_leftovers(folder)
        shutil.rmtree(folder / "steps" / WORKING, ignore_errors=True)
        results, wanted = wanted_steps(task)
        left = len(results.planned(wanted))
        try:
            if left:
                _run(json.dumps(task), min(jobs, left))
        finally:
            shutil.rmtree(folder / "steps" / WORKING, ignore_errors=True)
    return left


def _run(task: str, jobs: int) -> None:
    """Starts the workers and waits for all of them; none outlives this process, even a killed one.

    Each reads from a pipe that nobody writes to and that ends with this process.
    """
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "heedful.reproduction.workers", task],
            env=environment,
            stdin=subprocess.PIPE,
        )
        for _ in range(jobs)
    ]
    try:
        codes = [worker.wait() for worker in started]
    except BaseException:
        for worker in started:
            worker.terminate()
        raise
    if any(codes):
        raise RuntimeError(f"a worker ended with code {next(filter(None, codes))}; see above")


def work(task: dict[str, Any]) -> None:
    """Takes ready steps until none is left; what one worker had to skip no other tries."""
    results, wanted = wanted_steps(task)
    shared = results.folder / WORKING
    shared.mkdir(parents=True, exist_ok=True)
    todo = results.planned(wanted)
    done: set[str] = set()

    def is_done(one: Step[Any]) -> bool:
        # Asking the disk hashes the result, which for a run takes a while: a yes is kept, and what
        # another worker has just finished is not asked about.
        if one.name not in done and (_finished(shared, one).is_file() or results.has(one)):
            done.add(one.name)
        return one.name in done

    def is_ready(one: Step[Any]) -> bool:
        return all(map(is_done, one.needs))

    while todo:
        before = len(todo)
        _note_skipped(results, shared, todo)
        todo = [one for one in todo if one.name not in results.skipped and not is_done(one)]
        ready = [one for one in todo if is_ready(one)]
        # A step that another worker holds is ready too: large ones are taken after all others.
        light = [one for one in ready if not _large(shared, one).is_file()]
        take = _took if light else _took_alone
        if not any(take(results, shared, one) for one in light or ready) and len(todo) == before:
            time.sleep(PAUSE)


def _took(results: Results, shared: Path, one: Step[Any], is_alone: bool = False) -> bool:
    """Whether this worker got the step, which is then done, skipped or found too large for now."""
    place = shared / fingerprint({"step": one.name, "key": one.key})
    try:
        with locked(place):
            if results.has(one) or (place / "skipped.json").is_file():
                return False
            print(one.name, file=sys.stderr, flush=True)
            try:
                results[one]
                _finished(shared, one).touch()
            except Skipped as skipped:
                if isinstance(skipped, OutOfMemory) and not is_alone:
                    print(f"{one.name} waits for room", file=sys.stderr, flush=True)
                    del results.skipped[one.name]
                    _large(shared, one).touch()
                else:
                    write_json(place / "skipped.json", {"reason": skipped.reason})
    except InputError:  # another worker holds it
        return False
    give_back_memory()
    return True


def _took_alone(results: Results, shared: Path, one: Step[Any]) -> bool:
    """`_took` of a step that found no room beside others: one such step at a time."""
    try:
        with locked(shared / "alone"):
            return _took(results, shared, one, is_alone=True)
    except InputError:  # another worker is at one
        return False


def _large(shared: Path, one: Step[Any]) -> Path:
    """What a worker leaves behind where a step found no room beside the others."""
    return shared / f"{fingerprint({'step': one.name, 'key': one.key})}.large"


def _finished(shared: Path, one: Step[Any]) -> Path:
    """What a worker leaves behind for the others when the step's result is on disk."""
    return shared / f"{fingerprint({'step': one.name, 'key': one.key})}.done"


def _note_skipped(results: Results, shared: Path, todo: list[Step[Any]]) -> None:
    """Takes over what others skipped, and skips what needs it."""
    for one in todo:
        note = shared / fingerprint({"step": one.name, "key": one.key}) / "skipped.json"
        if note.is_file():
            results.skipped[one.name] = read_json(note)["reason"]
        for need in one.needs:
            if need.name in results.skipped:
                results.skipped.setdefault(one.name, results.skipped[need.name])


def wanted_steps(task: Mapping[str, Any]) -> tuple[Results, list[Step[Any]]]:
    """The results and the steps that the task's artifacts and claims ask for."""
    study = _study(task["module"])
    plan = study.plan(
        task["scale"], task["corpora"], task["seeds"], task["data_root"], task["device"]
    )
    artifacts, claims = study.chosen(task["only"])
    results = Results(Path(task["out"]) / study.name / "steps", task["device"])
    return results, plan.steps([*artifacts, *claims])


def _study(module: str) -> Study:
    found: Study = import_module(module).STUDY
    return found


if __name__ == "__main__":
    import torch

    end_with_parent()
    torch.set_num_threads(1)
    work(json.loads(sys.argv[1]))
