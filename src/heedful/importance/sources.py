"""Which sources an answer came from, as explanations claim: each a number per source.

All but the last two are made of what the model did with one question. Heads are chosen, or weighed,
on dev questions, whose leave-one-out effects are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from heedful.runs.randomness import numpy_generator
from heedful.statistics.weighted import rank_correlation

if TYPE_CHECKING:
    from heedful.models.huggingface.source_reading import SourceReading

Scores = Float64[np.ndarray, " source"]
LEAVE_ONE_OUT, RANDOM = "leave one out", "random"
CHOSEN, LEARNT = "chosen heads", "learnt heads"
SHARE = 0.05
"""Of the heads, so many are chosen."""
PENALTIES = tuple(10.0**power for power in range(-3, 5))
FEWEST_DEV = 4
"""Questions to choose heads on; with fewer none are."""


@dataclass(frozen=True)
class Explained:
    """What is known of one question's answer, without removing anything."""

    name: str
    reading: SourceReading
    free: SourceReading
    """Of the same sources and answer behind a question without content."""
    gradient: Scores


def heads_of(reading: SourceReading) -> Float64[np.ndarray, "source layer*head"]:
    """What every head gives to each source, mean over the positions that tell the answer."""
    mean = reading.attention.mean(2).flatten(0, 1)
    return np.asarray(mean.T, dtype=np.float64)


def _shares(reading: SourceReading) -> Scores:
    """Each head's attention to sources made to sum to one, then the mean over heads."""
    heads = heads_of(reading)
    total = heads.sum(0)
    return np.asarray((heads[:, total > 0] / total[total > 0]).mean(1))


METHODS: Mapping[str, Callable[[Explained, int], Scores]] = {
    RANDOM: lambda one, seed: numpy_generator(seed, "random sources", one.name).random(
        one.reading.attention.shape[-1]
    ),
    "attention, last position": lambda one, _: np.asarray(
        one.reading.attention[:, :, 0].mean((0, 1))
    ),
    "attention": lambda one, _: heads_of(one.reading).mean(1),
    "attention, last layer": lambda one, _: np.asarray(one.reading.attention[-1].mean((0, 1))),
    "attention, sink removed": lambda one, _: _shares(one.reading),
    "attention minus free": lambda one, _: (heads_of(one.reading) - heads_of(one.free)).mean(1),
    "value-weighted": lambda one, _: np.asarray(one.reading.values.mean((0, 1, 2))),
    "rollout": lambda one, _: np.asarray(one.reading.rollout),
    "trace": lambda one, _: np.asarray(one.reading.trace),
    "gradient x input": lambda one, _: one.gradient,
}
"""Without dev questions; `attention` is the mean over layers, heads and the answer's positions."""


@dataclass(frozen=True)
class HeadWeights:
    """How much each head counts."""

    name: str
    weights: Float64[np.ndarray, " layers_heads"]
    penalty: float | None = None

    def scores(self, reading: SourceReading) -> Scores:
        """The explanation of one answer."""
        return np.asarray(heads_of(reading) @ self.weights)


def heads_on_dev(
    attention: Sequence[Float64[np.ndarray, "source head"]],
    effects: Sequence[Scores],
) -> list[HeadWeights]:
    """Heads whose attention goes with what removing a source does, and ridge weights for all.

    Chosen heads are those with the largest mean rank correlation over dev questions, each counting
    the same. Learnt weights predict effects (in every question minus their mean and over their
    spread) by a ridge whose penalty is the best when each question is left out in turn.
    """
    usable = [n for n, one in enumerate(effects) if len(one) > 2 and np.ptp(one) > 0]
    if len(usable) < FEWEST_DEV:
        return []
    pairs = [(attention[n], effects[n]) for n in usable]
    agreement = np.zeros(pairs[0][0].shape[1])
    for heads, effect in pairs:
        one = np.ones((1, len(effect)))
        agreement += np.nan_to_num(
            [float(rank_correlation(column, effect)(one)[0]) for column in heads.T]
        )
    count = max(1, round(SHARE * len(agreement)))
    chosen = np.zeros(len(agreement))
    chosen[np.argsort(-agreement, kind="stable")[:count]] = 1 / count
    inputs = [heads - heads.mean(0) for heads, _ in pairs]
    goals = [(effect - effect.mean()) / effect.std() for _, effect in pairs]
    scale = np.sqrt(np.mean(np.concatenate(inputs) ** 2, axis=0))
    scale[scale == 0] = 1.0
    inputs = [one / scale for one in inputs]
    penalty = min(PENALTIES, key=lambda one: _left_out(inputs, goals, one))
    weights = _ridge(np.concatenate(inputs), np.concatenate(goals), penalty)
    return [HeadWeights(CHOSEN, chosen), HeadWeights(LEARNT, weights / scale, penalty)]


def _ridge(
    inputs: Float64[np.ndarray, "row head"], goal: Float64[np.ndarray, " row"], penalty: float
) -> Float64[np.ndarray, " head"]:
    """argmin ‖y − Xw‖² + λ‖w‖², by whichever of XᵀX and XXᵀ is smaller."""
    rows, heads = inputs.shape
    if rows < heads:
        inner = inputs @ inputs.T + penalty * np.eye(rows)
        return np.asarray(inputs.T @ np.linalg.solve(inner, goal))
    return np.asarray(np.linalg.solve(inputs.T @ inputs + penalty * np.eye(heads), inputs.T @ goal))


def _left_out(
    inputs: Sequence[Float64[np.ndarray, "row head"]],
    goals: Sequence[Float64[np.ndarray, " row"]],
    penalty: float,
) -> float:
    """The squared error on each question of weights learnt on the others."""
    error = 0.0
    for place, (heads, goal) in enumerate(zip(inputs, goals, strict=True)):
        others = [n for n in range(len(inputs)) if n != place]
        rest = np.concatenate([inputs[n] for n in others])
        weights = _ridge(rest, np.concatenate([goals[n] for n in others]), penalty)
        error += float(((goal - heads @ weights) ** 2).sum())
    return error
