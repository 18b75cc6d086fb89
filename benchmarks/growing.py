"""How an audit's time and memory grow with documents, words and layers, each in its own process.

`python -m benchmarks.growing DOCUMENTS WORDS LAYERS` prints what one audit took as JSON.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from benchmarks.subjects import WORDS
from benchmarks.table import Row
from benchmarks.timing import exponent
from heedful.models import build, parse

AXES = ("documents", "words", "layers")
LIMITS: Mapping[str, float] = {"documents": 1.1, "words": 1.3, "layers": 1.1}
"""Largest exponents, of time and of memory."""


class Taken(NamedTuple):
    """What one audit took."""

    seconds: float
    """Of the processor."""
    megabytes: float
    """At most, above the process with the model built."""


def growth_rows(start: tuple[int, int, int], times: tuple[int, ...]) -> list[Row]:
    """Exponents of time and of memory along each axis, the others as at the start."""
    rows = []
    for place, axis in enumerate(AXES):
        sizes = [start[place] * factor for factor in times]
        found = {size: taken(*start[:place], size, *start[place + 1 :]) for size in sizes}
        others = ", ".join(f"{n} {a}" for a, n in zip(AXES, start, strict=True) if a != axis)
        time_of = {size: one.seconds for size, one in found.items()}
        memory_of = {size: one.megabytes for size, one in found.items()}
        spelt = "; ".join(
            f"{one.seconds:.1f} s and {one.megabytes:.0f} MB of {size}"
            for size, one in found.items()
        )
        for what, unit, each, scale in (
            ("time", "ms", time_of, 1000),
            ("memory above rest", "MB", memory_of, 1),
        ):
            rows.append(
                Row(
                    case=f"growth of an exhaustive audit's {what} with {axis}, "
                    f"{sizes[0]} to {sizes[-1]}",
                    ours=scale * each[sizes[-1]],
                    ratio=exponent(each),
                    against="fitted exponent",
                    unit=unit,
                    at_most=LIMITS[axis],
                    sentence=f"{others}: {spelt}. What every audit takes once makes it look flat.",
                )
            )
    return rows


def taken(documents: int, words: int, layers: int) -> Taken:
    """What an audit takes in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.growing", *map(str, (documents, words, layers))]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    return Taken(**json.loads(done.stdout.splitlines()[-1]))


def main(documents: int, words: int, layers: int) -> Taken:
    """Audits a random `bilstm+additive` of so many layers on documents of so many random words."""
    import heedful

    config = replace(parse("bilstm+additive").model, layers=layers)
    model = build(config, WORDS, ("no", "yes"), seed=0)
    with torch.no_grad():  # as sharp as trained ones, as in `subjects.bilstm`
        model.embedding.weight *= 2
        model.head.weight *= 4
    draw = np.random.default_rng(0)
    numbers = draw.integers(0, 5_000, (documents, words)).tolist()
    texts = [" ".join(f"word{number}" for number in text) for text in numbers]
    labels = draw.integers(0, 2, documents).tolist()
    given = {"text": texts, "label": [("no", "yes")[label] for label in labels]}
    import heedful.jobs.audit  # what is imported is neither time nor memory of the audit

    resting, started = _peak(), time.process_time()
    with tempfile.TemporaryDirectory() as place:
        heedful.audit(model, given, Path(place) / "run", documents=0, effort="exhaustive")
    # A tiny audit may need no more than what was imported: less than 1 MB is not told apart.
    return Taken(time.process_time() - started, max(_peak() - resting, 1.0))


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    print(json.dumps(main(*map(int, sys.argv[1:4]))._asdict()))
