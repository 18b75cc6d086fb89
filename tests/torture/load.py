"""A large file of JSON Lines: what reading it says, how long it takes and how memory grows."""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

MOST = 3.0
"""Memory may grow by so many times the file."""


def write(path: Path, rows: int, seed: int = 0) -> int:
    """Reviews of about 500 bytes a row, in words as long as English ones; gives the bytes."""
    from heedful.corpora.planted import planted

    some = planted(length="long", seed=seed, sizes={"train": 200}).splits["train"]
    words = [word for document in some for word in document.text.split()]
    drawn = random.Random(seed)
    with path.open("w") as file:
        for row in range(rows):
            text = " ".join(drawn.choices(words, k=85))
            file.write(json.dumps({"text": text, "label": ("neg", "pos")[row % 2]}) + "\n")
    return path.stat().st_size


def read(path: Path) -> tuple[float, float, int]:
    """Bytes that memory grew by at most, seconds, documents; for a process of its own."""
    from heedful.corpora.files import read_file

    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    found = read_file(path)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    documents = sum(len(split) for split in found.corpus.splits.values())
    return 1024 * grown, time.monotonic() - began, documents


def main(words: Sequence[str]) -> int:
    """Writes, reads and weighs one file."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture load")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.read:
        print(*read(given.read))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.jsonl"
        size = write(path, given.rows)
        command = [sys.executable, "-m", "tests.torture", "load", "--read", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    grown, seconds, documents = map(float, done.stdout.split())
    told = [line for line in done.stderr.splitlines() if line.startswith(("reading", "cutting"))]
    wrong = (grown >= MOST * size) + (not told) + (documents != given.rows)
    print("| rows | MB | seconds | memory grows by | lines of progress |\n|---|---|---|---|---|")
    row = f"{documents:,.0f} | {size / 1e6:.0f} | {seconds:.0f} | {grown / size:.2f} times the file"
    print(f"| {row} | {len(told)} |")
    return wrong
