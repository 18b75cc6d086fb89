"""May attention be shown as the reason? One word, with the tests behind it.

Provisional: the borders below are chosen by reason, not yet fitted to models whose answer is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from heedful.audits.finding import Finding
from heedful.statistics.estimates import Estimate

Word = Literal["yes", "partly", "no", "cannot tell"]
Outcome = Literal["supports", "mixed", "contradicts", "unknown"]

FEWEST_DOCUMENTS = 100
"""With fewer documents intervals are too wide, and too often wrong, for a verdict."""


@dataclass(frozen=True)
class Border:
    """Where a measure stops contradicting the claim and where it starts supporting it."""

    audit: str
    measure: str
    method: str
    name: str
    contradicts: float
    supports: float
    sentence: str
    """What the measure says, with {value} in it."""
    is_essential: bool = True
    """Whether contradiction by this test alone makes the verdict `no`."""


BORDERS = (
    Border(
        "substitution",
        "decisions changed",
        "permuted",
        "The decision depends on where attention lies",
        contradicts=0.05,
        supports=0.2,
        sentence="Shuffling attention changes {value} of the decisions.",
    ),
    Border(
        "erasure",
        "efficiency",
        "attention",
        "Attention ranks what the decision rests on",
        contradicts=0.2,
        supports=0.6,
        sentence="Erasing by attention comes {value} of the way from a random order to the best "
        "order found.",
    ),
    Border(
        "input-erasure",
        "comprehensiveness",
        "attention - random",
        "Deleting the attended words hurts more than deleting others",
        contradicts=0.0,
        supports=0.05,
        sentence="Deleting the most attended words costs the decision {value} more probability "
        "than deleting random ones.",
    ),
    Border(
        "confidence",
        "units that decide alike",
        "",
        "Words keep to themselves",
        contradicts=0.95,
        supports=0.7,
        sentence="{value} of the words, attended alone, already give the decision: what one word "
        "holds has leaked into the others.",
        is_essential=False,
    ),
)


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
    """The table of the calibration that set the borders."""

    def to_json(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {
            "word": self.word,
            "sentence": self.sentence,
            "provisional": self.provisional,
            "tests": [test.to_json() for test in self.tests],
            "advice": list(self.advice),
            "calibration": self.calibration,
        }


SENTENCES: dict[Word, str] = {
    "yes": "Attention may be shown as the reason: decisions depend on it, and it ranks what they "
    "rest on.",
    "partly": "Attention is a hint, not a reason: some tests support it, others do not.",
    "no": "Attention should not be shown as the reason for these decisions.",
    "cannot tell": "The documents at hand do not settle it.",
}


def judge(findings: Mapping[str, Finding], documents: int) -> Verdict:
    """The verdict of all findings.

    A test supports or contradicts when its whole interval lies on that side of the border; between
    the borders, or across one, it is mixed. One essential contradiction makes `no`; all essential
    tests supporting makes `yes`.
    """
    tests = tuple(
        _test(border, findings[border.audit]) for border in BORDERS if border.audit in findings
    )
    outcomes = [
        test.outcome
        for test, border in zip(tests, _used(findings), strict=True)
        if border.is_essential
    ]
    word: Word
    if documents < FEWEST_DOCUMENTS:
        word = "cannot tell"
        reason = f"{documents} documents are too few; {FEWEST_DOCUMENTS} or more are needed."
    elif not outcomes or "unknown" in outcomes:
        word, reason = "cannot tell", "A test behind the verdict could not be made."
    elif "contradicts" in outcomes:
        word = "no"
        reason = next(t.sentence for t in tests if t.outcome == "contradicts")
    elif all(outcome == "supports" for outcome in outcomes):
        word, reason = "yes", tests[0].sentence
    else:
        word = "partly"
        reason = next(t.sentence for t in tests if t.outcome == "mixed")
    return Verdict(word, f"{SENTENCES[word]} {reason}", tests, _advice(word))


def _used(findings: Mapping[str, Finding]) -> tuple[Border, ...]:
    return tuple(border for border in BORDERS if border.audit in findings)


def _test(border: Border, finding: Finding) -> Test:
    estimate = finding.get(border.measure, border.method)
    if estimate is None or math.isnan(estimate.value) or math.isnan(estimate.low):
        nothing = Estimate(math.nan, math.nan, math.nan, 0, "none")
        sentence = f"{border.name}: could not be measured here."
        return Test(
            border.name,
            "unknown",
            sentence,
            border.audit,
            estimate or nothing,
            border.contradicts,
            border.supports,
        )
    rises = border.supports > border.contradicts
    good, bad = ("above", "below") if rises else ("below", "above")
    outcome: Outcome = "mixed"
    if estimate.side(border.supports) == good:
        outcome = "supports"
    elif estimate.side(border.contradicts) == bad:
        outcome = "contradicts"
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


def _advice(word: Word) -> tuple[str, ...]:
    if word == "yes":
        return ("Show attention together with this page, and audit again after every retraining.",)
    if word == "cannot tell":
        return ("Audit more documents: a few hundred are usually enough.",)
    return (
        "Show leave-one-out or integrated gradients instead: the table of input erasure says which "
        "of them finds the words this model needs.",
        "Or train a model whose attention can be believed: add `+tying:10` to the recipe, with "
        "width equal to embedding_dim, and audit it again.",
    )
