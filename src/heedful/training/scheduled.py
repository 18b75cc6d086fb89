"""Training classifiers side by side by a schedule: the loop of `fit`, over a stack.

Every model has its own start and its own order of batches, so it ends as it would alone with its
seed, up to rounding. The documents lie on the device one after the other, an epoch's orders are
copied there once, and a step picks every model's batch out by itself: the host never waits.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from heedful.corpora.batches import mixed_groups, moved
from heedful.corpora.encoded import Encoded, EncodedCorpus
from heedful.corpora.vocabulary import PAD
from heedful.errors import InputError
from heedful.models.classifier import AttentionClassifier
from heedful.models.classifier_stack import Stack
from heedful.runs.progress import Ticker, ticking
from heedful.runs.randomness import numpy_generator, seeded
from heedful.runs.steps import fingerprint
from heedful.training.checkpoints import (
    CHECKPOINT,
    Progressed,
    load_checkpoint,
    save_checkpoint,
)
from heedful.training.config import Schedule, TrainConfig, refuse_unstacked
from heedful.training.loop import History, optimiser_for
from heedful.training.refusals import refuse_diverged, refuse_unfit
from heedful.training.seeds import reduced_precision
from heedful.training.stacked import StackMoment, StackObserver, clip_each

WRITING = 20
"""A checkpoint takes at most one in so many seconds of training."""


def fit_scheduled_together(
    models: Sequence[AttentionClassifier],
    corpus: EncodedCorpus,
    config: TrainConfig = TrainConfig(),
    *,
    seeds: Sequence[int],
    schedule: Schedule,
    device: torch.device | str = "cpu",
    observers: Sequence[StackObserver] = (),
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
    stack = Stack(models, device)
    run = _Run(stack, corpus, config, list(seeds), schedule, observers, folder)
    run.mark = fingerprint(described)
    title = f"training {len(models)} models"
    with seeded(seeds[0]), ticking(title, schedule.steps, show=show) as ticker:
        run.resume()
        ticker.advance(run.done.step)
        run.begin()
        while run.done.step < schedule.steps:
            run.epoch(ticker)
    stack.release()
    return [History(run.entries(row), float("nan"), 0) for row in range(len(models))]


class Own(NamedTuple):
    """A batch of each model's own, padded to the longest document of all."""

    ids: Int[Tensor, "model batch token"]
    mask: Bool[Tensor, "model batch token"]
    labels: Int[Tensor, "model batch"]


@dataclass(frozen=True, eq=False)
class Documents:
    """All documents of a split on a device, one after the other."""

    ids: Int[Tensor, "flat"]
    starts: Int[Tensor, "document"]
    lengths: Int[Tensor, "document"]
    labels: Int[Tensor, "document"]

    @classmethod
    def of(cls, encoded: Encoded, device: torch.device | str) -> Documents:
        """The documents of a split."""
        arrays = (encoded.ids, encoded.starts[:-1], encoded.lengths, encoded.labels)
        return cls(*(torch.from_numpy(a.astype(np.int64)).to(device) for a in arrays))

    def batch(self, rows: Int[Tensor, "model batch"], longest: int) -> Own:
        """Some of them for each model, padded to a length that none exceeds."""
        lengths = self.lengths[rows][..., None]
        place = torch.arange(longest, device=rows.device)
        mask = place < lengths
        ids = self.ids[self.starts[rows][..., None] + place.minimum(lengths - 1)]
        return Own(ids.masked_fill(~mask, PAD), mask, self.labels[rows])


