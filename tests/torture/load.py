"""A large file of JSON Lines: what reading it says, how long it takes and how memory grows."""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from heedful.corpora.files import LARGE

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


def read(path: Path, large: int) -> tuple[float, float, int]:
    """Bytes that memory grew by at most, seconds, documents; for a process of its own.

    Documents are packed from so many rows on.
    """
    from heedful.corpora import files

    before, began = _peak(), time.monotonic()
    files.LARGE = large
    found = files.read_file(path)
    grown = _peak() - before
    documents = sum(len(split) for split in found.corpus.splits.values())
    return grown, time.monotonic() - began, documents


def _peak() -> int:
    """The most bytes of this program so far; `getrusage` begins with those of who started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def apart(path: Path, large: int = LARGE) -> tuple[float, float, float, list[str]]:
    """What `read` gives of a file in a process of its own, and what that said of its progress."""
    command = [sys.executable, "-m", "tests.torture", "load", "--large", str(large)]
    command += ["--read", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    grown, seconds, documents = map(float, done.stdout.split())
    told = [line for line in done.stderr.splitlines() if line.startswith(("reading", "cutting"))]
    return grown, seconds, documents, told


def main(words: Sequence[str]) -> int:
    """Writes, reads and weighs one file."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture load")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--large", type=int, default=LARGE, help=argparse.SUPPRESS)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.read:
        print(*read(given.read, given.large))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.jsonl"
        size = write(path, given.rows)
        grown, seconds, documents, told = apart(path)
    wrong = (grown >= MOST * size) + (not told) + (documents != given.rows)
    print("| rows | MB | seconds | memory grows by | lines of progress |\n|---|---|---|---|---|")
    row = f"{documents:,.0f} | {size / 1e6:.0f} | {seconds:.0f} | {grown / size:.2f} times the file"
    print(f"| {row} | {len(told)} |")
    return wrong
