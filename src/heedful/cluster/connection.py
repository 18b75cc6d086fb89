"""Ray: one that is there already, one at an address, or one of this machine's own.

One of this machine's own takes seconds to start and to end, most of which it waits. It is started
and ended by a thread of its own, beside what this process does meanwhile.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from heedful.errors import InputError
from heedful.runs.provenance import code_digest, versions

ANSWER_SECONDS = 5.0
"""An address that does not answer in this time is wrong."""
QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Cluster:
    """A Ray that answers now or will soon."""

    started: Future[Any]
    is_here: bool = False
    """Whether this process has started it: its workers then have what is installed here."""

    @property
    def ray(self) -> Any:
        """The package, connected; waits until it is."""
        return self.started.result()


@contextmanager
def reaching(on: str, module: str) -> Iterator[Cluster]:
    """Ray: the one that this process is connected to, a local one, or that at the address.

    A local one answers later; its workers have imported `module` by then, or are about to.
    """
    try:
        import ray
    except ImportError:
        raise InputError("--on takes Ray; install heedful[cluster].") from None
    if _owner().submit(ray.is_initialized).result():
        yield Cluster(_there(ray))
    elif on == "ray":
        started = _owner().submit(_start, ray, module)
        try:
            yield Cluster(started, is_here=True)
        finally:
            _owner().submit(ray.shutdown)
    else:
        _require_answer(on)
        _connect(ray, on)
        try:
            yield Cluster(_there(ray))
        finally:
            ray.shutdown()


@lru_cache(maxsize=1)
def _owner() -> ThreadPoolExecutor:
    """The thread that starts and ends a local Ray; it outlives both, for they end with it."""
    return ThreadPoolExecutor(1, "ray")


def _connect(ray: Any, on: str) -> None:
    """Connects to the cluster, at the second try where the first does not come through.

    For some seconds a cluster counts a node that it has lost; a client that Ray places there is
    cut off, and the next one is placed elsewhere.
    """
    for tries_left in (1, 0):
        try:
            ray.init(on, **QUIET)
        except Exception as error:  # Ray raises what its client library happens to raise
            ray.shutdown()
            if not tries_left:
                reason = (str(error) or type(error).__name__).splitlines()[0]
                raise InputError(f"No Ray cluster answers at {on} ({reason}).") from error
        else:
            return


def _there(ray: Any) -> Future[Any]:
    found: Future[Any] = Future()
    found.set_result(ray)
    return found


def _start(ray: Any, module: str) -> Any:
    """A local Ray, which nobody can reach from elsewhere."""
    cores = os.process_cpu_count() if hasattr(os, "process_cpu_count") else os.cpu_count()
    ray.init("local", num_cpus=cores, include_dashboard=False, _node_ip_address=LOOPBACK, **QUIET)
    warm = ray.remote(num_cpus=1, max_retries=0)(_imported)
    for _ in range(cores or 1):
        warm.remote(module)
    return ray


def _imported(module: str) -> None:
    """Lets a worker import what it will need; nobody waits for it."""
    import_module(module)


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


def require_nodes(cluster: Cluster, folder: Path, cards: int) -> None:
    """Raises, before anything runs, where a node could not do its part.

    Every node is asked for its heedful and for a file that was just written into the folder.
    """
    ray = cluster.ray
    if cards and not ray.cluster_resources().get("GPU"):
        raise InputError("The cluster has no card, and --device cuda asks for one; try cpu.")
    folder.mkdir(parents=True, exist_ok=True)
    if cluster.is_here:
        return
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

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