class _Run:
    """The state of training between two steps."""

    mark = ""
    """What a checkpoint is known by."""

    def __init__(
        self,
        stack: Stack,
        corpus: EncodedCorpus,
        config: TrainConfig,
        seeds: list[int],
        schedule: Schedule,
        observers: Sequence[StackObserver],
        folder: Path | None,
    ) -> None:
        self.stack, self.corpus, self.config, self.seeds = stack, corpus, config, seeds
        self.schedule, self.observers, self.folder = schedule, observers, folder
        self.device = stack.scale.device
        self.train = corpus.splits["train"]
        self.documents = Documents.of(self.train, self.device)
        is_fused = self.device.type == "cuda"
        self.optimiser = optimiser_for(stack.named_parameters(), config, is_fused=is_fused)
        self.done = Progressed(learning_rate=config.learning_rate)
        self.loss = torch.zeros(len(stack), dtype=torch.float64, device=self.device)
        self.saved, self.saving = time.monotonic(), 0.0

    def begin(self) -> None:
        """Shows the untrained models where that is asked for."""
        if 0 in self.schedule.evaluate_at and not self.done.history:
            self._evaluate(0.0)

    def epoch(self, ticker: Ticker) -> None:
        """What is left of one pass of every model over its documents, or of the schedule."""
        done = self.done
        orders = self._orders()
        size = orders.shape[-1]
        longest = self.train.lengths[orders].max((0, 2)).tolist()
        rows = moved(torch.from_numpy(orders), self.device)
        for number in range(done.batch, len(longest)):
            self._learn(self.documents.batch(rows[:, number], longest[number]))
            done.batch, done.step = number + 1, done.step + 1
            if done.step in self.schedule.evaluate_at:
                self._evaluate(done.epoch + (number + 1) * size / len(self.train))
            self._save_in_time()
            ticker.advance(1)
            if done.step >= self.schedule.steps:
                break
        refuse_diverged(self.stack.weights.values(), done.epoch)
        done.epoch, done.batch = done.epoch + 1, 0
        self.loss.zero_()

    def entries(self, row: int) -> tuple[dict[str, Any], ...]:
        """The history of one model."""
        return tuple(entry | {"loss": entry["loss"][row]} for entry in self.done.history)

    def _orders(self) -> Int[np.ndarray, "model number batch"]:
        """The documents of every batch of this epoch, for each model."""
        given, size = self.config.order_seed, self.config.batch_size
        orders = []
        for seed in self.seeds:
            drawn = numpy_generator(seed if given is None else given, "epoch", self.done.epoch)
            orders.append(mixed_groups(self.train, size, drawn))
        return np.array(orders)

    def _learn(self, batch: Own) -> None:
        with reduced_precision(self.device):
            logits = self.stack.passed(batch.ids, batch.mask).logits
            losses = _losses(logits, batch.labels)
            self.optimiser.zero_grad(set_to_none=True)
            losses.sum().backward()  # type: ignore[no-untyped-call]
        gradients = [weight.grad for weight in self.stack.weights.values()]
        clip_each([gradient for gradient in gradients if gradient is not None], self.config)
        self.optimiser.step()
        self.loss += losses.detach().double()

    def _evaluate(self, epoch: float) -> None:
        done = self.done
        losses = (self.loss / max(done.batch, 1)).tolist()
        entry = {"step": done.step, "epoch": round(epoch, 4), "loss": losses}
        done.history.append(entry | {"learning_rate": self.config.learning_rate})
        moment = StackMoment(done.step, epoch, self.stack, self.corpus, self.device)
        for observer in self.observers:
            observer(moment)

    def state_dict(self) -> dict[str, Tensor]:
        """What a checkpoint keeps beside the optimiser."""
        return {"loss": self.loss} | {n: w.detach() for n, w in self.stack.weights.items()}

    def load_state_dict(self, state: Mapping[str, Tensor], /) -> None:
        """Puts it back."""
        self.loss.copy_(state["loss"])
        self.stack.load(dict(state))

    def resume(self) -> None:
        """Goes on from the checkpoint, where there is one."""
        if self.folder is not None:
            path = self.folder / CHECKPOINT
            found = load_checkpoint(path, self, self.optimiser, self.mark)
            self.done = self.done if found is None else found[0]
            # After the last step no epoch is left at whose end the weights are looked at.
            refuse_diverged(self.stack.weights.values(), self.done.epoch)

    def _save_in_time(self) -> None:
        since = time.monotonic() - self.saved
        if self.folder is None or since < max(
            self.config.checkpoint_seconds, WRITING * self.saving
        ):
            return
        started = time.monotonic()
        save_checkpoint(self.folder / CHECKPOINT, self.done, self, {}, self.optimiser, self.mark)
        self.saved = time.monotonic()
        self.saving = self.saved - started


def _losses(
    logits: Float[Tensor, "model batch class"], labels: Int[Tensor, "model batch"]
) -> Float[Tensor, "model"]:
    """Each model's own loss: its gradient reaches its own parameters alone."""
    each = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
    return each.view(labels.shape).mean(1)


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
