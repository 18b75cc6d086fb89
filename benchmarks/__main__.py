"""Measures every case, prints the table, writes benchmarks/results.json and docs/performance.md."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks import (
    alignment,
    answers,
    auditing,
    cases,
    explaining,
    flow,
    growing,
    growth,
    live,
    memory,
    short,
    stacking,
    tracing,
)
from benchmarks.explorer_load import section
from benchmarks.sizes import PUBLISHED, SMALL, Sizes
from benchmarks.table import Row, machine, page, plain
from benchmarks.timing import bandwidth
from heedful.runs import write_json, writing

ROOT = Path(__file__).parents[1]


def measure(sizes: Sizes, bytes_per_second: float) -> list[Row]:
    """All rows, in the order of the table."""
    parts: dict[str, Callable[[], list[Row]]] = {
        "curves": lambda: cases.curve_rows(sizes, bytes_per_second),
        "forward pass": lambda: cases.forward_rows(sizes),
        "adversaries": lambda: cases.adversary_rows(sizes),
        "captum": lambda: cases.captum_rows(sizes),
        "short documents": lambda: short.short_rows(sizes),
        "stacking": lambda: stacking.stacking_rows(sizes.instances, sizes.slow_repeats),
        "flow": lambda: [flow.flow_row(sizes.texts, sizes.words, sizes.slow_repeats)],
        "tracing": lambda: [tracing.trace_row(sizes.traced, sizes.slow_repeats)],
        "transformers": lambda: explaining.transformer_rows(
            sizes.tokens, sizes.short_words, sizes.slow_repeats, sizes.layers
        ),
        "live page": lambda: [live.live_row(sizes.tokens, sizes.layers, sizes.slow_repeats)],
        "answers": lambda: answers.answer_rows(sizes.tokens, sizes.layers, sizes.slow_repeats),
        "alignment": lambda: alignment.alignment_rows(sizes.pairs),
        "audits": lambda: auditing.audit_rows(
            sizes.audited,
            sizes.compared,
            sizes.audited_few,
            sizes.audited_many,
            sizes.slow_repeats,
        ),
        "growing audits": lambda: growing.growth_rows(sizes.grown, sizes.grown_times),
        "growth": lambda: growth.growth_rows(sizes),
        "memory": lambda: [memory.memory_row(sizes.few, sizes.many, sizes.memory_units)],
    }
    rows = []
    for name, part in parts.items():
        started = time.perf_counter()
        with torch.no_grad():
            rows += part()
        print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    return rows


def main() -> int:
    """Exit status 1 when a limit is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--out", type=Path, help="write both files here instead")
    options = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1))
    speed = bandwidth(8 if options.small else 128)
    rows = measure(SMALL if options.small else PUBLISHED, speed)
    measured = machine() | {"small": options.small}
    results = options.out / "results.json" if options.out else ROOT / "benchmarks/results.json"
    text = options.out / "performance.md" if options.out else ROOT / "docs/performance.md"
    write_json(
        results,
        measured | {"bytes_per_second": speed, "rows": [row.to_json() for row in rows]},
    )
    with writing(text) as path:
        path.write_text(page(rows, measured, speed / 1e9) + section(), encoding="utf-8")
    print(plain(rows))
    return int(any(row.passes is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
