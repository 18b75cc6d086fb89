"""How well a model decides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from heedful.corpora.batches import batches
from heedful.corpora.encoded import Encoded
from heedful.models.huggingface import PretrainedClassifier
from heedful.models.saved import Classifier
from heedful.models.verbs import evaluating
from heedful.statistics.scores import classification_scores

EVALUATION_TOKENS = 65_536
"""Documents × longest document of an evaluation batch."""


@dataclass(frozen=True)
class Metrics:
    """What is logged at every evaluation."""

    loss: float
    accuracy: float
    macro_f1: float
    f1: tuple[float, ...]
    """F1 of each class; nan for one that is neither present nor predicted."""

    def chosen(self, select: str) -> float:
        """The metric to select by, higher = better; an undefined score counts as 0.

        Nothing compares with nan: it would neither be beaten nor beat anything.
        """
        if select == "loss":
            return -self.loss
        score = self.f1[-1] if select == "f1" else float(getattr(self, select))
        return 0.0 if math.isnan(score) else score


@dataclass(frozen=True)
class AttentiveMetrics(Metrics):
    """What is logged of a model whose attention is watched while it learns."""

    entropy: float
    """Mean over documents of the attention's entropy, divided by its maximum; those of one unit
    are left out."""


def evaluate(
    model: Classifier | PretrainedClassifier,
    encoded: Encoded,
    device: torch.device | str = "cpu",
    batch_size: int = 256,
) -> Metrics:
    """Loss, accuracy and F1 over a split, without dropout; unlabelled documents are left out."""
    total, decided, gold = torch.zeros((), dtype=torch.float64, device=device), [], []
    with evaluating(model):
        for batch in batches(encoded, batch_size, max_tokens=EVALUATION_TOKENS):
            batch = batch.to(device)
            logits = model(batch).logits.double()
            # -1 marks unlabelled documents. Nothing is read before the end: a GPU need not wait.
            total += functional.cross_entropy(
                logits, batch.labels, reduction="sum", ignore_index=-1
            )
            decided.append(logits.argmax(-1))
            gold.append(batch.labels)
    known = torch.cat(gold) >= 0
    predicted = torch.cat(decided)[known].cpu().numpy()
    labels_seen = torch.cat(gold)[known].cpu().numpy()
    (found,) = metrics_of([float(total)], predicted[None], labels_seen, len(model.classes))
    return found


class StackTally:
    """Losses and decisions of stacked models on documents that all of them read.

    They stay on the device until the metrics are asked for, so that it is waited for once.
    """

    def __init__(self, count: int, classes: int, device: torch.device | str) -> None:
        self.classes = classes
        self.lost = torch.zeros(count, dtype=torch.float64, device=device)
        self.decided: list[Int[Tensor, "model document"]] = []
        self.labels: list[Int[Tensor, " document"]] = []
        self.spread = torch.zeros_like(self.lost)
        self.several = torch.zeros_like(self.lost)

    def add(
        self, logits: Float[Tensor, "model document class"], labels: Int[Tensor, " document"]
    ) -> None:
        """Takes in a batch; unlabelled documents are left out."""
        logits = logits.double()
        right = labels.clamp_min(0).expand(len(logits), -1)[..., None]
        lost = logits.logsumexp(-1) - logits.gather(-1, right)[..., 0]
        self.lost += (lost * (labels >= 0)).sum(1)
        self.decided.append(logits.argmax(-1))
        self.labels.append(labels)

    def watch(
        self, entropy: Float[Tensor, "model document"], units: Int[Tensor, "*model document"]
    ) -> None:
        """Takes in how evenly attention lies; documents of one unit are left out."""
        is_several = units > 1
        self.spread += (entropy.double() * is_several).sum(-1)
        self.several += is_several.sum(-1)

    def attentive(self) -> list[AttentiveMetrics]:
        """The metrics of every model, with the mean entropy of its attention."""
        means = (self.spread / self.several.clamp_min(1)).tolist()
        found = zip(self.metrics(), means, strict=True)
        return [AttentiveMetrics(**vars(one), entropy=mean) for one, mean in found]

    def metrics(self) -> list[Metrics]:
        """Those of every model."""
        predicted, labels = (
            torch.cat(one, -1).cpu().numpy() for one in (self.decided, self.labels)
        )
        known = labels >= 0
        return metrics_of(self.lost.cpu().numpy(), predicted[:, known], labels[known], self.classes)


def metrics_of(
    losses: Sequence[float] | Float[np.ndarray, " model"],
    predicted: Int[np.ndarray, "model document"],
    labels: Int[np.ndarray, " document"],
    classes: int,
) -> list[Metrics]:
    """The metrics of several models from their summed losses and their decisions."""
    scores = classification_scores(predicted, labels, classes)
    return [
        Metrics(
            loss=float(loss) / max(len(labels), 1),
            accuracy=float(scores.accuracy[0, row]),
            macro_f1=float(scores.macro_f1[0, row]),
            f1=tuple(float(value) for value in scores.f1[0, row]),
        )
        for row, loss in enumerate(losses)
    ]
