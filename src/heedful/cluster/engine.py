"""The pieces of a job as Ray tasks: on this machine, or wherever a cluster has room.

A piece is named. What does it is a function `doing` of an importable module, made from plain data
in every worker process once, so that a model is loaded once too. Results lie in files that all
nodes see, written whole or not at all; what comes back is only whether the piece was skipped, and
where it was done. Ray starts the task of a lost node again elsewhere.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from heedful.errors import InputError
from heedful.reproduction.results import Skipped, StepClock
from heedful.runs.provenance import code_digest, versions

ROOM = 1 << 30
"""Bytes of memory that every task asks for."""
RETRIES = 3
"""So often is a task started again whose node was lost."""
AHEAD = 2
"""Tasks given to Ray for each that can run, so that none waits for this process."""
ANSWER_SECONDS = 5.0
"""An address that does not answer in this time is wrong."""

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


@contextmanager
def connected(on: str) -> Iterator[Any]:
    """Ray: the one that this process is connected to, a local one, or that at the address."""
    try:
        import ray
    except ImportError:
        raise InputError("--on takes Ray; install heedful[cluster].") from None
    if ray.is_initialized():
        yield ray
        return
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if on == "ray":
        cores = os.process_cpu_count() if hasattr(os, "process_cpu_count") else os.cpu_count()
        ray.init("local", num_cpus=cores, include_dashboard=False, **quiet)
    else:
        _require_answer(on)
        try:
            ray.init(on, **quiet)
        except Exception as error:  # Ray raises what its client library happens to raise
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise InputError(f"No Ray cluster answers at {on} ({reason}).") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _require_answer(on: str) -> None:
    """Raises where the address is none, or nobody answers there."""
    host, _, port = on.removeprefix("ray://").rpartition(":")
    if not on.startswith("ray://") or not host or not port.isdigit():
        raise InputError(f"--on is ray or ray://HOST:PORT, got {on!r}.")
    try:
        socket.create_connection((host, int(port)), ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"Nobody answers at {on} ({error}); is the cluster started, with its client port open?"
        ) from error


def finish(
    pieces: Workload, on: str, folder: Path, device: str = "cpu", show: bool = False
) -> dict[str, Outcome]:
    """Does all pieces on Ray, each after its needs; what became of them, by name.

    `folder` is where results go, which every node must see. A piece asks for one core, for a card
    where the device is `cuda`, and for memory.
    """
    if not pieces.names:
        return {}
    with connected(on) as ray:
        cards = 1 if device.startswith("cuda") else 0
        _require_nodes(ray, folder, cards)
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


def _require_nodes(ray: Any, folder: Path, cards: int) -> None:
    """Raises, before anything runs, where a node could not do its part.

    Every node is asked for its heedful and for a file that was just written into the folder.
    """
    if cards and not ray.cluster_resources().get("GPU"):
        raise InputError("The cluster has no card, and --device cuda asks for one; try cpu.")
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    folder.mkdir(parents=True, exist_ok=True)
    token = folder / ".seen-by-all"
    token.touch()

    # Not importable by name, so that Ray carries its code to nodes that lack this package.
    def facts(path: str) -> tuple[dict[str, str], str, bool]:
        import os.path

        try:
            from heedful.runs.provenance import code_digest, versions
        except ImportError:
            return {}, "", False
        return versions(), code_digest(), os.path.isfile(path)

    ask = ray.remote(num_cpus=0, max_retries=0)(facts)
    try:
        for node in (one for one in ray.nodes() if one["Alive"]):
            where = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            try:
                told = ray.get(ask.options(scheduling_strategy=where).remote(str(token)))
            except ray.exceptions.RayTaskError as error:
                name, said = node["NodeManagerAddress"], str(error.cause).splitlines()[0]
                raise InputError(f"Node {name} cannot run a task: {said}") from error
            except ray.exceptions.RayError:  # lost before it could answer, so it takes no part
                continue
            if complaint := complaint_of(NodeFacts(*told), folder):
                raise InputError(f"Node {node['NodeManagerAddress']} {complaint}")
    finally:
        token.unlink(missing_ok=True)


class NodeFacts(NamedTuple):
    """What a node says of itself."""

    installed: Mapping[str, str]
    """Versions; none where heedful is not there."""
    code: str
    sees_folder: bool


def complaint_of(node: NodeFacts, folder: Path) -> str:
    """Why a node cannot take part; empty where it can."""
    installed = node.installed
    if not installed:
        return "has no heedful; install the one that is used here."
    own = versions()
    for package, version in own.items():
        if installed.get(package) != version:
            there = installed.get(package)
            return f"has {package} {there}, here it is {version}; install the same on both."
    if node.code != code_digest():
        return f"has heedful {own['heedful']} with other code than here; install the same on both."
    if not node.sees_folder:
        return f"does not see {folder}; choose an --out on a file system that all nodes share."
    return ""
