"""Several audited runs side by side: which model's attention may be shown?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import InputError
from heedful.report.compare_page import Column, render_comparison
from heedful.runs import RunFolder, read_json, write_text


@dataclass(frozen=True)
class Compared:
    """What a comparison leaves."""

    columns: tuple[Column, ...]
    """One per run, in the order given."""
    page: Path
    notes: tuple[str, ...]

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
                    "tests": [dict(test) for test in one.verdict["tests"]],
                }
                for one in self.columns
            ],
        }

    def lines(self) -> list[str]:
        """The comparison for the terminal: a line per run."""
        width = max(len(one.run) for one in self.columns)
        found = [
            f"{one.run:{width}}  {one.verdict['word']:11}  {one.model} on {one.corpus}"
            for one in self.columns
        ]
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
    page = Path(out)
    try:
        write_text(page, render_comparison(columns, tuple(notes)))
    except OSError as error:
        raise InputError(f"Cannot write {page}: {error.strerror}; choose another --out.") from error
    return Compared(columns, page, tuple(notes))


def _column(run: RunFolder) -> Column:
    """One run as its files tell it."""
    verdict = run.findings / "verdict.json"
    if run.configuration.get("kind") == "translator":
        raise InputError(
            f"{run.path} holds a translator, which has no verdict to compare; its page says what "
            f"was found: {run.path / 'index.html'}."
        )
    if not verdict.is_file():
        raise InputError(f"{run.path} has not been audited; run `heedful audit {run.path}` first.")
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
        scores=dict(record.get("test") or {}),
        verdict=read_json(verdict),
        findings=findings,
    )
