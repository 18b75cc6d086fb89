"""How long so many workers would take: a simulation from measured task times.

    python -m benchmarks.workers JOURNAL [DOCUMENTS_A_SHARD]

Shards take as long as those in the journal did, drawn anew by key; each is given to the worker that
is free first, after those before it. The assumptions stand beside the constants.
"""

from __future__ import annotations

import heapq
import json
import sys
from pathlib import Path

import numpy as np

from heedful.runs.randomness import numpy_generator

DISPATCH = 0.002
"""Seconds that the one driver needs for each task, measured on trivial ones; one after another."""
OPENING = 10.0
"""Seconds before a worker does its first task: a process, its imports, its model."""
ADDING = 0.0007
"""Seconds that the driver needs to add the sums of one shard of two audits, measured."""
BYTES = 1.5e6
"""Bytes read and written for a shard."""
STORE = 1e9
"""Bytes a second that the shared file system serves to all together."""
WORKERS = (1, 2, 10, 30, 100, 300, 1_000)


def makespan(durations: np.ndarray, workers: int) -> float:
    """Seconds until all tasks are done and their sums are added."""
    free = [OPENING] * workers
    heapq.heapify(free)
    given = 0.0
    for seconds in durations:
        given += DISPATCH
        start = max(heapq.heappop(free), given)
        heapq.heappush(free, start + float(seconds))
    carried = len(durations) * BYTES / STORE
    return max(max(free), carried) + len(durations) * ADDING


def table(measured: np.ndarray, shards: int) -> list[dict[str, float]]:
    """Seconds, speed-up and efficiency for each number of workers."""
    drawn = numpy_generator(0, "simulated shards", shards).choice(measured, shards)
    alone = makespan(drawn, 1)
    rows = []
    for workers in WORKERS:
        seconds = makespan(drawn, workers)
        gain = alone / seconds
        rows.append({"workers": workers, "seconds": seconds, "speed-up": gain,
                     "efficiency": gain / workers})  # fmt: skip
    return rows


def main() -> None:
    lines = Path(sys.argv[1]).read_text("utf-8").splitlines()
    measured = np.array([json.loads(line)["seconds"] for line in lines])
    scale = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    for shards in (100, 10_000, 100_000):
        print(f"{shards:,} shards, {measured.mean() * scale:.2f} s each")
        for row in table(measured * scale, shards):
            print("  " + ", ".join(f"{name} {value:,.3g}" for name, value in row.items()))


if __name__ == "__main__":
    main()
