"""The pieces of a job as Ray tasks: on this machine, or wherever a cluster has room.

A piece is named. What does it is a function `doing` of an importable module, made from plain data
in every worker process once, so that a model is loaded once too. Results lie in files that all
nodes see, written whole or not at all; what comes back is only whether the piece was skipped, and
where it was done. Ray starts the task of a lost node again elsewhere.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from heedful.cluster.connection import Cluster, require_nodes
from heedful.reproduction.results import Skipped, StepClock

ROOM = 1 << 30
"""Bytes of memory that every task asks for."""
RETRIES = 3
"""So often is a task started again whose node was lost."""
AHEAD = 2
"""Tasks given to Ray for each that can run, so that none waits for this process."""

Doing = Callable[[str], None]
"""Does the piece of that name; raises Skipped where it cannot be had."""


@dataclass(frozen=True)
class Workload:
    """What is to be done, told so that any node can do it."""

    module: str
    """Has `doing(task)`, which gives what does a piece by its name."""
    task: Mapping[str, Any]
    """Plain data."""
    names: Sequence[str]
    """In the order in which one machine would do them."""
    needs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Workload that must be done before; others than those named are."""
    seconds: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """How long pieces of a kind took before."""


class Outcome(NamedTuple):
    """What became of a piece."""

    skipped: str
    """Why it was skipped; empty where it was done."""
    node: str
    seconds: float


def finish(
    pieces: Workload, cluster: Cluster, folder: Path, device: str = "cpu", show: bool = False
) -> dict[str, Outcome]:
    """Does all pieces on Ray, each after its needs; what became of them, by name.

    `folder` is where results go, which every node must see. A piece asks for one core, for a card
    where the device is `cuda`, and for memory.
    """
    if not pieces.names:
        return {}
    cards = 1 if device.startswith("cuda") else 0
    require_nodes(cluster, folder, cards)
    ray = cluster.ray
    wanted: dict[str, Any] = {"num_cpus": 1, "num_gpus": cards, "memory": ROOM}
    remote = ray.remote(max_retries=RETRIES, **wanted)(_do)
    given = ray.put(json.dumps(pieces.task))
    resources = ray.cluster_resources()
    slots = int(resources.get("GPU", 0) if cards else resources.get("CPU", 1))
    return _Driver(ray, remote, pieces, given, max(slots, 1), show).run()


@dataclass
class _Driver:
    """Keeps Ray supplied with pieces that are ready, in order."""

    ray: Any
    remote: Any
    workload: Workload
    given: Any
    slots: int
    show: bool
    found: dict[str, Outcome] = field(default_factory=dict)

    def run(self) -> dict[str, Outcome]:
        todo = dict.fromkeys(self.workload.names)
        waiting, total = set(todo), len(todo)
        running: dict[Any, str] = {}
        clock = StepClock(self.workload.names, self.workload.seconds)
        while todo or running:
            for name in self._ready(todo, waiting, AHEAD * self.slots - len(running)):
                del todo[name]
                if self.show:
                    line = clock.line(total - len(todo), name, self.slots)
                    print(line, file=sys.stderr, flush=True)
                running[self.remote.remote(self.workload.module, self.given, name)] = name
            done, _ = self.ray.wait(list(running), num_returns=1)
            for reference in done:
                name = running.pop(reference)
                outcome = self.found[name] = self._outcome(reference, name)
                clock.took(name, outcome.seconds)
                if outcome.skipped:
                    self._skip(name, outcome, todo)
                waiting -= {name} | (self.found.keys() - todo.keys() if outcome.skipped else set())
        return self.found

    def _ready(self, todo: Iterable[str], waiting: Set[str], most: int) -> list[str]:
        """The next pieces whose needs are done; those that are not in this job are."""
        needs = self.workload.needs
        return list(islice((one for one in todo if waiting.isdisjoint(needs.get(one, ()))), most))

    def _outcome(self, reference: Any, name: str) -> Outcome:
        from ray.exceptions import RayTaskError

        try:
            return Outcome(*self.ray.get(reference))
        except RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error from error
        except Exception as error:
            raise RuntimeError(f"{name} was lost {RETRIES + 1} times: {error}") from error

    def _skip(self, name: str, outcome: Outcome, todo: dict[str, None]) -> None:
        """Skips what needs a skipped piece, and says so."""
        if self.show:
            print(f"  {name} skipped: {outcome.skipped}", file=sys.stderr, flush=True)
        for later in list(todo):
            if later in todo and name in self.workload.needs.get(later, ()):
                del todo[later]
                self.found[later] = outcome._replace(seconds=0.0)
                self._skip(later, outcome, todo)


def _do(module: str, given: str, name: str) -> tuple[str, str, float]:
    """Does one piece in a worker process, on one thread."""
    import ray
    import torch

    torch.set_num_threads(1)
    started, skipped = time.perf_counter(), ""
    try:
        _doing(module, given)(name)
    except Skipped as reason:
        skipped = reason.reason
    return skipped, ray.get_runtime_context().get_node_id(), time.perf_counter() - started


@lru_cache(maxsize=2)
def _doing(module: str, given: str) -> Doing:
    found: Doing = import_module(module).doing(json.loads(given))
    return found
