"""May attention be shown as the reason? One word, with the tests behind it.

The word says in which share of the texts a person who reads attention foresees what the model does
when words are exchanged (`exchange`). Where its two borders lie was fitted to mechanisms whose
right answer is known (`heedful calibrate`, docs/calibration.md) and is read from `calibration.json`
beside this module; without that file they are those of the right answer itself, and the verdict is
provisional.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from heedful.audits.exchange import GOES, MATTER, PASSES, SHARE
from heedful.audits.finding import Finding, Outcome
from heedful.audits.ranking import Ranking, rank
from heedful.runs.atomic import read_json
from heedful.statistics.estimates import Estimate, per_cent, per_cent_beside

Word = Literal["yes", "partly", "no", "cannot tell"]

FEWEST_DOCUMENTS = 100
"""With fewer documents intervals are too wide, and too often wrong, for a verdict."""
CALIBRATION = Path(__file__).with_name("calibration.json")
BORDERS = {"no": 0.25, "yes": 0.75}
"""Shares of texts up to which the right word is no, and from which on it is yes."""
AUDIT, HEADS = "exchange", "single-heads"
RULE = (
    "A person sees the words with at least half of the largest weight, and more until half of the "
    "attention is seen.",
    "The words seen of each text are put into eight texts that were decided otherwise, in the "
    "place of the words seen there: in five of six the text's own decision should come with them.",
    "At the point where it turns, the words that it needs should have at least half of the "
    "attention; and when attention is forbidden to look at the words, at least half of their "
    "effect should be gone.",
    "Yes if all of this holds in at least {yes} of the texts and no word of the model's "
    "vocabulary overturns decisions unseen, no if in at most {no}, partly between.",
)
"""How the word comes about."""


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
    rule: tuple[str, ...] = ()
    """How the word comes about, in four sentences."""
    near: str = ""
    """The word that other texts like these could have given; empty where the word is certain."""
    group: Mapping[str, Any] | None = None
    """Texts that can be told apart in which it holds more often, as `TextGroup` has them."""
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
            "rule": list(self.rule),
            "near": self.near,
            "group": self.group,
            "advice": list(self.advice),
            "calibration": self.calibration,
            "ranking": None if self.ranking is None else self.ranking.to_json(),
        }


SENTENCES: dict[Word, str] = {
    "yes": "Attention may be shown as the reason: decisions go with the words it shows, and by way "
    "of it.",
    "partly": "Attention is a hint, not a reason.",
    "no": "Attention should not be shown as the reason for these decisions.",
    "cannot tell": "The documents at hand do not settle it.",
}
POINTS_ONLY = "it points at the right words, but does not decide by them."
DECIDES_ONLY = "it decides through attention, but the words it shows are not the reason."
NEITHER = "the words it shows are not the reason, or what decides passes around it."
OVERTURNED = (
    "On these texts the decisions go with the words shown; but the word {word}, which none of them "
    "has, overturns decisions and is not shown itself."
)
OUTCOMES: dict[Word, Outcome] = {
    "yes": "supports",
    "partly": "mixed",
    "no": "contradicts",
    "cannot tell": "unknown",
}
HALVES: dict[str, str] = {
    GOES: "Put into texts that were decided otherwise, the words shown bring their decision with "
    "them in {value} of the texts.",
    MATTER: "Where they do, most of the attention lies on words that the decision needs in {value} "
    "of the texts.",
    PASSES: "Where they do, most of their effect is gone when attention may not look at them in "
    "{value} of the texts.",
}
"""The tests behind the word, and what they say."""


@cache
def calibration() -> Mapping[str, Any] | None:
    """What `heedful calibrate` found, as kept in the package; none where there is no such file."""
    found: Mapping[str, Any] | None = read_json(CALIBRATION) if CALIBRATION.is_file() else None
    return found


def borders(calibrated: Mapping[str, Any] | None) -> dict[str, float]:
    """The borders of a calibration."""
    if not calibrated:
        return BORDERS
    return {side: float(calibrated["borders"][side]["value"]) for side in BORDERS}


def word_of(share: Estimate | None, at: Mapping[str, float]) -> Word:
    """The word for a share of texts; where it is undefined, `cannot tell`."""
    if share is None or math.isnan(share.value):
        return "cannot tell"
    if share.value >= at["yes"]:
        return "yes"
    return "no" if share.value <= at["no"] else "partly"


def judge(
    findings: Mapping[str, Finding],
    documents: int,
    calibrated: Mapping[str, Any] | None = None,
) -> Verdict:
    """The verdict of all findings, by the package's calibration unless another one is given."""
    calibrated = calibration() if calibrated is None else calibrated
    at, finding = borders(calibrated), findings.get(AUDIT)
    share = finding.get(SHARE) if finding else None
    word, near = word_of(share, at), ""
    if word == "cannot tell":
        reason = finding.answer if finding else "Words were not exchanged between texts."
    elif documents < FEWEST_DOCUMENTS:
        word, reason = "cannot tell", _too_few(documents, calibrated)
    elif word == "yes" and finding is not None and (hidden := finding.drawn.get("overturned")):
        word, reason = "cannot tell", OVERTURNED.format(word=hidden[0])
    else:
        assert share is not None
        assert finding is not None
        near = _near(word, share, at)
        shown = per_cent_beside(share.value, *at.values())
        reason = f"All three tests hold at once in {shown} of the texts."
        if word != "yes" and (failed := _failed(finding, at)):
            said = failed[0].upper() + failed[1:]
            reason = f"{reason} In the others {failed}" if word == "partly" else f"{said} {reason}"
        if word == "partly" and (group := finding.drawn.get("group")):
            reason += f" {group['sentence']}"
        if near:
            reason += f" With other texts like these the word could have been {near}."
    reason = " ".join([reason, *(finding.drawn.get("conditions", ()) if finding else ())])
    ranking = rank(findings, may_show=word == "yes")
    shares = {side: per_cent(border) for side, border in at.items()}
    return Verdict(
        word,
        f"{SENTENCES[word]} {reason}",
        _tests(finding, at) if finding else (),
        (*_head(word, findings, at), *_advice(word, ranking)),
        tuple(sentence.format(**shares) for sentence in RULE),
        near,
        finding.drawn.get("group") if finding else None,
        calibrated is None,
        calibrated["table"] if calibrated else None,
        ranking,
    )


