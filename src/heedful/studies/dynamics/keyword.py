"""Where a classifier under uniform attention keeps what it knows: the keyword task.

See docs/studies/dynamics.md, "Keyword".

Many seeds in one stack. γ_l = w·h_l + b is what state l says by itself; early in training the
keyword's own state says most, in the end the last state does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from heedful.corpora.tasks import Keyword, Keywords
from heedful.corpora.vocabulary import SPECIALS, Vocabulary
from heedful.errors import InputError
from heedful.models.classifier import AttentionClassifier
from heedful.models.recipe import parse
from heedful.models.recurrent import lstm
from heedful.models.saved import build
from heedful.models.translator_stack import looked_up
from heedful.training.optimisers import descend
from heedful.training.precision import reduced_precision

PLACES = ("keyword", "next", "mean", "last")
"""Where γ is taken: at the keyword, at the state after it, over all states, at the last one."""


@dataclass(frozen=True)
class KeywordConfig:
    """How keyword classifiers are trained and watched."""

    task: Keyword = field(default_factory=Keyword)
    width: int = 256
    """Of the vectors and of the one-directional LSTM."""
    steps: int = 60
    batch_size: int = 128
    learning_rate: float = 1e-3
    every: int = 2
    samples: int = 400
    """Sequences of an evaluation, half of them positive."""

    def __post_init__(self) -> None:
        if min(self.width, self.steps, self.batch_size, self.every) < 1 or self.samples < 2:
            raise InputError(f"sizes and intervals must be at least 1, got {self}.")


@dataclass(frozen=True, eq=False)
class KeywordCurves:
    """What training showed at every evaluation."""

    steps: Int[np.ndarray, " evaluation"]
    gamma: Float[np.ndarray, "seed evaluation place"]
    """Mean log-odds over positive sequences at each of `PLACES`."""
    accuracy: Float[np.ndarray, "seed evaluation"]


def keyword_classifier(config: KeywordConfig, seed: int) -> AttentionClassifier:
    """A classifier with uniform attention over a one-directional LSTM, for the task's symbols."""
    symbols = tuple(f"symbol {number}" for number in range(config.task.symbols))
    recipe = parse(
        "lstm+uniform", embedding_dim=config.width, width=config.width, one_logit=True,
        dropout=0.0, head_dropout=0.0,
    )  # fmt: skip
    return build(recipe.model, Vocabulary((*SPECIALS, *symbols)), ("absent", "present"), seed)


def fit_keyword(
    models: Sequence[AttentionClassifier],
    config: KeywordConfig = KeywordConfig(),
    *,
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
) -> KeywordCurves:
    """Trains classifiers in place, each on the data of its seed, and gives their curves."""
    if len(models) != len(seeds) or not models:
        raise InputError(f"one data seed for each model, got {len(models)} and {len(seeds)}.")
    states = [model.state_dict() for model in models]
    weights = {
        name: nn.Parameter(torch.stack([state[name] for state in states]).to(device))
        for name in states[0]
    }
    optimiser = torch.optim.Adam(list(weights.values()), config.learning_rate)
    steps, seen = [], []
    task = config.task
    with reduced_precision(torch.device(device)):
        for step in range(config.steps + 1):
            if step % config.every == 0:
                keys = task.keys(seeds, step, "evaluate", device)
                steps.append(step)
                seen.append(_evaluated(weights, task.sample(keys, config.samples)))
            if step < config.steps:
                drawn = task.sample(task.keys(seeds, step, "train", device), config.batch_size)
                odds = _gamma(weights, drawn.ids).mean(-1)
                labels = drawn.labels.to(odds)
                lost = functional.binary_cross_entropy_with_logits(odds, labels, reduction="none")
                descend(optimiser, lost.mean(1))
    for row, model in enumerate(models):
        model.load_state_dict({n: w.detach()[row].cpu() for n, w in weights.items()})
    gamma, accuracy = (torch.stack(part, 1).cpu().numpy() for part in zip(*seen, strict=True))
    return KeywordCurves(np.array(steps), gamma, accuracy)


def _gamma(
    weights: dict[str, nn.Parameter], ids: Int[Tensor, "seed batch unit"]
) -> Float[Tensor, "seed batch unit"]:
    """w·h_l + b of every state; the inputs' share of the gates is computed once per symbol."""
    cells = {
        kind: weights[f"level.encoder.cells.{kind}_l0"]
        for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    }
    bias = (cells["bias_ih"] + cells["bias_hh"])[:, None]
    table = weights["embedding.weight"] @ cells["weight_ih"].transpose(1, 2) + bias
    states, _ = lstm(looked_up(table, ids + len(SPECIALS)), cells["weight_hh"].transpose(1, 2))
    said = states.flatten(1, 2) @ weights["head.weight"].transpose(1, 2)
    return said.view(ids.shape) + weights["head.bias"][:, None]


def _evaluated(
    weights: dict[str, nn.Parameter], drawn: Keywords
) -> tuple[Float[Tensor, "seed place"], Float[Tensor, " seed"]]:
    with torch.no_grad():
        gamma = _gamma(weights, drawn.ids).double()
    is_right = (gamma.mean(-1) > 0) == (drawn.labels == 1)
    units = gamma.shape[-1]
    positive = drawn.place >= 0
    here = drawn.place.clamp_min(0)[..., None]
    has_next = positive & (drawn.place + 1 < units)  # the last position has no neighbour
    found = (
        (gamma.gather(-1, here)[..., 0], positive),
        (gamma.gather(-1, (here + 1).clamp_max(units - 1))[..., 0], has_next),
        (gamma.mean(-1), positive),
        (gamma[..., -1], positive),
    )
    means = [(value * chosen).sum(1) / chosen.sum(1) for value, chosen in found]
    return torch.stack(means, 1), is_right.double().mean(1)
