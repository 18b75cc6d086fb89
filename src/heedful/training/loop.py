"""One loop for all models."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from heedful.corpora.batches import mixed_batches
from heedful.corpora.encoded import Encoded, EncodedCorpus
from heedful.corpora.narrative_batches import NarrativeCorpus
from heedful.errors import InputError, unknown
from heedful.models.recipe import Penalties
from heedful.runs.atomic import plain, write_text
from heedful.runs.progress import Ticker, ticking
from heedful.runs.randomness import numpy_generator, seeded
from heedful.runs.steps import fingerprint
from heedful.training.checkpoints import (
    CHECKPOINT,
    Progressed,
    load_checkpoint,
    save_checkpoint,
)
from heedful.training.config import Schedule, TrainConfig
from heedful.training.refusals import refuse_diverged, refuse_empty
from heedful.training.tasks import Trained, task_of


@dataclass(frozen=True)
class Moment:
    """What an observer sees at an evaluation."""

    step: int
    epoch: float
    model: Any
    """What is being trained."""
    corpus: Any
    """What it is trained on."""
    device: torch.device | str


CHEAP = 0.03
"""Seconds that a checkpoint may take at the end of every epoch."""
Observer = Callable[[Moment], None]
"""Called at every evaluation; training knows nothing of what it does."""


@dataclass(frozen=True)
class History:
    """What training left behind beside the weights."""

    entries: tuple[dict[str, Any], ...]
    """One per evaluation: step, epoch, training loss, dev metrics, learning rate."""
    best: float
    """The dev metric of the kept weights, higher = better."""
    best_step: int


def fit(
    model: Trained,
    corpus: EncodedCorpus | NarrativeCorpus,
    config: TrainConfig = TrainConfig(),
    penalties: Penalties = Penalties(),
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
    observers: Sequence[Observer] = (),
    folder: Path | None = None,
    show: bool = False,
    schedule: Schedule | None = None,
    is_judged: bool = True,
) -> History:
    """Trains the model in place and leaves it with the weights of the best dev evaluation.

    A schedule counts steps in place of epochs and says where dev is evaluated. Where observers
    look at dev themselves, `is_judged` off saves its evaluation, and the last weights stay.

    With a folder, `checkpoint.safetensors` and `metrics.jsonl` are kept there; the same call after
    a kill goes on from the checkpoint and ends with the same numbers. The checkpoint stays:
    `remove_checkpoint` when the model is saved.
    """
    refuse_empty(corpus)
    task = task_of(model)
    if config.select not in task.selections:
        raise unknown("metric to select this model by", config.select, task.selections)
    task.check(model, penalties)
    dev = corpus.splits["dev"]
    is_rare = isinstance(dev, Encoded) and not (dev.labels == len(model.classes) - 1).any()
    if is_judged and config.select == "f1" and is_rare:
        raise InputError(
            f"F1 of {model.classes[-1]!r} chooses the weights, but no dev document of "
            f"{corpus.name} has that label; add some, or set select to accuracy."
        )
    if not is_judged and (schedule is None or config.halve_on_plateau):
        raise ValueError("only a schedule with a steady rate goes without dev evaluations")
    if schedule is not None:
        config = _scheduled(config, schedule, len(corpus.splits["train"]))
    model.to(device)
    optimiser = optimiser_of(model, config)
    described = {
        "model": task.described(model),
        "train": config.described(),
        "penalties": asdict(penalties),
        "corpus": corpus.fingerprint,
        "words": len(corpus.vocabulary),
        "seed": seed,
    } | ({} if schedule is None else {"schedule": asdict(schedule)})
    mark = fingerprint(described)
    run = _Run(
        model, optimiser, corpus, config, device, observers, folder, mark, schedule, is_judged
    )
    total = len(corpus.splits["train"]) * config.epochs
    with seeded(seed), ticking("training", total, show=show) as ticker:
        run.resume()
        ticker.advance(run.progressed.epoch * len(corpus.splits["train"]))
        run.begin()
        while not run.is_done:
            run.epoch(seed, penalties, ticker)
    if is_judged:
        model.load_state_dict(run.best)
    progressed = run.progressed
    return History(
        tuple(progressed.history),
        float("nan") if progressed.best is None else progressed.best,
        progressed.best_step,
    )


class _Run:
    """The state of one training run between two steps."""

    def __init__(
        self,
        model: Trained,
        optimiser: torch.optim.Optimizer,
        corpus: Any,
        config: TrainConfig,
        device: torch.device | str,
        observers: Sequence[Observer],
        folder: Path | None,
        described: str,
        schedule: Schedule | None = None,
        is_judged: bool = True,
    ) -> None:
        self.model, self.optimiser, self.corpus, self.config = model, optimiser, corpus, config
        self.task = task_of(model)
        self.device, self.observers, self.folder, self.described = (
            device,
            observers,
            folder,
            described,
        )
        self.schedule, self.is_judged = schedule, is_judged
        self.progressed = Progressed(learning_rate=config.learning_rate)
        self.class_weights = _class_weights(model, corpus, device) if config.balanced else None
        self.best: dict[str, Tensor] = _copied(model) if is_judged else {}
        self.loss = torch.zeros((), dtype=torch.float64, device=device)
        self.saved = time.monotonic()
        self.saving = 0.0

    @property
    def is_done(self) -> bool:
        """Whether no epoch is left; one that was begun is gone through, though it be the last."""
        done = self.progressed
        return done.epoch >= self.config.epochs or (done.stopped and not done.batch)

    def resume(self) -> None:
        """Goes on from the checkpoint, where there is one."""
        if self.folder is None:
            return
        path = self.folder / CHECKPOINT
        found = load_checkpoint(path, self.model, self.optimiser, self.described)
        if found is not None:
            self.progressed, self.best = found
            self.loss += self.progressed.loss
            self._set_rate()

    def begin(self) -> None:
        """Evaluates the untrained model where that is asked for."""
        if 0 in self.config.evaluate_at and not self.progressed.history:
            self._evaluate(0.0)

    def epoch(self, seed: int, penalties: Penalties, ticker: Ticker) -> None:
        """What is left of one pass over the training documents, then an evaluation."""
        done = self.progressed
        train = self.corpus.splits["train"]
        given = self.config.order_seed
        order = numpy_generator(seed if given is None else given, "epoch", done.epoch)
        sizes = self.config.batch_size, order, self.config.max_batch_tokens
        taken = 0
        # Some recipes drop out in the first epochs only.
        last = getattr(getattr(self.model, "config", None), "dropout_epochs", None)
        drops_out = last is None or done.epoch < last
        groups = self.task.batches(train, *sizes)
        if self.schedule is not None:
            groups = mixed_batches(train, self.config.batch_size, order)
        for index, batch in enumerate(groups):
            taken += len(batch)
            if index < done.batch:
                continue
            if self.schedule is not None and done.step >= self.schedule.steps:
                break
            self.model.train(drops_out)
            here = batch.to(self.device)
            self._ramp(done.epoch + (taken - len(batch) / 2) / len(train))
            with self._precision():
                loss = self.task.loss(self.model, here, penalties, self.class_weights)
            self.optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            if self.config.clip_value:
                nn.utils.clip_grad_value_(self.model.parameters(), self.config.clip_value)
            if self.config.clip_norm:
                nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm)
            self.optimiser.step()
            self.loss += loss.detach().double()  # a tensor: reading it here would stall a GPU
            done.batch, done.step = index + 1, done.step + 1
            if done.step in self.config.evaluate_at:
                self._evaluate(done.epoch + taken / len(train))
            if time.monotonic() - self.saved > self.config.checkpoint_seconds:
                self._save()
            ticker.advance(len(batch))
        refuse_diverged(self.model.parameters(), done.epoch)
        if self.schedule is None:
            ticker.advance(0, self._evaluate(done.epoch + 1.0))
        done.epoch, done.batch = done.epoch + 1, 0
        self.loss.zero_()
        # Many short epochs of a large model would mostly write: then some go without a checkpoint,
        # and a schedule, to which epochs mean nothing, goes by the clock alone.
        is_cheap = self.saving < CHEAP or time.monotonic() - self.saved > 20 * self.saving
        if self.schedule is None and is_cheap:
            self._save()

    def _evaluate(self, epoch: float) -> str:
        done = self.progressed
        loss = float(self.loss) / max(done.batch, 1)
        entry: dict[str, Any] = {"step": done.step, "epoch": round(epoch, 4), "loss": loss}
        said = self._judge(entry) if self.is_judged else ""
        rate = self.optimiser.param_groups[0]["lr"]
        done.history.append(entry | {"learning_rate": rate})
        if self.folder is not None:
            lines = "".join(json.dumps(line) + "\n" for line in done.history)
            write_text(self.folder / "metrics.jsonl", lines)
        moment = Moment(done.step, epoch, self.model, self.corpus, self.device)
        for observer in self.observers:
            observer(moment)
        return said

    def _judge(self, entry: dict[str, Any]) -> str:
        """Adds dev metrics to the entry and keeps the weights if they are the best so far."""
        done, config = self.progressed, self.config
        metrics = self.task.evaluate(self.model, self.corpus.splits["dev"], self.device)
        value = metrics.chosen(config.select)
        if done.best is None or value > done.best:
            done.best, done.best_step, done.without_gain = value, done.step, 0
            done.stopped = False
            self.best = _copied(self.model)
        else:
            done.without_gain += 1
            if config.halve_on_plateau:
                done.learning_rate /= 2
                self._set_rate()
            done.stopped = 0 < config.patience <= done.without_gain
        entry |= {f"dev_{name}": plain(number) for name, number in asdict(metrics).items()}
        return f"dev {config.select} {abs(value):.3f}"

    def _set_rate(self, factor: float = 1.0) -> None:
        for group in self.optimiser.param_groups:
            group["lr"] = self.progressed.learning_rate * factor

    def _ramp(self, epoch: float) -> None:
        """Sets the rate of a step by where its middle lies: never 0, also in the first and last."""
        if not (self.config.warm_up or self.config.linear_decay):
            return
        if self.schedule is None:
            progress = epoch / self.config.epochs
        else:
            progress = (self.progressed.step + 0.5) / self.schedule.steps
        self._set_rate(self.config.rate(progress))

    def _precision(self) -> AbstractContextManager[Any]:
        """Half the bits for what a GPU computes, where that is asked for."""
        kind = torch.device(self.device).type
        is_lower = self.config.precision == "bfloat16" and kind == "cuda"
        return torch.autocast(kind, torch.bfloat16, enabled=is_lower)

    def _save(self) -> None:
        if self.folder is None:
            return
        started = time.monotonic()
        self.progressed.loss = float(self.loss)
        path = self.folder / CHECKPOINT
        save_checkpoint(
            path, self.progressed, self.model, self.best, self.optimiser, self.described
        )
        self.saved = time.monotonic()
        self.saving = self.saved - started


def _scheduled(config: TrainConfig, schedule: Schedule, documents: int) -> TrainConfig:
    """The configuration with as many epochs as the schedule's steps need."""
    per_epoch = max(documents // config.batch_size, 1)
    epochs = -(-schedule.steps // per_epoch)
    return replace(config, epochs=epochs, patience=0, evaluate_at=schedule.evaluate_at)


def _class_weights(model: Trained, corpus: Any, device: torch.device | str) -> Tensor:
    """The inverse of each class's share of the training documents; 0 for one without any."""
    labels = torch.from_numpy(corpus.splits["train"].labels)
    counts = torch.bincount(labels[labels >= 0], minlength=len(model.classes)).float()
    return torch.where(counts > 0, counts.sum() / (len(counts) * counts), 0).to(device)


def _copied(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def optimiser_of(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """The optimiser, with weight decay on the parameters the configuration names."""
    return optimiser_for(model.named_parameters(), config)


def optimiser_for(
    named: Iterable[tuple[str, nn.Parameter]], config: TrainConfig, *, is_fused: bool = False
) -> torch.optim.Optimizer:
    """The optimiser of parameters under the names they have in a classifier.

    Fused: Adam in one pass over the memory, for many parameters on a GPU.
    """
    decayed: list[nn.Parameter] = []
    free: list[nn.Parameter] = []
    for name, parameter in named:
        if not parameter.requires_grad:
            continue
        is_decayed = {
            "all": True,
            "all but attention": ".attention." not in name,
            "encoder": ".encoder." in name,
            "additive map": ".attention.hidden." in name,
            "matrices": parameter.dim() > 1,
        }[config.decay]
        (decayed if is_decayed else free).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": free, "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    rate, is_amsgrad = config.learning_rate, config.optimiser == "amsgrad"
    match config.optimiser:
        case "adam" | "amsgrad":
            fused = True if is_fused else None
            return torch.optim.Adam(groups, rate, amsgrad=is_amsgrad, fused=fused)
        case "adamw":
            return torch.optim.AdamW(groups, rate)
        case "adagrad":
            return torch.optim.Adagrad(groups, rate, lr_decay=config.rate_decay)
        case _:
            return torch.optim.SGD(groups, rate)