def _head(word: Word, findings: Mapping[str, Finding], at: Mapping[str, float]) -> tuple[str, ...]:
    """The advice to show one head, where the mean over heads may not be shown and that one may."""
    found = findings.get(HEADS)
    if word in ("yes", "cannot tell") or found is None:
        return ()
    fit = [one for one in found.measures if one.estimate.side(at["yes"]) == "above"]
    if not fit:
        return ()
    best = max(fit, key=lambda one: one.estimate.value)
    held = f"{per_cent(best.estimate.value)} of {best.estimate.n} texts"
    return (
        f"Show {best.method} of the audited layer instead: all three tests hold at once in {held}.",
    )


def _near(word: Word, share: Estimate, at: Mapping[str, float]) -> str:
    """The word on the other side of a border that the share's interval reaches."""
    ends = (word_of(replace(share, value=end), at) for end in (share.low, share.high))
    return next((other for other in ends if other not in (word, "cannot tell")), "")


def _failed(finding: Finding, at: Mapping[str, float]) -> str:
    """Which of the two failed: to point at what decides, or to decide by it."""
    goes, matter, passes = (_value(finding, name) for name in (GOES, MATTER, PASSES))
    points, decides = goes * matter >= at["yes"], passes >= at["yes"]
    if points:
        return "" if decides else POINTS_ONLY
    return DECIDES_ONLY if decides else NEITHER


def _value(finding: Finding, name: str) -> float:
    estimate = finding.get(name)
    return 0.0 if estimate is None or math.isnan(estimate.value) else estimate.value


def _tests(finding: Finding, at: Mapping[str, float]) -> tuple[Test, ...]:
    """The three tests; each would be supported or contradicted by the borders of the word."""
    found = []
    for name, sentence in HALVES.items():
        estimate = finding.get(name) or Estimate(math.nan, math.nan, math.nan, 0, "none")
        outcome: Outcome = "unknown"
        said = "could not be measured here."
        if not math.isnan(estimate.value):
            said = sentence.format(value=per_cent_beside(estimate.value, *at.values()))
            word = word_of(estimate, at)
            outcome = OUTCOMES[word]
        title = name[0].upper() + name[1:]
        found.append(Test(title, outcome, said, AUDIT, estimate, at["no"], at["yes"]))
    return tuple(found)


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


def _advice(word: Word, ranking: Ranking | None) -> tuple[str, ...]:
    """What holds for any model; what one run can do about it is said by `jobs/advice.py`."""
    if word == "cannot tell":
        return ("Audit more documents: a few hundred are usually enough.",)
    if word == "yes":
        return ("Show attention together with this page, and audit again after every retraining.",)
    return () if ranking is None else (ranking.recommendation,)
