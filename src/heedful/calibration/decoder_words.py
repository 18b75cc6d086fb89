"""The word about answers, tried on decoders whose right word is known.

A third of the families is for fitting the borders, the rest is held out; which is which is keyed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
import pandas as pd

from heedful.audits.answer_measures import ATTENTION, FIRST, ON_SOURCES, ORACLE
from heedful.audits.answer_verdict import (
    FIRST_BORDERS,
    AnswerBorders,
    Shares,
    Word,
    shares_of,
    word_of,
)
from heedful.audits.answers import Removals, first_of, measures_of, summarise
from heedful.calibration.decoder_questions import known_questions
from heedful.calibration.decoder_truth import RightWord, truth_of_decoder
from heedful.calibration.known_decoders import known_decoder, programs
from heedful.importance.sources import HeadWeights, heads_of, heads_on_dev
from heedful.jobs.one_answer import AskedQuestion, heads_and_effects, without_each
from heedful.models.huggingface.source_reading import read_sources
from heedful.runs.randomness import numpy_generator
from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import proportion

Part = Literal["fitted", "held out"]
DEV = 16
"""Questions that heads are chosen on."""
TOO_KIND = 10.0
"""Wrong words that naming attention or heads counts for, where nothing should be named."""
GRID = {
    "share": np.arange(0.3, 0.96, 0.05).round(2).tolist(),
    "sure": [-1.0, 0.0, 0.25, 0.5, 0.6, 0.75],
    "least": [0.0, 0.003, 0.01, 0.03, 0.1, 0.3, round(math.log(2), 3)],
}
"""Where borders are tried."""


@dataclass(frozen=True)
class MeasuredDecoder:
    """A decoder with its right word and what an audit of its answers measures."""

    name: str
    family: str
    right: RightWord
    is_near: bool
    """Whether the right word is a matter of a few questions."""
    truth: Mapping[str, float]
    shares: Shares

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> MeasuredDecoder:
        """The decoder again from its step's file."""
        return cls(**{**stored, "shares": Shares.from_json(stored["shares"])})

    @property
    def part(self) -> Part:
        """Whether borders are fitted to its family."""
        return "fitted" if self.family in fitted_families() else "held out"

    def said(self, borders: AnswerBorders) -> Word:
        """The word that the rule gives it."""
        return word_of(self.shares, borders).word


def fitted_families() -> set[str]:
    """The keyed third of all families."""
    families = sorted({one.family for one in programs().values()})
    drawn = numpy_generator(0, "decoder families").permutation(families).tolist()
    return set(drawn[: round(len(families) / 3)])


def measure_decoder(name: str, seed: int = 0, audited: int = 40) -> dict[str, Any]:
    """A decoder's right word, and what an audit of so many answers measures, as plain data."""
    program = programs()[name]
    decoder = known_decoder(program, seed)
    questions = known_questions(decoder, audited, "audited")
    truth = truth_of_decoder(decoder, questions)
    dev = [
        heads_and_effects(decoder.model, one.asked())
        for one in known_questions(decoder, DEV, "dev")
    ]
    heads = heads_on_dev(
        [np.array(one["heads"]) for one in dev], [np.array(one["effects"]) for one in dev]
    )
    rows = [row for one in questions for row in _rows(decoder.model, one.asked(), heads)]
    return {
        "name": name,
        "family": program.family,
        "right": truth.word,
        "is_near": truth.is_near,
        "truth": {
            "matters": truth.matters.value,
            "points": truth.points.value,
            "heads": truth.heads.value,
            "unstable": truth.unstable.value,
        },
        "shares": shares_of(summarise(pd.DataFrame(rows))).to_json(),
    }


def _rows(model: Any, asked: AskedQuestion, heads: Sequence[HeadWeights]) -> list[dict[str, Any]]:
    """What the word needs of an audit's rows: the first source of attention and of heads alone."""
    said = without_each(model, asked.prompt).sum(1)
    reading = read_sources(model, asked.prompt, is_followed=False)
    scores = {ATTENTION: heads_of(reading).mean(1), ORACLE: said[0] - said[1:]}
    scores |= {one.name: one.scores(reading) for one in heads}
    nothing = np.zeros((0, len(said) - 1), dtype=bool)
    removed = Removals(float(said[0]), said[1:], nothing, np.zeros(0))
    first = {name: {1: float(said[1:][first_of(one, 1)][0])} for name, one in scores.items()}
    about = {
        "instance": asked.question.name,
        FIRST: float(reading.first.mean()),
        ON_SOURCES: float(reading.attention.sum(-1).mean()),
    }
    return [about | row for row in measures_of(scores, removed, first)]


def fit_answer_borders(measured: Sequence[MeasuredDecoder]) -> AnswerBorders:
    """The borders with the fewest wrong words; of equal ones those nearest to the first ones.

    Families weigh the same. Decoders whose right word is a matter of a few questions have no say.
    """
    families: dict[str, list[MeasuredDecoder]] = {}
    for one in measured:
        if not one.is_near:
            families.setdefault(one.family, []).append(one)

    def loss(borders: AnswerBorders) -> tuple[float, float]:
        wrong = [np.mean([_cost(one, borders) for one in some]) for some in families.values()]
        apart = sum(abs(a - b) for a, b in zip(borders, FIRST_BORDERS, strict=True))
        return round(float(np.mean(wrong)), 9), apart

    tried = [AnswerBorders(*one) for one in product(*GRID.values())]
    return min((one for one in tried if one.sure <= one.share), key=loss)


def _cost(one: MeasuredDecoder, borders: AnswerBorders) -> float:
    said = one.said(borders)
    return (said != one.right) * (TOO_KIND if _is_too_kind(said, one.right) else 1.0)


def _is_too_kind(said: Word, right: RightWord) -> bool:
    """Whether something is named although nothing should be."""
    nothing = ("no", "cannot tell")
    return right in nothing and said not in nothing


@dataclass(frozen=True)
class DecoderScore:
    """How often the word is right on decoders."""

    right: Estimate
    """Over decoders."""
    families: Estimate
    """Over families, each the mean of its decoders."""
    too_kind: tuple[str, ...]
    """Decoders of which attention or heads are named although nothing should be."""
    wrong: tuple[tuple[str, RightWord, Word, bool], ...]
    """Name, right word, word given, and whether the right word is a matter of a few questions."""

    def to_json(self) -> dict[str, Any]:
        """The score as plain data."""
        return {
            "right": self.right,
            "families": self.families,
            "too kind": self.too_kind,
            "wrong": self.wrong,
        }


def score_decoders(measured: Sequence[MeasuredDecoder], borders: AnswerBorders) -> DecoderScore:
    """The rule's words against the right ones."""
    said = [(one, one.said(borders)) for one in measured]
    wrong = [(o.name, o.right, word, o.is_near) for o, word in said if word != o.right]
    families: dict[str, list[bool]] = {}
    for one, word in said:
        families.setdefault(one.family, []).append(word == one.right)
    total = float(sum(np.mean(hits) for hits in families.values()))
    counted = proportion(round(total), len(families))
    mean = Estimate(total / len(families), counted.low, counted.high, len(families), "wilson")
    named = [one.name for one, word in said if _is_too_kind(word, one.right)]
    return DecoderScore(
        proportion(len(said) - len(wrong), len(said)), mean, tuple(named), tuple(wrong)
    )
