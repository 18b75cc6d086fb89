"""Training classifiers side by side without padding: the loop of `fit`, over a `RaggedStack`.

Every model has its own start, its own batches, its own dropout, its own rate and its own end: it
ends as it would alone with its seed and the same `length_seed`, up to rounding and to what dropout
draws. The documents lie on the device; a step picks every model's batch out there by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.corpora.batches import groups, moved
from heedful.corpora.encoded import Encoded, EncodedCorpus
from heedful.errors import InputError
from heedful.models.classifier import AttentionClassifier
from heedful.models.classifier_stack import mean_losses
from heedful.models.ragged_stack import (
    RaggedBatch,
    RaggedStack,
    ResidentSentences,
    Sizes,
    sums_within,
)
from heedful.training.config import TrainConfig
from heedful.training.evaluation import EVALUATION_TOKENS, AttentiveMetrics, Metrics, StackTally
from heedful.training.loop import History, train
from heedful.training.optimisers import EachAdam, clip_each
from heedful.training.precision import reduced_precision
from heedful.training.refusals import refuse_unfit


def fit_ragged(
    models: Sequence[AttentionClassifier],
    corpus: EncodedCorpus,
    config: TrainConfig = TrainConfig(),
    *,
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
    folder: Path | None = None,
    show: bool = False,
) -> list[History]:
    """Trains all models in place, each as `fit` would alone; each keeps its best dev weights.

    With a folder a kill goes on from its checkpoint, which stays (`remove_checkpoint`). Products
    are in TF32 on a GPU.
    """
    _check(models, corpus, config, seeds)
    target = torch.device(device)
    described = {
        "models": [asdict(model.config) for model in models],
        "train": config.described(),
        "corpus": corpus.fingerprint,
        "words": len(corpus.vocabulary),
        "seeds": list(seeds),
        "device": target.type,
    }
    with reduced_precision(target):
        task = RaggedTask(RaggedStack(models, target), corpus, config, seeds, target)
        histories = train(task, described, seed=seeds[0], folder=folder, show=show)
    task.model.release()
    return histories


@torch.no_grad()
def mean_logits(
    models: Sequence[AttentionClassifier], encoded: Encoded, device: torch.device | str = "cpu"
) -> Float[np.ndarray, "model class"]:
    """Each model's mean logits over documents: with a linear head, those of its mean context."""
    stack = RaggedStack(models, device)
    total = sum(stack.run(one).logits.double().sum(1) for one in shared_batches(stack, encoded))
    stack.release()
    found: Float[np.ndarray, "model class"] = (total / len(encoded)).cpu().numpy()  # type: ignore[union-attr]
    return found


def shared_batches(stack: RaggedStack, encoded: Encoded) -> Iterable[RaggedBatch]:
    """Documents that all models read, in batches on their device, in the order of `groups`."""
    device, is_deep = stack.scale.device, stack.config.hierarchical
    here = ResidentSentences.of(encoded, device)
    rows = groups(encoded, 256, max_tokens=EVALUATION_TOKENS)
    order = np.concatenate(rows)[None]
    cuts = np.cumsum([0, *(len(group) for group in rows[:-1])])
    for group, size in zip(rows, here.sizes(order, cuts), strict=True):
        own = torch.from_numpy(group).to(device).expand(len(stack), -1).contiguous()
        yield here.batch(own, size, is_deep)


class RaggedTask:
    """Models on batches of their own, of documents that lie one after the other."""

    def __init__(
        self,
        stack: RaggedStack,
        corpus: EncodedCorpus,
        config: TrainConfig,
        seeds: Sequence[int],
        device: torch.device,
    ) -> None:
        self.model, self.corpus, self.config, self.seeds = stack, corpus, config, seeds
        self.count, self.device = len(stack), device
        self.is_deep = stack.config.hierarchical
        self.documents = ResidentSentences.of(corpus.splits["train"], device)
        self.optimiser: torch.optim.Optimizer = EachAdam(stack.parameters(), config, len(stack))
        self.generators = [torch.Generator(device).manual_seed(seeds[0])]
        self.dev = list(shared_batches(stack, corpus.splits["dev"]))

    def batches(self, epoch: int) -> Iterable[tuple[int, tuple[Int[Tensor, "model batch"], Sizes]]]:
        """The rows of every model's batch, and how large it is."""
        train = self.corpus.splits["train"]
        drawn = [self.config.groups(train, seed, epoch) for seed in self.seeds]
        lengths = [len(group) for group in drawn[0]]
        orders = np.stack([np.concatenate(own) for own in drawn])
        cuts = np.cumsum([0, *lengths[:-1]])
        sizes = self.documents.sizes(orders, cuts)
        rows = moved(torch.from_numpy(orders), self.device)
        for start, length, size in zip(cuts.tolist(), lengths, sizes, strict=True):
            yield length, (rows[:, start : start + length].contiguous(), size)

    def learn(
        self, batch: tuple[Int[Tensor, "model batch"], Sizes], epoch: int
    ) -> Float[Tensor, " model"]:
        """The gradient of every model's own loss."""
        own = self.documents.batch(*batch, self.is_deep)
        losses = mean_losses(self.model.run(own, self.generators[0]).logits, own.labels)
        losses.sum().backward()  # type: ignore[no-untyped-call]
        clip_each(self.model.parameters(), self.config)
        return losses.detach().double()

    def evaluate(self) -> Sequence[Metrics]:
        """Dev metrics of every model."""
        return attentive_metrics(self.model, self.dev)


@torch.no_grad()
def attentive_metrics(stack: RaggedStack, shared: Iterable[RaggedBatch]) -> list[AttentiveMetrics]:
    """Loss, accuracy, F1 and entropy of every model; the device is waited for once."""
    tally = StackTally(len(stack), len(stack.models[0].classes), stack.scale.device)
    for batch in shared:
        found = stack.run(batch)
        tally.add(found.logits, batch.labels[0])
        tally.watch(_entropies(found.attention, batch), batch.documents.lengths)
    return tally.attentive()


def _entropies(attention: Tensor, batch: RaggedBatch) -> Tensor:
    """Each document's entropy over its maximum; undefined for one unit."""
    terms = torch.special.entr(attention.double())[..., None]
    found = sums_within(terms, batch.documents)[..., 0]
    return found / batch.documents.lengths.clamp_min(2).double().log()


def _check(
    models: Sequence[AttentionClassifier],
    corpus: EncodedCorpus,
    config: TrainConfig,
    seeds: Sequence[int],
) -> None:
    refuse_unfit(models, corpus, seeds)
    if config.length_seed is None:
        raise InputError("models trained without padding share the order of lengths: length_seed.")
    fits: dict[str, Any] = {"optimiser": "adam", "weight_decay": 0.0, "balanced": False}
    fits |= {"warm_up": 0.0, "linear_decay": False, "precision": "float32"}
    changed = [name for name, value in fits.items() if getattr(config, name) != value]
    if changed:
        raise InputError(f"{' and '.join(changed)} cannot be stacked; train one by one.")
