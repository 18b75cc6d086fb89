"""How well a model decides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
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


def metrics_of(
    losses: Sequence[float] | Float[np.ndarray, "model"],
    predicted: Int[np.ndarray, "model document"],
    labels: Int[np.ndarray, "document"],
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
