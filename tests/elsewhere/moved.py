"""Which numbers of an audit move between processors, and by how much."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.elsewhere.processors import HERE, Processor, environment_of

FORMS = {"own model": "bilstm+additive", "BERT": "transformer", "trained there": "anew"}


def audited(folder: Path, processor: Processor, what: str) -> dict[str, Any]:
    """The findings of one audit by a process of its own, under a processor's settings."""
    command = [sys.executable, "-m", "tests.elsewhere.one_audit", str(folder), what]
    root = Path(__file__).parents[2]
    environment = environment_of(processor) | {
        "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def table_of_moves(processors: Sequence[Processor], jobs: int) -> str:
    """A row for each processor: how many numbers moved, the largest move, and the verdict."""
    titles = " | ".join(f"{name}: moved, most, verdict" for name in FORMS)
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(jobs) as pool:
        folder = Path(place)
        before = {what: audited(folder, HERE, what) for what in FORMS.values()}

        def row(processor: Processor) -> str:
            found = {what: audited(folder, processor, what) for what in before}
            line = " | ".join(
                [processor.name, *(_cell(before[what], found[what]) for what in found)]
            )
            print(line, file=sys.stderr, flush=True)
            return f"| {line} |"

        lines = list(pool.map(row, [HERE, *processors]))
    return "\n".join([f"| read on | {titles} |", "|---" * (len(FORMS) + 1) + "|", *lines])


def _cell(one: dict[str, Any], other: dict[str, Any]) -> str:
    """How many numbers differ between two audits, the largest difference, and the verdict."""
    moves = list(_moves(one, other))
    moved = [move for move in moves if move > 0]
    word = other["verdict"]["word"]
    said = word if word == one["verdict"]["word"] else f"**{word}**"
    return f"{len(moved)} of {len(moves)}, {max(moves):.1e}, {said}"


def _moves(one: Any, other: Any) -> Iterator[float]:
    """Differences of the numbers at the same place of two findings, relative where above 1."""
    if isinstance(one, dict):
        for name in one.keys() & other.keys():
            yield from _moves(one[name], other[name])
    elif isinstance(one, list):
        for first, second in zip(one, other, strict=True):
            yield from _moves(first, second)
    elif isinstance(one, float | int) and not isinstance(one, bool):
        if not (math.isfinite(one) and isinstance(other, float | int)):
            yield 0.0 if str(one) == str(other) else math.inf
        else:
            yield abs(one - other) / max(1.0, abs(one))
