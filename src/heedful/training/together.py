"""Training Transformers side by side: the loop of `fit`, over a stack.

Every model has its own start, its own dropout and, unless `order_seed` says otherwise, its own
order of batches: it ends as it would alone with its seed, up to rounding (and on a GPU up to what
dropout draws). The documents lie on the device as one table; an epoch's batches are rows of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.corpora.batches import collate, groups, moved
from heedful.corpora.encoded import EncodedCorpus
from heedful.errors import unknown
from heedful.models.transformer import TransformerClassifier
from heedful.models.transformer_stack import Drops, StackBatch, TransformerStack
from heedful.training.config import DECISIONS, TrainConfig, refuse_unstacked
from heedful.training.evaluation import Metrics, StackTally
from heedful.training.loop import History, train
from heedful.training.optimisers import clip_each, optimiser_for
from heedful.training.precision import reduced_precision
from heedful.training.refusals import refuse_unfit
from heedful.training.resident import ResidentDocuments

SLACK = 1.5
"""Batches are padded to each other's size up to this factor; others are a pass of their own."""
DEV_TOKENS = 16_384
"""Documents × longest document of a dev batch, which every model reads."""


def fit_together(
    models: Sequence[TransformerClassifier],
    corpus: EncodedCorpus,
    config: TrainConfig = TrainConfig(),
    *,
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
    folder: Path | None = None,
    show: bool = False,
    is_halved: bool = False,
) -> list[History]:
    """Trains all models in place, each as `fit` would alone; each keeps its best dev weights.

    With a folder a kill goes on from its checkpoint, which stays (`remove_checkpoint`), and ends
    with the same numbers. Products are in TF32 on a GPU, or in bfloat16 while it learns
    (`is_halved`): weights, sums and dev stay as they are.
    """
    _check(models, corpus, config, seeds)
    target = torch.device(device)
    described = {
        "models": [asdict(model.config) for model in models],
        "train": asdict(config),
        "corpus": corpus.fingerprint,
        "seeds": list(seeds),
        "device": target.type,
    }
    if is_halved:
        described["products"] = "bfloat16"
    with reduced_precision(target):
        task = TransformersTask(TransformerStack(models, target), corpus, config, seeds, target)
        task.is_halved = is_halved and target.type == "cuda"
        histories = train(task, described, seed=seeds[0], folder=folder, show=show)
    task.model.release()
    return histories


class TransformersTask:
    """Stacked Transformers, each on batches of its own and with dropout of its own."""

    def __init__(
        self,
        stack: TransformerStack,
        corpus: EncodedCorpus,
        config: TrainConfig,
        seeds: Sequence[int],
        device: torch.device,
    ) -> None:
        self.model, self.corpus, self.config, self.seeds = stack, corpus, config, seeds
        self.device, self.count = device, len(stack)
        self.is_halved = False
        self.optimiser = optimiser_for([("weights", stack.weights)], config)
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self.documents = ResidentDocuments.of(corpus.splits["train"], device)
        rows = groups(corpus.splits["dev"], 256, max_tokens=DEV_TOKENS)
        self.dev_batches = [self._everyones(group) for group in rows]

    def batches(self, epoch: int) -> Iterable[tuple[int, list[Int[np.ndarray, " batch"]]]]:
        """The documents of every model's batch; one list for equal seeds."""
        train, size = self.corpus.splits["train"], self.config.batch_size
        found = {
            seed: groups(train, size, self.config.order(seed, epoch))
            for seed in dict.fromkeys(self.seeds)
        }
        for number, own in enumerate(found[self.seeds[0]]):
            yield len(own), [found[seed][number] for seed in self.seeds]

    def learn(self, batch: list[Int[np.ndarray, " batch"]], epoch: int) -> Float[Tensor, " model"]:
        """The gradient of every model's own loss."""
        stack = self.model
        drops_until = [model.config.dropout_epochs for model in stack.models]
        is_dropping = [last is None or epoch < last for last in drops_until]
        total = torch.zeros(self.count, dtype=torch.float64, device=self.device)
        for part in self.parts(batch):
            drops = Drops(
                [self.generators[row] for row in part.models],
                [is_dropping[row] for row in part.models],
                part.sizes,
            )
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.is_halved):
                logits = stack.forward(part, drops)
            losses = stack.losses(logits.float() if self.is_halved else logits, part)
            losses.sum().backward()  # type: ignore[no-untyped-call]
            stack.scatter(total, losses.detach().double(), part.models)
        clip_each(stack.parameters(), self.config)
        return total

    @torch.no_grad()
    def evaluate(self) -> list[Metrics]:
        """Dev metrics of every model."""
        tally = StackTally(self.count, len(self.model.models[0].classes), self.device)
        for batch in self.dev_batches:
            tally.add(self.model.forward(batch), batch.labels[0])
        return tally.metrics()

    def _everyones(self, rows: Int[np.ndarray, " batch"]) -> StackBatch:
        """A batch of dev that all models read, on the device once and for all."""
        batch = collate(self.corpus.splits["dev"], rows).to(self.device)
        ids, mask = (x.expand(self.count, -1, -1) for x in (batch.ids, batch.mask))
        labels = batch.labels.expand(self.count, -1)
        share = (labels >= 0).to(self.model.weights.dtype)
        sizes = ((len(batch), ids.shape[2]),) * self.count
        return StackBatch(tuple(range(self.count)), ids, mask, labels, share, sizes)

    def parts(self, rows: Sequence[Int[np.ndarray, " batch"]]) -> Iterator[StackBatch]:
        """Each model's own documents, models whose batches are of similar size side by side."""
        lengths = self.corpus.splits["train"].lengths
        sizes = [(len(own), int(lengths[own].max())) for own in rows]
        area = [size * length for size, length in sizes]
        chosen: list[int] = []
        for row in sorted(range(len(rows)), key=lambda row: area[row]):
            if chosen and area[row] > SLACK * area[chosen[0]]:
                yield self._part(rows, sorted(chosen), sizes)
                chosen = []
            chosen.append(row)
        yield self._part(rows, sorted(chosen), sizes)

    def _part(
        self,
        every: Sequence[Int[np.ndarray, " batch"]],
        models: list[int],
        every_size: Sequence[tuple[int, int]],
    ) -> StackBatch:
        rows, sizes = [every[row] for row in models], tuple(every_size[row] for row in models)
        most, longest = max(size for size, _ in sizes), max(length for _, length in sizes)
        filler = len(self.corpus.splits["train"])
        chosen = np.full((len(rows), most), filler)
        for row, own in enumerate(rows):
            chosen[row, : len(own)] = own
        at = moved(torch.from_numpy(chosen), self.device)
        share = (at < filler).to(torch.get_default_dtype())
        ids, mask, labels = self.documents.batch(at, longest)
        return StackBatch(tuple(models), ids, mask, labels, share, sizes)


def _check(
    models: Sequence[TransformerClassifier],
    corpus: EncodedCorpus,
    config: TrainConfig,
    seeds: Sequence[int],
) -> None:
    refuse_unfit(models, corpus, seeds)
    if config.select not in DECISIONS:
        raise unknown("metric to select this model by", config.select, DECISIONS)
    refuse_unstacked(config, "max_batch_tokens", "evaluate_at", "decay")
