"""The verdict's two borders, fitted to mechanisms whose right word is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heedful.audits.verdict import Word, word_of
from heedful.runs.randomness import numpy_generator
from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import proportion

GRID = np.linspace(0, 1, 201)
FALSE_YES = 10.0
"""What calling `yes` costs where the right word is no, in wrong words."""
RESAMPLED = 1000


@dataclass(frozen=True)
class Measured:
    """A mechanism with its right word and what the rule measures."""

    name: str
    kind: str
    part: str
    dial: str
    """The dial that it is a step of; all steps weigh as one."""
    word: Word
    """The right one."""
    is_near: bool
    """Whether the right word itself is a matter of a few texts."""
    is_deceiver: bool
    truth: Mapping[str, float]
    """The shares of texts behind the right word: `both`, `pointing`, `mediation`."""
    share: Estimate
    """The share of texts in which all three hold, as the rule measures it; nan: cannot tell."""
    is_overturned: bool
    """Whether a word that no text has overturns decisions unseen."""
    tests: Mapping[str, Estimate]
    accuracy: float
    reader: float | None
    """How often a reader of attention foresees decisions on mixed texts."""
    passes: float | None
    """Forward passes per text."""

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Measured:
        """The mechanism again from its step's file."""
        fields = {name: stored[name] for name in cls.__dataclass_fields__}
        fields["share"] = Estimate.from_json(stored["share"])
        fields["tests"] = {name: Estimate.from_json(e) for name, e in stored["tests"].items()}
        return cls(**fields)

    def said(self, borders: Mapping[str, float]) -> Word:
        """The word that the rule gives it."""
        word = word_of(self.share, borders)
        return "cannot tell" if word == "yes" and self.is_overturned else word


def observations(mechanisms: Sequence[Measured]) -> dict[str, list[Measured]]:
    """The mechanisms by what is one observation: itself, or all steps of its dial."""
    found: dict[str, list[Measured]] = {}
    for one in mechanisms:
        found.setdefault(one.dial or one.name, []).append(one)
    return found


def fit(mechanisms: Sequence[Measured]) -> dict[str, dict[str, float]]:
    """Both borders, each the median over resampled mechanisms, with the middle 95 % of these.

    In every resample a border goes to the middle of the longest stretch with the fewest wrong
    words. Mechanisms whose right word is a matter of a few texts, and those that the rule cannot
    tell, have no say. The borders in the package lie inside these intervals, near those of the
    right answer itself, 1/4 and 3/4: see docs/calibration.md.
    """
    kept = [
        one
        for one in mechanisms
        if not one.is_near and one.word != "cannot tell" and not np.isnan(one.share.value)
    ]
    groups = list(observations(kept).values())
    losses = {border: np.stack([_loss(group, border) for group in groups]) for border in SIDES}
    rng = numpy_generator(0, "borders")
    drawn = rng.multinomial(len(groups), np.full(len(groups), 1 / len(groups)), RESAMPLED)
    found = {}
    for border, of_groups in losses.items():
        places = np.array([_middle(loss) for loss in drawn @ of_groups])
        low, middle, high = np.quantile(places, [0.025, 0.5, 0.975]).round(2).tolist()
        found[border] = {"value": middle, "low": low, "high": high}
    return found


SIDES = ("no", "yes")


def _loss(group: Sequence[Measured], border: str) -> np.ndarray:
    """Wrong words with the border at each place of the grid, the mean over a group."""
    total = np.zeros(len(GRID))
    for one in group:
        is_above = one.share.value >= GRID if border == "yes" else one.share.value > GRID
        should = one.word == "yes" if border == "yes" else one.word != "no"
        cost = FALSE_YES if border == "yes" and one.word == "no" else 1.0
        total += np.where(is_above != should, cost, 0.0)
    return total / len(group)


def _middle(loss: np.ndarray) -> float:
    """The middle of the longest stretch of least loss on the grid."""
    best = np.flatnonzero(loss <= loss.min() + 1e-9)
    stretches = np.split(best, np.flatnonzero(np.diff(best) > 1) + 1)
    longest = max(stretches, key=len)
    return float(GRID[longest].mean())


@dataclass(frozen=True)
class Score:
    """How often the rule is right on mechanisms, the steps of a dial as one."""

    right: Estimate
    """Share of right words, over observations."""
    deceivers_called_yes: tuple[str, ...]
    wrong: tuple[tuple[str, Word, Word], ...]
    """Name, right word and word given."""

    def to_json(self) -> dict[str, Any]:
        """The score under the names that `calibration.json` has."""
        found = {"right": self.right, "no called yes": self.deceivers_called_yes}
        return found | {"wrong": self.wrong}


def score(mechanisms: Sequence[Measured], borders: Mapping[str, float]) -> Score:
    """The rule's words against the right ones; `cannot tell` is right where that is the answer."""
    groups = observations(mechanisms)
    hits = [np.mean([o.said(borders) == o.word for o in group]) for group in groups.values()]
    total = float(np.sum(hits))
    counted = proportion(round(total), len(hits))
    right = Estimate(total / len(hits), counted.low, counted.high, len(hits), "wilson")
    wrong = [(o.name, o.word, o.said(borders)) for o in mechanisms if o.said(borders) != o.word]
    deceived = [n for n, word, said in wrong if word in ("no", "cannot tell") and said == "yes"]
    return Score(right, tuple(deceived), tuple(wrong))
