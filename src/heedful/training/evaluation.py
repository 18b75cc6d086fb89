"""How well a model decides."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from heedful.corpora.batches import batches
from heedful.corpora.encoded import Encoded
from heedful.models.classifier import AttentionClassifier
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
    model: AttentionClassifier,
    encoded: Encoded,
    device: torch.device | str = "cpu",
    batch_size: int = 256,
) -> Metrics:
    """Loss, accuracy and F1 over a split, without dropout; unlabelled documents are left out."""
    total, decided, gold = 0.0, [], []
    with evaluating(model):
        for batch in batches(encoded, batch_size, max_tokens=EVALUATION_TOKENS):
            batch = batch.to(device)
            labelled = batch.labels >= 0
            logits = model(batch).logits[labelled].double()
            labels = batch.labels[labelled]
            total += float(functional.cross_entropy(logits, labels, reduction="sum"))
            decided.append(logits.argmax(-1).cpu().numpy())
            gold.append(labels.cpu().numpy())
    predicted, labels_seen = np.concatenate(decided), np.concatenate(gold)
    scores = classification_scores(predicted[None], labels_seen, len(model.classes))
    return Metrics(
        loss=total / max(len(labels_seen), 1),
        accuracy=float(scores.accuracy[0, 0]),
        macro_f1=float(scores.macro_f1[0, 0]),
        f1=tuple(float(value) for value in scores.f1[0, 0]),
    )
