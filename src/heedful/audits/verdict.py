"""May attention be shown as the reason? One word, with the tests behind it.

Two tests, each on one measure, and a veto. Where their borders lie was fitted to models whose right
answer is known by construction (`heedful calibrate`, docs/calibration.md) and is read from
`calibration.json` beside this module; without that file those of the audits hold and the verdict is
provisional.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from heedful.audits.finding import Border, Finding, Outcome
from heedful.audits.ranking import Ranking, rank
from heedful.audits.registry import AUDITS
from heedful.runs.atomic import read_json
from heedful.statistics.estimates import Estimate

Word = Literal["yes", "partly", "no", "cannot tell"]

FEWEST_DOCUMENTS = 100
"""With fewer documents intervals are too wide, and too often wrong, for a verdict."""
CALIBRATION = Path(__file__).with_name("calibration.json")


BORDERS = tuple(
    sorted((audit.border for audit in AUDITS.values() if audit.border), key=lambda b: b.is_veto)
)
"""Those of the audits that enter the verdict: tests first, vetoes last."""


@dataclass(frozen=True)
class Test:
    """One test behind the verdict."""

    name: str
    outcome: Outcome
    sentence: str
    audit: str
    estimate: Estimate
    contradicts: float
    supports: float

    def to_json(self) -> dict[str, Any]:
        """The test as plain data."""
        return {
            "name": self.name,
            "outcome": self.outcome,
            "sentence": self.sentence,
            "audit": self.audit,
            **self.estimate.to_json(),
            "threshold": self.supports,
            "contradicts": self.contradicts,
        }


@dataclass(frozen=True)
class Verdict:
    """The answer and why."""

    word: Word
    sentence: str
    tests: tuple[Test, ...]
    advice: tuple[str, ...] = ()
    provisional: bool = True
    calibration: Mapping[str, Any] | None = field(default=None)
    """The table of the calibration that set the borders: columns, rows, caption."""
    ranking: Ranking | None = None
    """All explanations of the model by how faithful they are, where words were deleted."""

    def to_json(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {
            "word": self.word,
            "sentence": self.sentence,
            "provisional": self.provisional,
            "tests": [test.to_json() for test in self.tests],
            "advice": list(self.advice),
            "calibration": self.calibration,
            "ranking": None if self.ranking is None else self.ranking.to_json(),
        }


SENTENCES: dict[Word, str] = {
    "yes": "Attention may be shown as the reason: decisions depend on it, and what it shows says "
    "them.",
    "partly": "Attention is a hint, not a reason: some tests support it, others do not.",
    "no": "Attention should not be shown as the reason for these decisions.",
    "cannot tell": "The documents at hand do not settle it.",
}

TELLING: dict[Word, Outcome] = {
    "yes": "supports",
    "partly": "mixed",
    "no": "contradicts",
    "cannot tell": "unknown",
}
"""The outcome of a test whose sentence gives the reason for a word."""


@cache
def calibration() -> Mapping[str, Any] | None:
    """What `heedful calibrate` found, as kept in the package; none where there is no such file."""
    found: Mapping[str, Any] | None = read_json(CALIBRATION) if CALIBRATION.is_file() else None
    return found


def borders(calibrated: Mapping[str, Any] | None) -> tuple[Border, ...]:
    """The borders with the numbers of a calibration."""
    fitted = calibrated["borders"] if calibrated else {}
    return tuple(replace(border, **fitted.get(border.key, {})) for border in BORDERS)


def word_of(outcomes: Mapping[Border, Outcome]) -> Word:
    """One contradiction makes `no`; then one test that could not be made, `cannot tell`.

    All supporting makes `yes`, where a veto supports by not contradicting; the rest is `partly`.
    """
    if "contradicts" in outcomes.values():
        return "no"
    if "unknown" in outcomes.values():
        return "cannot tell"
    mixed = any(o == "mixed" and not border.is_veto for border, o in outcomes.items())
    return "partly" if mixed else "yes"


def judge(
    findings: Mapping[str, Finding],
    documents: int,
    calibrated: Mapping[str, Any] | None = None,
) -> Verdict:
    """The verdict of all findings, by the package's calibration unless another one is given."""
    calibrated = calibration() if calibrated is None else calibrated
    rule = borders(calibrated)
    tests = {border: _test(border, findings.get(border.audit)) for border in rule}
    word = word_of({border: test.outcome for border, test in tests.items()})
    if documents < FEWEST_DOCUMENTS:
        word, reason = "cannot tell", _too_few(documents, calibrated)
    else:
        reason = next(
            test.sentence
            for border, test in tests.items()
            if test.outcome == TELLING[word] and not (word == "partly" and border.is_veto)
        )
    shown = tuple(test for test in tests.values() if test.audit in findings)
    table = calibrated["table"] if calibrated else None
    sentence = f"{SENTENCES[word]} {reason}"
    ranking = rank(findings, may_show=word == "yes")
    advice = _advice(word, ranking)
    return Verdict(word, sentence, shown, advice, calibrated is None, table, ranking)


def _too_few(documents: int, calibrated: Mapping[str, Any] | None) -> str:
    """Why so few documents are too few, with the coverage measured for that many."""
    reason = f"{documents} documents are too few: audit {FEWEST_DOCUMENTS} or more."
    measured = [row for row in (calibrated or {}).get("coverage", ()) if row["n"] <= documents]
    if not measured:
        return reason
    n = max(row["n"] for row in measured)
    worst = min(row["coverage"] for row in measured if row["n"] == n)
    missed = round(100 * (1 - worst))
    return (
        f"{reason} When we tried it with {n}, intervals that should miss the truth 5 times in 100 "
        f"missed it up to {missed} times."
    )


def _test(border: Border, finding: Finding | None) -> Test:
    estimate = finding.get(border.measure, border.method) if finding else None
    outcome = border.outcome(estimate)
    if estimate is None or outcome == "unknown":
        sentence = f"{border.name}: could not be measured here."
        estimate = estimate or Estimate(math.nan, math.nan, math.nan, 0, "none")
    else:
        sentence = border.sentence.format(value=f"{100 * estimate.value:.0f} %")
    return Test(
        border.name,
        outcome,
        sentence,
        border.audit,
        estimate,
        border.contradicts,
        border.supports,
    )


def _advice(word: Word, ranking: Ranking | None) -> tuple[str, ...]:
    """What holds for any model; what one run can do about it is said by `jobs/advice.py`."""
    if word == "cannot tell":
        return ("Audit more documents: a few hundred are usually enough.",)
    if word == "yes":
        return ("Show attention together with this page, and audit again after every retraining.",)
    return () if ranking is None else (ranking.recommendation,)
