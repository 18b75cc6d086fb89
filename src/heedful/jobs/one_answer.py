"""All that is computed of one answer: explanations, and what removing sources does to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float64

from heedful.audits.answer_measures import ATTENTION, FIRST, ON_SOURCES, ORACLE
from heedful.audits.answers import (
    KS,
    Removals,
    first_of,
    measures_of,
    random_removals,
)
from heedful.corpora.questions import Question
from heedful.importance.sources import METHODS, Explained, HeadWeights, Scores, heads_of
from heedful.models.huggingface.answers import answer_log_probabilities
from heedful.models.huggingface.question_prompts import AnswerPrompt, QuestionTokeniser
from heedful.models.huggingface.source_reading import (
    gradient_by_input,
    read_both,
    read_sources,
)
from heedful.runs.randomness import numpy_generator

DIGITS = 5


@dataclass(frozen=True)
class AskedQuestion:
    """A question as the model gets it, with its answer."""

    question: Question
    prompt: AnswerPrompt
    is_given: bool
    """Whether the answer came with the question; else the model made it."""


def heads_and_effects(model: Any, asked: AskedQuestion) -> dict[str, Any]:
    """Of a dev question: what every head gives to each source, and what removing it costs.

    Nothing where the answer has a probability of 0, as it is or with a source removed.
    """
    said = without_each(model, asked.prompt).sum(1)
    if not np.isfinite(said).all():
        return {"heads": [], "effects": []}
    reading = read_sources(model, asked.prompt, is_followed=False)
    return {"heads": heads_of(reading).tolist(), "effects": (said[0] - said[1:]).tolist()}


def likelihoods(
    model: Any, prompt: AnswerPrompt, kept: Bool[np.ndarray, "edit source"]
) -> Float64[np.ndarray, "edit piece"]:
    """log p of each piece of the answer when these sources alone are in the prompt."""
    always = np.ones((len(kept), 1), dtype=bool)
    parts = torch.from_numpy(np.concatenate([always, kept, always], 1))
    said = answer_log_probabilities(model, prompt.parts, prompt.answer, parts)
    return np.asarray(said.double().cpu())


def without_each(model: Any, prompt: AnswerPrompt) -> Float64[np.ndarray, "edit piece"]:
    """log p of each piece with all sources, and then with each of them removed."""
    return likelihoods(model, prompt, single_removals(len(prompt.sources)))


def single_removals(sources: int) -> Bool[np.ndarray, "edit source"]:
    """Nothing removed, and then each source."""
    return np.concatenate([np.ones((1, sources), dtype=bool), ~np.eye(sources, dtype=bool)])


def explanations(
    model: Any, asked: AskedQuestion, free: AnswerPrompt, heads: Sequence[HeadWeights], seed: int
) -> tuple[dict[str, Scores], dict[str, Any]]:
    """Every explanation without removals, and attention to show: by piece of the answer."""
    reading, empty = read_both(model, asked.prompt, free)
    gradient = np.asarray(gradient_by_input(model, asked.prompt))
    told = Explained(asked.question.name, reading, empty, gradient)
    scores = {name: np.asarray(make(told, seed)) for name, make in METHODS.items()}
    scores |= {one.name: one.scores(reading) for one in heads}
    by_piece = reading.attention.flatten(0, 1)
    tokens = {ATTENTION: by_piece.mean(0)}
    for one in heads:
        weights = torch.from_numpy(one.weights)
        tokens[one.name] = torch.einsum("h,has->as", weights, by_piece)
    shown = {
        "tokens": {name: _rounded(rows.tolist()) for name, rows in tokens.items()},
        FIRST: float(reading.first.mean()),
        ON_SOURCES: float(reading.attention.sum(-1).mean()),
    }
    return scores, shown


def examined(
    model: Any,
    tokeniser: QuestionTokeniser,
    asked: AskedQuestion,
    heads: Sequence[HeadWeights],
    removals: int,
    seed: int,
) -> dict[str, Any]:
    """The record of one answer as plain data: `rows` for the audit, the rest for the page.

    No rows where the answer has a probability of 0, as it is or with a source removed.
    """
    prompt, question = asked.prompt, asked.question
    said = without_each(model, prompt)
    if not np.isfinite(said).all():
        return {"rows": [], "shown": {}}
    scores, shown = explanations(model, asked, tokeniser.free(prompt), heads, seed)
    sources = len(prompt.sources)
    drawn = numpy_generator(seed, "removed sources", question.name)
    random = random_removals(removals, sources, drawn)
    scores[ORACLE] = said[0].sum() - said[1:].sum(1)
    named = {
        (name, k): ~first_of(one, k) for name, one in scores.items() for k in KS if k < sources
    }
    others = np.concatenate([random, *(row[None] for row in named.values())])
    rows, place = np.unique(others, axis=0, return_inverse=True)
    total = likelihoods(model, prompt, rows).sum(1)[place.ravel()]
    without_first: dict[str, dict[int, float]] = {name: {} for name in scores}
    for (name, k), value in zip(named, total[removals:], strict=True):
        without_first[name][k] = float(value)
    removed = Removals(
        float(said[0].sum()), said[1:].sum(1), random, total[:removals], _evidence(question)
    )
    about = {"instance": question.name, FIRST: shown.pop(FIRST), ON_SOURCES: shown.pop(ON_SOURCES)}
    return {
        "rows": [about | row for row in measures_of(scores, removed, without_first)],
        "shown": {
            "name": question.name,
            "question": question.text,
            "is_given": asked.is_given,
            "pieces": tokeniser.shown(prompt.answer),
            "said": _rounded(said[0].tolist()),
            "without": _rounded(said[1:].tolist()),
            "sources": [
                {"title": one.title, "text": one.text, "evidence": one.is_evidence}
                for one in question.sources
            ],
            "scores": {name: _rounded(one.tolist()) for name, one in scores.items()},
            **shown,
        },
    }


def _evidence(question: Question) -> Bool[np.ndarray, " source"] | None:
    """Which sources are known to hold the answer; none where nothing is known of any."""
    known = [one.is_evidence for one in question.sources]
    if all(one is None for one in known):
        return None
    return np.array([bool(one) for one in known])


def _rounded(numbers: Any) -> Any:
    """Numbers as short as a page needs them."""
    if isinstance(numbers, list):
        return [_rounded(one) for one in numbers]
    return float(f"{numbers:.{DIGITS}g}")
