"""A second model trained to decide like a first one while attending elsewhere.

See docs/studies/faithful.md, "Imitation".

Per document TVD(ŷ_a, ŷ_b) - λ D(α_a, α_b) is made small, on average over the batch and without any
label; b is the model imitated, a starts afresh with the same parts and penalties. D is the
Jensen-Shannon divergence, or KL(α_a ‖ α_b) as in the code of Wiegreffe & Pinter (2019).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.audits.examination import Portion, readings
from heedful.audits.finding import frame
from heedful.corpora.batches import Batch, batches, moved
from heedful.corpora.encoded import Encoded, EncodedCorpus
from heedful.errors import InputError, unknown
from heedful.models.classifier import AttentionClassifier
from heedful.models.classifier_stack import ClassifierStack, StackPass
from heedful.models.recipe import Penalties
from heedful.models.saved import build
from heedful.models.verbs import read
from heedful.statistics.divergence import js_divergence, total_variation
from heedful.training import objectives
from heedful.training.config import TrainConfig, refuse_unstacked
from heedful.training.evaluation import EVALUATION_TOKENS
from heedful.training.stacked import StackedTask, train_stacked

DIVERGENCES = ("jsd", "kl")


@dataclass(frozen=True, eq=False)
class Imitated:
    """What the first model decided and attended, by instance."""

    probability: Mapping[str, Float[np.ndarray, "class"]]
    attention: Mapping[str, Float[np.ndarray, " unit"]]

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
    log: Sequence[Mapping[str, float]]
    """Every evaluation: step, epoch, loss, dev_loss and learning_rate."""


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


def imitate(
    models: Sequence[AttentionClassifier],
    corpus: EncodedCorpus,
    strengths: Sequence[float],
    config: TrainConfig = TrainConfig(),
    penalties: Penalties = Penalties(),
    *,
    divergence: str = "jsd",
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
) -> list[list[Imitation]]:
    """Models of the same parts trained to decide like others and to attend elsewhere, in one stack.

    Of every model there is one adversary for each λ in `strengths`; those of a model start from the
    same weights, drawn with its seed. All share their batches and the words that are masked: those
    of `config.order_seed`, or else of the first seed. The weights of the least objective on dev are
    kept, and training stops after `config.patience` epochs without gain there. (The published code
    selects on training loss.)
    """
    if divergence not in DIVERGENCES:
        raise unknown("divergence", divergence, DIVERGENCES)
    for strength in strengths:
        if not 0 <= strength < math.inf:
            raise InputError(f"λ must be a number from 0 up, got {strength}.")
    words, classes = corpus.vocabulary, corpus.classes
    seconds = [
        build(model.config, words, classes, seed, corpus.vectors, corpus.tokeniser)
        for model, seed in zip(models, seeds, strict=True)
        for _ in strengths
    ]
    objectives.check(seconds[0].config, penalties)
    refuse_unstacked(replace(config, balanced=False))  # the objective has no labels to weigh
    goal = _Goal.of(models, corpus, strengths, divergence, device)
    drawn = [seed for seed in seeds for _ in strengths]
    given = [penalties] * len(seconds)
    stack = ClassifierStack(seconds, device)
    task = StackedTask(stack, corpus, config, given, drawn, device, goal.apart, goal.evaluate)
    histories = train_stacked(task)
    found = [
        Imitation(second.eval(), -history.best, history.entries)
        for second, history in zip(seconds, histories, strict=True)
    ]
    return [found[at : at + len(strengths)] for at in range(0, len(found), len(strengths))]


@dataclass(frozen=True)
class Objective:
    """TVD - λ D on dev."""

    loss: float

    def chosen(self, select: str) -> float:
        """What weights are selected by, higher = better: always the objective."""
        return -self.loss


@dataclass(frozen=True, eq=False)
class _Goal:
    """What adversaries imitate, how strongly attention is pushed away, and in which sense."""

    firsts: Sequence[Imitated]
    strengths: Float[Tensor, " model"]
    each: int
    """Adversaries of a model."""
    divergence: str

    @classmethod
    def of(
        cls,
        models: Sequence[AttentionClassifier],
        corpus: EncodedCorpus,
        strengths: Sequence[float],
        divergence: str,
        device: torch.device | str,
    ) -> _Goal:
        """Reads the models that are imitated once."""
        splits = [corpus.splits[name] for name in ("train", "dev")]
        firsts = [remember(model.to(device), splits, device) for model in models]
        every = torch.tensor(strengths, device=device, dtype=torch.float64)
        return cls(firsts, every.repeat(len(models)), len(strengths), divergence)

    def apart(self, passed: StackPass, batch: Batch) -> Float[Tensor, "model row"]:
        """TVD - λ D of each adversary on each document."""
        units, device = batch.mask.shape[1], batch.mask.device
        goals = [first.of(batch.names, units, device) for first in self.firsts]
        probability, attention = (
            torch.stack(parts).repeat_interleave(self.each, 0) for parts in zip(*goals, strict=True)
        )
        return distance(
            passed.logits.double(), passed.scores, batch.mask, probability, attention,
            self.strengths[:, None], self.divergence,
        )  # fmt: skip

    def evaluate(
        self, stack: ClassifierStack, dev: Encoded, device: torch.device | str
    ) -> list[Objective]:
        """The objective of each adversary on dev."""
        total = torch.zeros_like(self.strengths)
        with torch.no_grad():
            for batch in batches(dev, 256, max_tokens=EVALUATION_TOKENS):
                here = batch.to(device)
                total += self.apart(stack.forward(here), here).sum(1)
        return [Objective(loss) for loss in (total / max(len(dev), 1)).tolist()]


def distances(
    seconds: Sequence[AttentionClassifier],
    first: AttentionClassifier,
    encoded: Encoded,
    device: torch.device | str = "cpu",
) -> list[pd.DataFrame]:
    """For each second model JSD of the attentions and TVD of the outputs on every document.

    The first model reads every document once, however many imitate it. TVD is the whole definition,
    half the sum over all classes; the published code of the trained adversary has half of it.
    `decision` is the second model's, so that a collapse can be seen.
    """
    found: list[list[pd.DataFrame]] = [[] for _ in seconds]
    for one in readings(first, encoded, device, Portion(256)):
        attention, output = one.scores.log_softmax(-1), one.logits.softmax(-1)
        for parts, second in zip(found, seconds, strict=True):
            two = read(second, one.batch)
            jsd = js_divergence(attention, two.scores.log_softmax(-1))
            tvd = total_variation(output, two.logits.softmax(-1))
            columns = {"jsd": jsd, "tvd": tvd, "decision": two.decision, "label": two.labels}
            arrays = {name: np.asarray(column.cpu()) for name, column in columns.items()}
            parts.append(frame(one.names, **arrays))
    return [pd.concat(parts, ignore_index=True) for parts in found]
