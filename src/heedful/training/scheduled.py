"""Training classifiers side by side by a schedule: the loop of `fit`, over a stack.

Every model has its own start and its own order of batches, so it ends as it would alone with its
seed, up to rounding. The documents lie on the device one after the other, an epoch's orders are
copied there once, and a step picks every model's batch out by itself: the host never waits. Where
the recurrence can, batches are not padded (`clustered_stack`); they hold the same documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.corpora.batches import mixed_groups, moved
from heedful.corpora.encoded import EncodedCorpus
from heedful.errors import InputError
from heedful.models import clustered_stack
from heedful.models.classifier import AttentionClassifier
from heedful.models.classifier_stack import ClassifierStack, mean_losses
from heedful.training.config import Schedule, TrainConfig, refuse_unstacked
from heedful.training.loop import History, Observer, train
from heedful.training.optimisers import clip_each, optimiser_for
from heedful.training.precision import reduced_precision
from heedful.training.refusals import refuse_unfit
from heedful.training.resident import ResidentDocuments


def fit_scheduled_together(
    models: Sequence[AttentionClassifier],
    corpus: EncodedCorpus,
    config: TrainConfig = TrainConfig(),
    *,
    seeds: Sequence[int],
    schedule: Schedule,
    device: torch.device | str = "cpu",
    observers: Sequence[Observer] = (),
    folder: Path | None = None,
    show: bool = False,
) -> list[History]:
    """Trains all models in place, each as `fit` with its seed and `is_judged` off would alone.

    Observers are called at the schedule's evaluations, and the last weights stay. With a folder a
    kill goes on from its checkpoint, which stays (`remove_checkpoint`), and ends with the same
    numbers. Products are in TF32 on a GPU while models learn, not while observers look at them.
    """
    _check(models, corpus, config, seeds)
    described = {
        "models": [asdict(model.config) for model in models],
        "train": config.described(),
        "corpus": corpus.fingerprint,
        "words": len(corpus.vocabulary),
        "seeds": list(seeds),
        "schedule": asdict(schedule),
    }
    config = replace(config, evaluate_at=schedule.evaluate_at)
    task = ScheduledTask(ClassifierStack(models, device), corpus, config, seeds)
    histories = train(
        task,
        described,
        seed=seeds[0],
        steps=schedule.steps,
        is_judged=False,
        observers=observers,
        folder=folder,
        show=show,
    )
    task.model.release()
    return histories


class ScheduledTask:
    """Stacked classifiers, each on batches of its own, of documents of any length."""

    generators: Sequence[torch.Generator] = ()

    def __init__(
        self,
        stack: ClassifierStack,
        corpus: EncodedCorpus,
        config: TrainConfig,
        seeds: Sequence[int],
    ) -> None:
        self.model, self.corpus, self.config, self.seeds = stack, corpus, config, seeds
        self.device, self.count = stack.scale.device, len(stack)
        self.train = corpus.splits["train"]
        self.documents = ResidentDocuments.of(self.train, self.device)
        is_fused = self.device.type == "cuda"
        self.optimiser = optimiser_for(stack.named_parameters(), config, is_fused=is_fused)
        self.is_flat = clustered_stack.fits(stack)

    def batches(self, epoch: int) -> Iterable[tuple[int, tuple[Tensor, int]]]:
        """The rows of every model's batch and their longest document, or most tokens if flat."""
        size = self.config.batch_size
        drawn = [self.config.order(seed, epoch) for seed in self.seeds]
        orders = np.array([mixed_groups(self.train, size, order) for order in drawn])
        lengths = self.train.lengths[orders]
        sizes = lengths.sum(2).max(0) if self.is_flat else lengths.max((0, 2))
        rows = moved(torch.from_numpy(orders), self.device)
        for number, size in enumerate(sizes.tolist()):
            yield orders.shape[-1], (rows[:, number], size)

    def learn(self, batch: tuple[Tensor, int], epoch: int) -> Float[Tensor, " model"]:
        """The gradient of every model's own loss."""
        with reduced_precision(self.device):
            logits, labels = self._flat(*batch) if self.is_flat else self._padded(*batch)
            losses = mean_losses(logits, labels)
            losses.sum().backward()  # type: ignore[no-untyped-call]
        clip_each(self.model.parameters(), self.config)
        return losses.detach().double()

    def _padded(self, rows: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        own = self.documents.batch(rows, longest)
        return self.model.passed(own.ids, own.mask).logits, own.labels

    def _flat(self, rows: Tensor, tokens: int) -> tuple[Tensor, Tensor]:
        own = self.documents.flat(rows, tokens)
        return clustered_stack.passed(self.model, own).logits, own.labels

    def evaluate(self) -> list[Any]:
        """Nothing: observers look at dev themselves."""
        return []


def _check(
    models: Sequence[AttentionClassifier],
    corpus: EncodedCorpus,
    config: TrainConfig,
    seeds: Sequence[int],
) -> None:
    refuse_unfit(models, corpus, seeds)
    refuse_unstacked(config)
    for name in ("dropout", "head_dropout"):
        if any(getattr(model.config, name) for model in models):
            raise InputError(f"{name} cannot be used for models trained together; use fit.")
