"""The word about answers, tried on decoders whose right word is known.

A third of the families is for fitting the borders, the rest is held out; which is which is keyed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float64
from scipy.special import log_softmax

from heedful.audits.answer_measures import ATTENTION, FIRST, ON_SOURCES, ORACLE
from heedful.audits.answer_verdict import (
    FIRST_BORDERS,
    AnswerBorders,
    Shares,
    Word,
    answer_borders,
    shares_of,
    word_of,
)
from heedful.audits.answers import Removals, first_of, measures_of, summarise
from heedful.calibration.decoder_questions import KnownQuestion, known_questions, said_by
from heedful.calibration.decoder_truth import RightWord, truth_of_decoder
from heedful.calibration.known_decoders import KnownDecoder, known_decoder, programs
from heedful.importance.sources import HeadWeights, Scores, heads_of, heads_on_dev
from heedful.models.huggingface.source_reading import read_sources
from heedful.runs import fingerprint, step
from heedful.runs.randomness import numpy_generator
from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import proportion

VERSION = 1
"""Raised when decoders or the right word change, so that kept steps are computed again."""
Part = Literal["fitted", "held_out"]
DEV = 16
"""Questions that heads are chosen on."""
TOO_KIND = 10.0
"""Wrong words that naming attention or heads counts for, where nothing should be named."""
GRID = {
    "share": np.arange(0.3, 0.96, 0.05).round(2).tolist(),
    "sure": [-1.0, 0.0, 0.25, 0.5, 0.6, 0.75],
    "least": [0.0, 0.003, 0.01, 0.03, 0.1, 0.3, round(math.log(2), 3)],
    "depending": [0.0, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9],
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
        return "fitted" if self.family in fitted_families() else "held_out"

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
    dev = [_Heard.of(decoder, one) for one in known_questions(decoder, DEV, "dev")]
    heads = heads_on_dev([one.heads for one in dev], [one.whole - one.without for one in dev])
    rows = [row for one in questions for row in _Heard.of(decoder, one).rows(heads)]
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


def decoder_once(name: str, folder: Path, seed: int, answers: int) -> dict[str, Any]:
    """One decoder, measured once: a finished step is read again."""
    inputs = {"name": name, "seed": seed, "answers": answers, "version": VERSION}
    title = f"decoder-{fingerprint({'name': name})}-{seed}-{answers}"
    found: dict[str, Any] = step(
        folder, title, partial(measure_decoder, name, seed, answers), inputs=inputs
    )
    return found


class _Heard(NamedTuple):
    """What the word needs of one answer: the first source of attention and of heads alone."""

    name: str
    whole: float
    without: Scores
    """log p of the answer with each source removed."""
    heads: Float64[np.ndarray, "source head"]
    first: float
    """What lies on the first token."""

    @classmethod
    def of(cls, decoder: KnownDecoder, one: KnownQuestion) -> _Heard:
        """One question, asked; prompts without a source are of one length and read together."""
        places = range(len(one.sources))
        without = [[one.sources[m] for m in places if m != n] for n in places]
        logits = [said_by(decoder, some, one.question) for some in ([one.sources], without)]
        said = log_softmax(np.concatenate(logits), axis=1)[:, one.answer]
        reading = read_sources(decoder.model, one.asked().prompt, is_followed=False)
        return cls(
            one.name, float(said[0]), said[1:], heads_of(reading), float(reading.first.mean())
        )

    def rows(self, heads: Sequence[HeadWeights]) -> list[dict[str, Any]]:
        """As an audit has them, without random removals."""
        attention = self.heads.mean(1)
        scores = {ATTENTION: attention, ORACLE: self.whole - self.without}
        scores |= {one.name: self.heads @ one.weights for one in heads}
        first = {
            name: {1: float(self.without[first_of(one, 1)][0])} for name, one in scores.items()
        }
        nothing = np.zeros((0, len(attention)), dtype=bool)
        removed = Removals(self.whole, self.without, nothing, np.zeros(0))
        about = {"instance": self.name, FIRST: self.first, ON_SOURCES: float(attention.sum())}
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
            "too_kind": self.too_kind,
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


@dataclass(frozen=True)
class CalibratedDecoders:
    """What a calibration says of the word about answers."""

    borders: AnswerBorders
    scores: Mapping[Part, DecoderScore]
    table: pd.DataFrame = field(compare=False)
    """A row per decoder: the right word and the rule's, with the shares behind both."""

    def to_json(self) -> dict[str, Any]:
        """As `calibration.json` has it."""
        return {"borders": self.borders._asdict()} | dict(self.scores)


def calibrated_decoders(
    measured: Sequence[MeasuredDecoder], refit: bool = False
) -> CalibratedDecoders:
    """How often the word is right, by the package's borders or those fitted to the fitted third."""
    parts: dict[Part, list[MeasuredDecoder]] = {"fitted": [], "held_out": []}
    for one in measured:
        parts[one.part].append(one)
    at = fit_answer_borders(parts["fitted"]) if refit else answer_borders()
    scores = {part: score_decoders(some, at) for part, some in parts.items() if some}
    return CalibratedDecoders(at, scores, _table(measured, at))


def _table(measured: Sequence[MeasuredDecoder], at: AnswerBorders) -> pd.DataFrame:
    found = []
    for one in measured:
        shares = {name: one.shares.found[name] for name in (ATTENTION, *one.shares.heads)}
        found.append(
            {
                "decoder": one.name,
                "family": one.family,
                "part": one.part,
                "right word": one.right + (" (near)" if one.is_near else ""),
                "word": one.said(at),
                **{f"{name}, right": value for name, value in one.truth.items()},
                **{name: share.value for name, share in shares.items()},
                **{f"{name}, low": share.low for name, share in shares.items()},
                "best drop": one.shares.best,
            }
        )
    return pd.DataFrame(found)
