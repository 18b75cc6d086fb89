"""Several audited runs side by side: which model's attention may be shown?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import pandas as pd

from heedful.errors import InputError
from heedful.report.compare_page import Column, numbers, render_comparison
from heedful.report.html import shareable
from heedful.report.quality import most_decided
from heedful.runs import TABLE, RunFolder, read_json, write_text
from heedful.statistics import Estimate, paired

DECIDING = ("confidence", "substitution")
"""Audits whose rows say how each document was decided."""


@dataclass(frozen=True)
class Compared:
    """What a comparison leaves."""

    columns: tuple[Column, ...]
    """One per run, in the order given."""
    page: Path
    notes: tuple[str, ...]
    gains: tuple[Estimate, ...] = ()
    """Accuracy of every run but the first minus that of the first, on documents of all of them."""

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain data."""
        return {
            "page": str(self.page),
            "notes": list(self.notes),
            "runs": [
                {
                    "run": one.run,
                    "model": one.model,
                    "corpus": one.corpus,
                    "verdict": one.verdict["word"],
                    "accuracy": None if one.accuracy is None else one.accuracy.to_json(),
                    "tests": [dict(test) for test in one.verdict["tests"]],
                }
                for one in self.columns
            ],
            "gains": [gain.to_json() for gain in self.gains],
        }

    def lines(self) -> list[str]:
        """The comparison for the terminal: verdicts, then every number with n and interval."""
        width = max(len(one.run) for one in self.columns)
        found = [
            f"{one.run:{width}}  {one.verdict['word']:11}  {shareable(one.model)} on "
            f"{shareable(one.corpus)}"
            for one in self.columns
        ]
        for name, cells in numbers(self.columns):
            found.append(f"{name}:")
            shown = zip(self.columns, cells, strict=True)
            found += [f"  {one.run:{width}}  {cell}" for one, cell in shown]
        return [*found, *self.notes, f"Side by side: {self.page}"]


def compare(runs: Sequence[str | Path], out: str | Path = "comparison.html") -> Compared:
    """The verdicts of audited runs, with a page that puts their tests and measures side by side.

    Nothing is run: the page is made of what the audits left. Runs on other documents are compared
    too, and the page says so.
    """
    if len(runs) < 2:
        raise InputError(f"A comparison needs at least two runs, got {len(runs)}.")
    columns = tuple(_column(RunFolder.open(run)) for run in runs)
    notes = []
    if len({one.fingerprint for one in columns}) > 1:
        notes.append("The runs were audited on different documents: differences may be the texts'.")
    if len({one.documents for one in columns}) > 1:
        counts = ", ".join(f"{one.documents:,}" for one in columns)
        notes.append(f"The runs were audited on different numbers of documents: {counts}.")
    gains = _gains(columns, [RunFolder.open(run) for run in runs])
    notes += [_told(columns[0], one, gain) for one, gain in zip(columns[1:], gains, strict=False)]
    page = Path(out)
    try:
        write_text(page, render_comparison(columns, tuple(notes)))
    except OSError as error:
        raise InputError(f"Cannot write {page}: {error.strerror}; choose another --out.") from error
    return Compared(columns, page, tuple(notes), gains)


def _gains(columns: Sequence[Column], runs: Sequence[RunFolder]) -> tuple[Estimate, ...]:
    """Differences of accuracy to the first run, paired by the documents that all were audited on.

    Nothing where they have none in common, or no labels.
    """
    if len({Path(one.corpus).name for one in columns}) > 1:
        return ()
    right = []
    for run in runs:
        files = (run.findings / f"{name}.parquet" for name in DECIDING)
        rows = most_decided({file.stem: TABLE.load(file) for file in files if file.is_file()})
        right.append(rows.set_index("instance")["right"].astype(float))
    shared = pd.concat(right, axis=1, join="inner").sort_index()
    if shared.empty:
        return ()
    instances = [str(name) for name in shared.index]
    first, *others = shared.to_numpy().T
    return tuple(paired(other, first, instances, most=1) for other in others)


def _told(first: Column, one: Column, gain: Estimate) -> str:
    """A difference of accuracy in words."""
    sign = 1 if gain.value >= 0 else -1
    ends = ", ".join(f"{100 * end:.1f}" for end in sorted((sign * gain.low, sign * gain.high)))
    points = f"{100 * abs(gain.value):.1f}" + (f" [{ends}]" if gain.low == gain.low else "")
    often = f"{points} points {'more' if sign > 0 else 'less'} often than {first.run}"
    if gain.value == 0:
        often = f"as often as {first.run}" + (f" [{ends} points]" if gain.low == gain.low else "")
    shared = f"On the {gain.n:,} documents that all runs were audited on"
    return f"{shared}, {one.run} is right {often}."


def _column(run: RunFolder) -> Column:
    """One run as its files tell it."""
    verdict = run.findings / "verdict.json"
    if run.configuration.get("kind") == "translator":
        raise InputError(
            f"{run.path} holds a translator, which has no verdict to compare; its page says what "
            f"was found: {run.path / 'index.html'}."
        )
    if not verdict.is_file():
        raise InputError(
            f"{run.path} has not been audited; run `heedful audit {quote(str(run.path))}` first."
        )
    record = run.record
    findings = {
        path.stem: read_json(path)
        for path in sorted(run.findings.glob("*.json"))
        if path.stem not in ("verdict", "instances")
    }
    audited = record.get("audited") or {}
    return Column(
        run=run.path.name,
        model=str(run.configuration.get("recipe", "a model")),
        corpus=str(audited.get("corpus") or run.configuration.get("corpus", "")),
        fingerprint=str(record.get("corpus", "")),
        documents=int(audited.get("documents") or 0),
        accuracy=_accuracy(audited.get("accuracy"), findings.get("substitution")),
        verdict=read_json(verdict),
        findings=findings,
    )


def _accuracy(told: dict[str, Any] | None, finding: dict[str, Any] | None) -> Estimate | None:
    """The accuracy on the documents that were read, where they have labels."""
    if told:
        return Estimate.from_json(told)
    measures = finding["measures"] if finding else ()
    found = [m for m in measures if (m["measure"], m["method"]) == ("accuracy", "trained")]
    return Estimate.from_json(found[0]) if found else None
