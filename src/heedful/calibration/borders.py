"""The verdict's borders, fitted to models with known answers, and how well they do on others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int

from heedful.audits.verdict import BORDERS, Word, borders, word_of
from heedful.calibration.known_models import TRANSFORMERS
from heedful.statistics.estimates import Estimate

WORDS: tuple[Word, ...] = ("yes", "partly", "no", "cannot tell")
GRID = np.linspace(0, 1, 101).round(2)
FIXED = {("deletion", "contradicts"): 0.0, ("deletion", "supports"): 0.0}
"""Borders that reason sets: deleting what is attended costs less, or more, than deleting any."""
FALSE_YES = 10.0
"""What calling a deceiving model `yes` costs, in wrong verdicts."""


@dataclass(frozen=True)
class Measured:
    """A constructed model after its audits."""

    name: str
    construction: str
    kind: str
    half: str
    """`fit` or `test`."""
    word: Word
    """The right one."""
    reliance: float
    apart: str
    """Why it is listed and not counted; empty for those that count."""
    classes: int
    accuracy: float
    evidence: float
    """Attention on the evidence."""
    estimates: Mapping[str, Estimate]
    """By the names of `measuring.MEASURES`."""

    @property
    def is_transformer(self) -> bool:
        """Whether it is one, by its recipe."""
        return self.name.partition("/")[2].startswith(TRANSFORMERS)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Measured:
        """The model again from its step's file."""
        fields = {name: stored[name] for name in cls.__dataclass_fields__ if name != "estimates"}
        estimates = {name: Estimate.from_json(e) for name, e in stored["estimates"].items()}
        return cls(**fields, estimates=estimates)


def verdict_of(model: Measured, fitted: Mapping[str, Any]) -> Word:
    """The word that the rule gives a model."""
    rule = borders({"borders": fitted})
    return word_of({border: border.outcome(model.estimates.get(border.key)) for border in rule})


def fit(models: Sequence[Measured]) -> dict[str, dict[str, float]]:
    """The borders with the fewest wrong words, each in the middle of where it may lie.

    First both borders of one test at a time are moved over a grid, always those of the test that
    gains most, until no test gains; then each border alone goes to the middle of the longest
    stretch of equally good places, far from the models on both of its sides. Models that are
    listed apart are left out.
    """
    kept = [model for model in models if not model.apart]
    known = _Kept(
        _ends(kept),
        np.array([WORDS.index(model.word) for model in kept]),
        np.array([model.kind == "deceiving" for model in kept]),
    )
    found = {b.key: {"contradicts": b.contradicts, "supports": b.supports} for b in BORDERS}
    least = known.loss(found)
    while True:
        losses = {}
        for key in found:
            if (key, "supports") not in FIXED:
                for low, high in combinations_with_replacement(GRID.tolist(), 2):
                    pair = {"contradicts": low, "supports": high}
                    losses[key, low, high] = known.loss({**found, key: pair})
        key, low, high = min(losses, key=lambda place: losses[place])
        if losses[key, low, high] >= least:
            break
        least = losses[key, low, high]
        found[key] = {"contradicts": low, "supports": high}
    for _ in range(20):
        before = {key: dict(pair) for key, pair in found.items()}
        for key, pair in found.items():
            for side in pair:
                if (key, side) not in FIXED:
                    tried = [{**found, key: {**pair, side: place}} for place in GRID.tolist()]
                    pair[side] = _middle(np.array([known.loss(borders) for borders in tried]))
        if found == before:
            break
    return found


def _ends(models: Sequence[Measured]) -> Float64[np.ndarray, "test end model"]:
    nothing = Estimate(np.nan, np.nan, np.nan, 0, "none")
    return np.array(
        [
            [
                [getattr(m.estimates.get(b.key, nothing), end) for m in models]
                for end in ("low", "high")
            ]
            for b in BORDERS
        ]
    )


class _Kept(NamedTuple):
    """The models that a fit goes by."""

    ends: Float64[np.ndarray, "test end model"]
    wanted: Int[np.ndarray, "model"]
    is_deceiving: Bool[np.ndarray, "model"]

    def loss(self, tried: Mapping[str, Mapping[str, float]]) -> float:
        """Wrong words, with a false yes for a deceiving model counted ten times."""
        if any(pair["supports"] < pair["contradicts"] for pair in tried.values()):
            return float("inf")
        contradicts = np.zeros(len(self.wanted), dtype=bool)
        supports, unknown = ~contradicts, contradicts
        for (low, high), border in zip(self.ends, BORDERS, strict=True):
            pair = tried[border.key]
            contradicts = contradicts | (high < pair["contradicts"])
            supports = supports & ((low > pair["supports"]) | border.is_veto)
            unknown = unknown | np.isnan(low)
        said = np.where(contradicts, 2, np.where(unknown, 3, np.where(supports, 0, 1)))
        false_yes = (said == 0) & self.is_deceiving
        return float((said != self.wanted).sum() + (FALSE_YES - 1) * false_yes.sum())


def _middle(losses: np.ndarray) -> float:
    """The middle of the longest stretch of least loss on the grid."""
    best = np.flatnonzero(losses == losses.min())
    stretches = np.split(best, np.flatnonzero(np.diff(best) > 1) + 1)
    longest = max(stretches, key=len)
    return float(GRID[longest[len(longest) // 2]])


@dataclass(frozen=True)
class Score:
    """How the rule does on models it was not fitted to."""

    right: int
    of: int
    false_yes: int
    """Deceiving models called `yes`."""
    rows: tuple[tuple[str | int, ...], ...]
    """Per construction and right word: how often each word was given."""
    wrong: tuple[tuple[str, str, str], ...]
    """Name, right word and given word of each model judged wrongly."""

    @property
    def share(self) -> float:
        """Share of right words."""
        return self.right / self.of if self.of else float("nan")


COLUMNS = ("construction", "right word", "models", "yes", "partly", "no", "cannot tell")


def score(models: Sequence[Measured], fitted: Mapping[str, Any]) -> Score:
    """The confusion table over models that count, then over those listed apart."""
    given = {model.name: verdict_of(model, fitted) for model in models}
    rows: list[tuple[str | int, ...]] = []
    groups = dict.fromkeys((m.apart, m.kind, m.construction, m.word) for m in models)
    order = {"reason": 0, "dial": 1, "irrelevant": 2, "deceiving": 3}
    for group in sorted(groups, key=lambda g: (g[0], order[g[1]], g[2], WORDS.index(g[3]))):
        apart, kind, construction, word = group
        found = [m for m in models if (m.apart, m.kind, m.construction, m.word) == group]
        counts = Counter(given[m.name] for m in found)
        title = f"{construction} ({kind})" + (f", {apart}" if apart else "")
        right = "either" if apart == "near a border" else word
        rows.append((title, right, len(found), *(counts[w] for w in WORDS)))
    clear = [m for m in models if not m.apart]
    wrong = [(m.name, m.word, given[m.name]) for m in clear if given[m.name] != m.word]
    deceived = sum(m.kind == "deceiving" and given[m.name] == "yes" for m in clear)
    return Score(len(clear) - len(wrong), len(clear), deceived, tuple(rows), tuple(wrong))
