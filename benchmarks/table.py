"""Rows of the one table, as data, on the terminal and as a page."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from heedful.runs.provenance import commit, now, versions


@dataclass(frozen=True)
class Row:
    """One case: what we need, what others need for the same, and how the two compare."""

    case: str
    ours: float
    """In `unit`, like `naive` and `peer`."""
    ratio: float
    against: str
    """What the ratio compares with."""
    sentence: str
    """How far from the limit, and why."""
    naive: float | None = None
    peer: float | None = None
    unit: str = "ms"
    at_least: float | None = None
    """The least ratio that passes."""
    at_most: float | None = None
    """The largest ratio that passes."""

    @property
    def limit(self) -> str:
        """The limit as text; empty where none was set."""
        if self.at_least is not None:
            return f"≥ {self.at_least:g}"
        return f"≤ {self.at_most:g}" if self.at_most is not None else ""

    @property
    def passes(self) -> bool | None:
        """Whether the ratio keeps its limit; none where there is no limit."""
        if self.at_least is not None:
            return self.ratio >= self.at_least
        return self.ratio <= self.at_most if self.at_most is not None else None

    def to_json(self) -> dict[str, Any]:
        """The row as plain data."""
        return asdict(self) | {"limit": self.limit, "passes": self.passes}


COLUMNS = ("case", "ours", "naive", "peer", "ratio", "against", "limit", "passes")


def cells(row: Row) -> tuple[str, ...]:
    """A row as text, in the order of `COLUMNS`."""
    passes = {None: "", True: "yes", False: "NO"}[row.passes]
    amounts = (_amount(x, row.unit) for x in (row.ours, row.naive, row.peer))
    return (row.case, *amounts, _spelt(row.ratio), row.against, row.limit, passes)


def plain(rows: Sequence[Row]) -> str:
    """The table for a terminal."""
    lines = [COLUMNS, *map(cells, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def machine() -> dict[str, Any]:
    """The machine in words, and what the numbers depend on."""
    cores = os.cpu_count()
    return {
        "machine": f"{_processor()}, {cores} cores, {platform.system()}",
        "threads": torch.get_num_threads(),
        "versions": versions(),
        "commit": commit(),
        "date": now(),
    }


def page(rows: Sequence[Row], measured: dict[str, Any], gigabytes: float) -> str:
    """`docs/performance.md`: the table, and a sentence for each row."""
    head = "| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS)
    body = "\n".join("| " + " | ".join(cells(row)) + " |" for row in rows)
    said = "\n".join(f"* **{row.case}.** {row.sentence}" for row in rows)
    missed = [row.case for row in rows if row.passes is False]
    verdict = "Every limit is kept." if not missed else f"Limits missed: {'; '.join(missed)}."
    small = "**Small sizes, for a quick look only: not the measurement.** " * measured["small"]
    return f"""# Performance

Written by `make bench`, which measures everything below side by side in one run: samples are taken
in turn, and each number is a median. {small}{verdict}

{measured["machine"]}; threads: {measured["threads"]}; torch {measured["versions"]["torch"]}; a big
copy moves {gigabytes:.1f} GB/s; commit {measured["commit"]}; {measured["date"]}.

{head}
{body}

The ratio is theirs over ours where the limit is ≥, ours over theirs (or a fitted exponent) where it
is ≤. A forward pass is that of `bilstm+additive` at its default sizes, in float32, over the same
documents.

Peers that are not in the table: ferret-xai 0.4.2 does not install beside us (it wants transformers
< 5, numpy < 2, captum < 0.8 and pandas < 3); inseq 0.7.1 explains generation, not classifiers.

Measured on a GPU (an H200): tracing, `results/tracing/gpu.json` (16,384 tokens, bfloat16, 6 layers,
12 heads: 3.5 times the fused attention calls alone, 240 MiB above the forward pass, memory growing
with exponent 0.99); explanations of a BERT of base size, [a table](results/transformers/README.md);
twenty seeds of a task as one stack, [1.3 to 1.9 times one seed](results/dynamics/README.md#speed);
what limits training, [a table](results/erasure/README.md#what-limits-training-on-the-card).

{said}
"""


def _amount(x: float | None, unit: str) -> str:
    if x is None:
        return ""
    return f"{_spelt(x)} {unit}"


def _spelt(x: float) -> str:
    """Three digits, and all before the point: 0.0256, 26.9, 1,030."""
    return f"{x:.3g}" if x < 999.5 else f"{x:,.0f}"


def _processor() -> str:
    listing = Path("/proc/cpuinfo")
    if listing.is_file():
        for line in listing.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()
