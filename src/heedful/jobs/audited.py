"""What an audit leaves: its verdict and findings, as data, in a notebook, as a check."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heedful.audits import Finding, Verdict
from heedful.audits.concentration import FIRST, OUTSIDE, SOME, outside_in_words
from heedful.jobs.gate import Baseline, baseline_of, require
from heedful.report.quality import Quality, in_words
from heedful.runs import RunFolder


@dataclass(frozen=True, repr=False)
class Audited:
    """What an audit leaves."""

    verdict: Verdict
    findings: dict[str, Finding]
    folder: Path
    report: Path
    documents: int
    quality: Quality = field(default_factory=dict)
    """How well the model decides, by split."""

    @property
    def outside(self) -> str:
        """What is said of attention that lies on no word; nothing where all of it does."""
        found = self.findings.get("concentration")
        share, first = (found.get(name) if found else None for name in (OUTSIDE, FIRST))
        is_some = share is not None and share.value >= SOME
        return outside_in_words(share, first) if share is not None and is_some else ""

    def to_json(self) -> dict[str, Any]:
        """The audit as plain data, without the charts' data."""
        return {
            "verdict": self.verdict.to_json(),
            "documents": self.documents,
            "quality": {name: dict(number) for name, number in self.quality.items()},
            "folder": str(self.folder),
            "report": str(self.report),
            "findings": {
                name: {
                    "question": finding.question,
                    "answer": finding.answer,
                    "measures": finding.table().to_dict("records"),
                    "notes": list(finding.notes),
                }
                for name, finding in self.findings.items()
            },
        }

    def require(
        self, least: str | None = None, baseline: str | Path | Baseline | None = None
    ) -> Audited:
        """The audit itself, if its verdict is at least as good as asked for (`yes`, `partly`).

        `baseline` is an earlier run, whose verdict it must not fall behind. Else `VerdictWorse`.
        """
        if isinstance(baseline, str | Path):
            baseline = baseline_of(baseline)
        documents = str(RunFolder.open(self.folder).record.get("corpus", ""))
        require(self.verdict.word, least, baseline, documents)
        return self

    def __repr__(self) -> str:
        return f"Audited({self.verdict.word!r}, {self.documents} documents, {str(self.report)!r})"

    def __str__(self) -> str:
        return (
            f"May attention be shown as the reason? {self.verdict.word.upper()}\n"
            f"{self.verdict.sentence}\nThe page: {self.report}"
        )

    def _repr_html_(self) -> str:
        """The verdict card, for a notebook."""
        from heedful.report.notebook import verdict_card

        quality = in_words(self.quality)
        return verdict_card(self.verdict.to_json(), self.documents, quality, str(self.report))
