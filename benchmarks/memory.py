"""Peak memory of streaming audits, each in a process of its own.

`python -m benchmarks.memory DOCUMENTS UNITS stream|keep` prints the megabytes as JSON.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks.table import Row

BATCH = 32
STREAMED = ("erasure", "substitution", "confidence", "agreement")


class Peak(NamedTuple):
    """Megabytes of one process."""

    resting: float
    """With the model built, before the first document."""
    peak: float
    rows: float
    """Held by the audits' rows if all were kept."""


def peak_of(documents: int, units: int, how: str) -> Peak:
    """The peak of a fresh process that audits so many documents."""
    command = [sys.executable, "-m", "benchmarks.memory", str(documents), str(units), how]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    return Peak(**json.loads(done.stdout.splitlines()[-1]))


def memory_row(few: int, many: int, units: int) -> Row:
    """Peak memory over many documents against few: constant if rows are all that is kept."""
    small, large = peak_of(few, units, "stream"), peak_of(many, units, "stream")
    kept = peak_of(many, units, "keep")
    above = [at.peak - at.resting for at in (large, small, kept)]
    return Row(
        case=f"peak memory above rest, {many:,} documents of {units} units",
        ours=above[0],
        naive=above[2],
        unit="MB",
        ratio=above[0] / above[1],
        against=f"{few} documents",
        at_most=1.1,
        sentence=(
            f"Streaming the rows of {', '.join(STREAMED)} needs {above[0]:.0f} MB above the "
            f"{large.resting:.0f} MB of the resting process for {many:,} documents and "
            f"{above[1]:.0f} MB for {few}: one batch of {BATCH} is alive at a time. Keeping every "
            f"reading (naive) needs {above[2]:.0f} MB. The rows themselves, which an audit keeps "
            f"for its summary, are {1024 * large.rows / many:.1f} kB per document and not counted."
        ),
    )


def _high_water() -> float:
    """Megabytes this process has had at most."""
    # ru_maxrss outlives exec, and so may be the parent's; the kernel's VmHWM does not.
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 1024)


def _main(documents: int, units: int, how: str) -> None:
    import torch

    from benchmarks.subjects import RANKINGS, batch_of, bilstm
    from heedful.audits import AUDITS
    from heedful.importance import explain
    from heedful.models import read

    torch.set_num_threads(1)
    model = bilstm(2)
    resting, rows, kept = _high_water(), 0.0, []
    for start in range(0, documents, BATCH):
        batch = batch_of([units] * min(BATCH, documents - start), seed=start)
        reading = read(model, batch)
        if how == "keep":
            kept.append(reading)
            continue
        importance = explain(model, reading, RANKINGS)
        for name in STREAMED:
            table = AUDITS[name].rows(model, reading, importance, 0)
            rows += table.memory_usage(deep=True).sum() / 2**20
    print(json.dumps(Peak(resting, _high_water(), rows)._asdict()))


if __name__ == "__main__":
    _main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
