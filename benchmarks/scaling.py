"""Shards of an audit on 1 to N processes of one thread: strong and weak scaling, in seconds.

    python -m benchmarks.scaling FOLDER MODEL [--workers 1,2] [--shards 16] [--each 10000]
                                 [--on ray] [-- options of audit_shards as JSON]

Generated documents as in `benchmarks.shards`. Strong: all shards on every number of workers; weak:
two shards a worker. What is timed is the shards alone, from the first that is given to the last
that is done, with the model open in every worker. By default workers are plain processes that take
names from a queue; with `--on ray` they are those of a local Ray, given pieces by the engine.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.shards import written

Given = Callable[[Sequence[str], int], float]
"""Seconds that so many workers take for the pieces of these names."""
WEAK = 2
"""Shards a worker."""


class _Planned(Exception):
    """What an audit would have given to its engine."""


def copied(shards: Path, place: Path, files: int) -> None:
    """So many files of other names, of the documents of these shards."""
    place.mkdir()
    parts = sorted(shards.iterdir())
    for number in range(files):
        shutil.copyfile(parts[number % len(parts)], place / f"part-{number:05d}.parquet")


def planned(model: str, pattern: str, out: Path, **options: Any) -> Any:
    """The workload of an audit over shards."""
    from heedful.cluster import shards

    def stop(pieces: Any, *_: Any) -> Any:
        raise _Planned(pieces)

    kept = shards.finish, shards.reaching
    shards.finish = stop
    shards.reaching = lambda *_: nullcontext(True)  # type: ignore[assignment, return-value]
    try:
        shards.audit_shards(model, pattern, out, documents=0, on="ray", **options)
    except _Planned as found:
        return found.args[0]
    finally:
        shards.finish, shards.reaching = kept
    raise AssertionError("nothing is left to do")


def _work(module: str, task: str, me: int, order: Any, done: Any) -> None:
    """A worker: opens the model, then does what is ordered from it."""
    import torch

    torch.set_num_threads(1)
    do = import_module(module).doing(json.loads(task))
    done.put(("open", me))
    while (name := order.get()) is not None:
        do(name)
        done.put((name, me))


def on_processes(pieces: Any, most: int, rehearsal: str) -> tuple[Given, Callable[[], None]]:
    """What gives pieces to processes, and what ends these; each has done one piece before."""
    context = mp.get_context("spawn")
    done: Any = context.Queue()
    orders: list[Any] = [context.Queue() for _ in range(most)]
    task = json.dumps(pieces.task)
    started = [
        context.Process(target=_work, args=(pieces.module, task, me, order, done), daemon=True)
        for me, order in enumerate(orders)
    ]
    for one in started:
        one.start()
    for _ in started:
        done.get()

    def given(names: Sequence[str], workers: int) -> float:
        left, begun = list(names), time.perf_counter()
        for me in range(min(workers, len(left))):
            orders[me].put(left.pop(0))
        for _ in names:
            _, me = done.get()
            if left:
                orders[me].put(left.pop(0))
        return time.perf_counter() - begun

    def end() -> None:
        for order in orders:
            order.put(None)
        for one in started:
            one.join()

    for me, order in enumerate(orders):  # caches, lazy imports
        order.put(rehearsal)
        assert done.get() == (rehearsal, me)
    return given, end


def on_ray(pieces: Any, workers: int, rehearsal: str) -> tuple[Given, Callable[[], None]]:
    """What gives pieces to a local Ray of so many cores, and what ends it."""
    from dataclasses import replace

    from heedful.cluster import connection, engine

    os.process_cpu_count = lambda: workers  # type: ignore[attr-defined]
    reached = connection.reaching("ray", pieces.module)
    cluster = reached.__enter__()
    folder = Path(pieces.task["out"])

    def given(names: Sequence[str], _: int) -> float:
        begun = time.perf_counter()
        engine.finish(replace(pieces, names=names), cluster, folder)
        return time.perf_counter() - begun

    for _ in range(3 * workers):
        given([rehearsal], workers)
    return given, lambda: reached.__exit__(None, None, None)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("model")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--each", type=int, default=10_000)
    parser.add_argument("--on", choices=("ray",))
    asked = parser.parse_args()
    counts = [int(one) for one in asked.workers.split(",")]
    place, out = asked.folder.resolve() / "scaled", asked.folder.resolve() / "scaling"
    for folder in (place, out):
        shutil.rmtree(folder, ignore_errors=True)
    copied(
        written(asked.folder.resolve(), asked.shards * asked.each, asked.each),
        place,
        1 + sum(asked.shards + WEAK * workers for workers in counts),
    )
    pieces = planned(
        asked.model, f"{place}/*.parquet", out, device="cpu",
        audits=("concentration", "confidence"), methods=("attention",),
    )  # fmt: skip
    *names, rehearsal = pieces.names
    ends: list[Callable[[], None]] = []
    if asked.on is None:
        given, end = on_processes(pieces, max(counts), rehearsal)
        ends.append(end)
    for workers in counts:
        if asked.on is not None:
            given, end = on_ray(pieces, workers, rehearsal)
        for kind, shards in (("strong", asked.shards), ("weak", WEAK * workers)):
            chosen = [names.pop(0) for _ in range(shards)]  # what is done is not done again
            seconds = given(chosen, workers)
            told = {"kind": kind, "workers": workers, "shards": len(chosen), "each": asked.each}
            told |= {"on": asked.on or "processes", "model": Path(asked.model).name}
            rate = round(len(chosen) * asked.each / seconds)
            told |= {"seconds": round(seconds, 2), "documents per second": rate}
            print(json.dumps(told), flush=True)
        if asked.on is not None:
            end()
    for end in ends:
        end()
    for folder in (place, out):
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
