"""A second model trained to decide like a first one while attending elsewhere (faithful.md §3.3).

Per document TVD(ŷ_a, ŷ_b) - λ D(α_a, α_b) is made small, on average over the batch and without any
label; b is the model imitated, a starts afresh with the same parts and penalties. D is the
Jensen-Shannon divergence, or KL(α_a ‖ α_b) as in the code of Wiegreffe & Pinter (2019).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.audits.examination import Portion, readings
from heedful.corpora.batches import Batch, batches, moved
from heedful.corpora.encoded import Encoded, EncodedCorpus
from heedful.errors import InputError, unknown
from heedful.models.classifier import AttentionClassifier, Pass
from heedful.models.recipe import Penalties
from heedful.models.saved import build
from heedful.models.verbs import evaluating
from heedful.runs.randomness import numpy_generator, seeded
from heedful.statistics.divergence import js_divergence, total_variation
from heedful.training import objectives
from heedful.training.config import TrainConfig
from heedful.training.evaluation import EVALUATION_TOKENS
from heedful.training.loop import optimiser_of

DIVERGENCES = ("jsd", "kl")


@dataclass(frozen=True, eq=False)
class Imitated:
    """What the first model decided and attended, by instance."""

    probability: Mapping[str, Float[np.ndarray, "class"]]
    attention: Mapping[str, Float[np.ndarray, "unit"]]

    def of(
        self, names: Sequence[str], units: int, device: torch.device | str
    ) -> tuple[Float[Tensor, "batch class"], Float[Tensor, "batch unit"]]:
        """Probabilities and attention rows of some documents, padded with 0 to so many units."""
        rows = np.zeros((len(names), units))
        for place, name in enumerate(names):
            row = self.attention[name]
            rows[place, : len(row)] = row
        outputs = np.stack([self.probability[name] for name in names])
        return moved(torch.from_numpy(outputs), device), moved(torch.from_numpy(rows), device)


class Imitation(NamedTuple):
    """The second model and how well it does on dev."""

    model: AttentionClassifier
    loss: float
    """TVD - λ D on dev, of the kept weights."""
    epochs: int
    """How many were trained."""


def remember(
    model: AttentionClassifier, splits: Sequence[Encoded], device: torch.device | str = "cpu"
) -> Imitated:
    """The decisions and attention of a model over some splits, read once."""
    probability: dict[str, np.ndarray] = {}
    attention: dict[str, np.ndarray] = {}
    for split in splits:
        for reading in readings(model, split, device, Portion(256, EVALUATION_TOKENS)):
            outputs = reading.logits.softmax(-1).cpu().numpy()
            rows, counts = reading.attention.cpu().numpy(), reading.units.tolist()
            for place, name in enumerate(reading.names):
                probability[name] = outputs[place]
                attention[name] = rows[place, : counts[place]]
    return Imitated(probability, attention)


def objective(
    passed: Pass,
    probability: Float[Tensor, "batch class"],
    attention: Float[Tensor, "batch unit"],
    strength: float,
    divergence: str = "jsd",
) -> Float[Tensor, "batch"]:
    """TVD - λ D of each document."""
    scores, outputs = passed.attended.scores, passed.logits.double()
    return distance(outputs, scores, passed.mask, probability, attention, strength, divergence)


def distance(
    logits: Float[Tensor, "*model batch class"],
    scores: Float[Tensor, "*model batch unit"],
    mask: Bool[Tensor, "batch unit"],
    probability: Float[Tensor, "*#model batch class"],
    attention: Float[Tensor, "*#model batch unit"],
    strength: float | Float[Tensor, "*model 1"],
    divergence: str,
) -> Float[Tensor, "*model batch"]:
    """TVD - λ D of each document from outputs and attention scores, of one model or of several."""
    log_rows = scores.double().log_softmax(-1)
    if divergence == "jsd":
        apart = js_divergence(log_rows, attention.log().expand_as(log_rows))
    else:
        apart = _kl(log_rows, attention, mask)
    return total_variation(logits.softmax(-1), probability) - strength * apart


def _kl(
    log_rows: Float[Tensor, "*model batch unit"],
    attention: Float[Tensor, "*#model batch unit"],
    mask: Bool[Tensor, "batch unit"],
) -> Float[Tensor, "*model batch"]:
    """KL(α_a ‖ α_b); padding adds nothing, and an attention that underflowed counts as tiny."""
    log_rows = log_rows.masked_fill(~mask, 0)
    other = attention.clamp_min(torch.finfo(attention.dtype).tiny).log().masked_fill(~mask, 0)
    return (log_rows.exp() * (log_rows - other)).masked_fill(~mask, 0).sum(-1)


def refuse_strengths(strengths: Sequence[float]) -> None:
    """Raises at a λ below zero or without end."""
    for strength in strengths:
        if not 0 <= strength < math.inf:
            raise InputError(f"λ must be a number from 0 up, got {strength}.")


def imitate(
    model: AttentionClassifier,
    corpus: EncodedCorpus,
    strength: float,
    config: TrainConfig = TrainConfig(),
    penalties: Penalties = Penalties(),
    *,
    divergence: str = "jsd",
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> Imitation:
    """A model of the same parts trained to decide like `model` and to attend elsewhere.

    `strength` is λ. The weights of the least objective on dev are kept, and training stops after
    `config.patience` epochs without gain there. (The published code selects on training loss.)
    """
    if divergence not in DIVERGENCES:
        raise unknown("divergence", divergence, DIVERGENCES)
    refuse_strengths([strength])
    train, dev = corpus.splits["train"], corpus.splits["dev"]
    first = remember(model.to(device), (train, dev), device)
    words, classes = corpus.vocabulary, corpus.classes
    second = build(model.config, words, classes, seed, corpus.vectors, corpus.tokeniser).to(device)
    objectives.check(second.config, penalties)
    optimiser = optimiser_of(second, config)

    def losses(passed: Pass, batch: Batch) -> Float[Tensor, "batch"]:
        goal = first.of(batch.names, passed.mask.shape[1], device)
        return objective(passed, *goal, strength, divergence)

    best, kept, without_gain, epoch = math.inf, second.state_dict(), 0, 0
    with seeded(seed):
        for epoch in range(1, config.epochs + 1):
            second.train()
            order = numpy_generator(seed, "imitation", epoch)
            for batch in batches(train, config.batch_size, order, config.max_batch_tokens):
                here = batch.to(device)
                passed, added = objectives.with_penalties(second, here, penalties)
                optimiser.zero_grad(set_to_none=True)
                (losses(passed, here).mean() + added).backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(second.parameters(), config.clip_norm or math.inf)
                optimiser.step()
            now = _on_dev(second, dev, losses, device)
            without_gain = 0 if now < best else without_gain + 1
            if now < best:
                best = now
                kept = {name: value.clone() for name, value in second.state_dict().items()}
            if 0 < config.patience <= without_gain:
                break
    if not math.isfinite(best):
        raise InputError(f"Imitation with λ = {strength:g} diverged; lower learning_rate or λ.")
    second.load_state_dict(kept)
    return Imitation(second.eval(), best, epoch)


def _on_dev(
    model: AttentionClassifier,
    dev: Encoded,
    losses: Callable[[Pass, Batch], Float[Tensor, "batch"]],
    device: torch.device | str,
) -> float:
    total = 0.0
    with evaluating(model):
        for batch in batches(dev, 256, max_tokens=EVALUATION_TOKENS):
            here = batch.to(device)
            total += float(losses(model(here), here).sum())
    return total / max(len(dev), 1)
