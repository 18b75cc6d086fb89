"""May what a language model attended to be shown as the reason for its answers? One word.

The word says how much of what removing the most needed source costs is found by the first source of
an explanation. Its borders were fitted to decoders whose right word is known (`heedful calibrate`,
docs/calibration.md) and are read from `calibration.json`; how often the word was right on decoders
that nothing was fitted to is said with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from heedful.audits.answer_measures import ATTENTION, BEYOND, DEPENDING, FOUND, ORACLE
from heedful.audits.finding import Finding
from heedful.audits.tables import percent
from heedful.audits.verdict import calibration
from heedful.importance.sources import CHOSEN, LEARNT, RANDOM
from heedful.statistics.estimates import Estimate, per_cent

Word: TypeAlias = Literal["attention as it is", "these heads, so weighted", "no", "cannot tell"]
SENTENCES: dict[Word, str] = {
    "attention as it is": "The source with the most attention is nearly as needed for the answer "
    "as the one that is needed most.",
    "these heads, so weighted": "The attention of all heads is not the reason; that of the heads "
    "chosen or weighed on dev questions names sources that are needed.",
    "no": "What the model attended to should not be shown as the reason for its answers.",
    "cannot tell": "The answers at hand do not settle it.",
}
GATES: dict[Word, Literal["yes", "partly", "no", "cannot tell"]] = {
    "attention as it is": "yes",
    "these heads, so weighted": "partly",
    "no": "no",
    "cannot tell": "cannot tell",
}
"""What `--require` takes each word for."""
FEWEST = 20
"""With fewer answers there is no word."""
DESERVED = 0.75
"""Of the decoders that nothing was fitted to, so many must get the right word, or the word is not
called calibrated."""


class AnswerBorders(NamedTuple):
    """What a share must reach."""

    share: float
    """Of the best drop, so much must be found."""
    sure: float
    """Its interval must lie above so much."""
    least: float
    """Removing the most needed source must cost so many nats, the mean over answers."""
    depending: float
    """So many of the answers must depend on a source."""


FIRST_BORDERS = AnswerBorders(0.75, 0.5, 0.0, 0.0)
"""Those before any were fitted."""


@dataclass(frozen=True)
class Shares:
    """What the word is made of."""

    found: Mapping[str, Estimate]
    """The share of the best drop, by explanation."""
    beyond: Mapping[str, Estimate]
    """How much more of it heads find than attention does."""
    best: float
    """What removing the most needed source costs, nats, the mean over answers."""
    depending: float
    """Share of the answers that depend on a source."""

    def to_json(self) -> dict[str, Any]:
        """The shares as plain data."""
        told = {"found": self.found, "beyond": self.beyond}
        return {
            part: {name: one.to_json() for name, one in shares.items()}
            for part, shares in told.items()
        } | {"best": self.best, "depending": self.depending}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Shares:
        """The shares again."""
        found, beyond = (
            {name: Estimate.from_json(one) for name, one in stored[part].items()}
            for part in ("found", "beyond")
        )
        return cls(found, beyond, stored["best"], stored["depending"])

    @property
    def heads(self) -> list[str]:
        """Heads chosen or weighed on dev questions, the better ones first."""
        some = [name for name in (CHOSEN, LEARNT) if name in self.found]
        return sorted(some, key=lambda name: -self.found[name].value)


class Told(NamedTuple):
    """A word, the explanation that it names, and why where that is not what shares say."""

    word: Word
    method: str = ""
    reason: str = ""


@dataclass(frozen=True)
class AnswerVerdict:
    """May what it attended to be shown as the reason for its answers?"""

    word: Word
    sentence: str
    advice: str = ""
    method: str = ""
    """The explanation that it names; none where it names none."""
    provisional: bool = True
    """Whether the word is not calibrated."""

    @property
    def gate(self) -> str:
        """What `--require` takes the word for."""
        return GATES[self.word]

    def to_json(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {
            "word": self.word,
            "sentence": self.sentence,
            "advice": self.advice,
            "method": self.method,
            "provisional": self.provisional,
        }


def shares_of(finding: Finding) -> Shares:
    """What the word is made of, out of what was measured."""
    found = finding.by_method(FOUND)
    best, depending = finding.get("drop at 1", ORACLE), finding.get(DEPENDING, ORACLE)
    return Shares(
        found,
        finding.by_method(BEYOND),
        math.nan if best is None else best.value,
        math.nan if depending is None else depending.value,
    )


def word_of(shares: Shares, at: AnswerBorders) -> Told:
    """The word: attention of all heads first, then heads chosen or weighed on dev questions.

    These must also be better than attention, on the same answers.
    """
    told = shares.found.get(ATTENTION)
    if told is None or told.n < FEWEST:
        return Told("cannot tell", reason=f"There are fewer than {FEWEST} answers.")
    if math.isnan(told.value):
        return Told("cannot tell", reason="No source is more needed for an answer than others.")
    if shares.best < at.least:
        return Told(
            "cannot tell",
            reason=f"Removing the most needed source costs {shares.best:.2g} nats on average: "
            "hardly an answer depends on a source.",
        )
    if shares.depending < at.depending:
        hardly = f"Hardly a source is needed for {per_cent(1 - shares.depending)} of the answers"
        if shares.depending <= 1 - at.depending:
            return Told("cannot tell", reason=f"{hardly}.")
        return Told("no", reason=f"{hardly}, whatever is shown with them.")
    if stands(told, at):
        return Told("attention as it is", ATTENTION)
    for name in shares.heads:
        beyond = shares.beyond.get(name)
        if stands(shares.found[name], at) and beyond is not None and beyond.side(0) == "above":
            return Told("these heads, so weighted", name)
    # Heads that stand and are not surely better than attention, or a share that is not sure.
    if any(shares.found[name].value >= at.share for name in (ATTENTION, *shares.heads)):
        return Told("cannot tell")
    return Told("no")


def stands(share: Estimate, at: AnswerBorders) -> bool:
    """Whether an explanation finds enough of the best drop, and surely so."""
    return share.value >= at.share and share.low > at.sure


def answer_borders(calibrated: Mapping[str, Any] | None = None) -> AnswerBorders:
    """The borders of a calibration; the package's own, unless another one is given."""
    found = calibrated or (calibration() or {}).get("answers")
    return AnswerBorders(**found["borders"]) if found else FIRST_BORDERS


def judge(
    finding: Finding, command: str = "", calibrated: Mapping[str, Any] | None = None
) -> AnswerVerdict:
    """The verdict, by the package's calibration unless another one is given.

    `command` gets the explanation that is named.
    """
    if calibrated is None:
        calibrated = (calibration() or {}).get("answers")
    at = answer_borders(calibrated)
    shares = shares_of(finding)
    told = word_of(shares, at)
    word = told.word
    said = told.reason or _of_shares(shares)
    is_calibrated, how = _calibrated(calibrated)
    sentence = f"{SENTENCES[word]} {said} {how}"
    return AnswerVerdict(
        word, sentence, _advice(told, shares, at, command), told.method, not is_calibrated
    )


def _of_shares(shares: Shares) -> str:
    own = "Of what removing the most needed source costs, the first source of {} finds {}."
    said = own.format("attention", percent(shares.found[ATTENTION]))
    for name in shares.heads[:1]:
        said += f" {name.capitalize()} find {percent(shares.found[name])}."
    return said


def _calibrated(stored: Mapping[str, Any] | None) -> tuple[bool, str]:
    """Whether the word may be called calibrated, and the sentence about it."""
    if not stored or "held_out" not in stored:
        return False, "This word is not calibrated."
    right = Estimate.from_json(stored["held_out"]["right"])
    tried = (
        f"right for {per_cent(right.value)} [{100 * right.low:.0f}, {100 * right.high:.0f}] of "
        f"{right.n} decoders that no border was fitted to."
    )
    if right.value >= DESERVED:
        kind = "calibrated on decoders built by hand, not on trained models"
        return True, f"This word is {kind}: {tried}"
    return False, f"This word is not calibrated: tried on decoders built by hand, it was {tried}"


def _advice(told: Told, shares: Shares, at: AnswerBorders, command: str) -> str:
    if told.word == "these heads, so weighted":
        get = f" This gets them for other questions: `{command}`" if command else ""
        return f"Show {told.method}.{get}"
    if told.word == "cannot tell":
        few = ATTENTION not in shares.found or shares.found[ATTENTION].n < FEWEST
        return "Ask more questions." if few or not told.reason else ""
    if told.word != "no":
        return ""
    advice = "Show what removing each source costs, which is exact and one shared pass per source."
    named = [name for name in shares.found if name not in (ORACLE, RANDOM)]
    if not told.reason and (others := [o for o in named if stands(shares.found[o], at)]):
        best = max(others, key=lambda name: shares.found[name].value)
        return f"{best} names needed sources ({percent(shares.found[best])}). {advice}"
    return advice
