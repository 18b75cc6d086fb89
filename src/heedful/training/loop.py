"""The one loop: it trains what a task brings, one model or many side by side."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.runs.atomic import plain, write_text
from heedful.runs.progress import Ticker, ticking
from heedful.runs.randomness import seeded
from heedful.runs.steps import fingerprint
from heedful.training.checkpoints import (
    CHECKPOINT,
    Progress,
    Standing,
    load_checkpoint,
    save_checkpoint,
)
from heedful.training.config import TrainConfig
from heedful.training.refusals import refuse_diverged

CHEAP = 0.03
"""Seconds that a checkpoint may take at the end of every epoch."""
WRITING = 20
"""Any other checkpoint takes at most one in so many seconds of training."""


@dataclass(frozen=True)
class Moment:
    """What an observer sees at an evaluation."""

    step: int
    epoch: float
    model: Any
    """What is being trained: a model, or a stack of them."""
    corpus: Any
    """What it is trained on."""
    device: torch.device | str


Observer = Callable[[Moment], None]
"""Called at every evaluation; training knows nothing of what it does."""


@dataclass(frozen=True)
class History:
    """What training left behind beside the weights."""

    entries: tuple[dict[str, Any], ...]
    """One per evaluation: step, epoch, training loss, dev metrics, learning rate."""
    best: float
    """The dev metric of the kept weights, higher = better; nan where dev was not evaluated."""
    best_step: int


class Task(Protocol):
    """What is trained, and what for: the batches, losses and evaluation of one or many models."""

    model: Any
    """A module, or a stack with the `state_dict`, `load_state_dict` and `parameters` of one."""
    corpus: Any
    config: TrainConfig
    optimiser: torch.optim.Optimizer
    count: int
    """How many models there are."""

    @property
    def device(self) -> torch.device | str:
        """Where they are."""

    @property
    def generators(self) -> Sequence[torch.Generator]:
        """What models draw from, where they do not draw from the global generator."""

    def batches(self, epoch: int) -> Iterable[tuple[int, Any]]:
        """The batches of an epoch, and how many documents a model reads in each."""

    def learn(self, batch: Any, epoch: int) -> Float[Tensor, " model"]:
        """Leaves the gradient of a batch, clipped, at the weights; tells each model's loss."""

    def evaluate(self) -> Sequence[Any]:
        """Each model's dev metrics: a dataclass with `chosen`, the one to select by."""


def train(
    task: Task,
    described: Mapping[str, Any],
    *,
    seed: int,
    steps: int | None = None,
    is_judged: bool = True,
    loss_over: Literal["epoch", "evaluation"] = "epoch",
    observers: Sequence[Observer] = (),
    folder: Path | None = None,
    show: bool = False,
) -> list[History]:
    """Trains the models in place; where dev judges, each is left with its best weights.

    With `steps` as many updates are made, however many epochs they take, and the models are
    evaluated at `config.evaluate_at` alone; else after every epoch too. The loss that is told then
    is the mean since the epoch began, or since the last evaluation.

    With a folder a checkpoint is kept there, and of a single model `metrics.jsonl`: the same call
    after a kill, known by what is `described`, goes on from it and ends with the same numbers.
    """
    run = _Run(task, fingerprint(dict(described)), steps, is_judged, loss_over, observers, folder)
    title = "training" if task.count == 1 else f"training {task.count} models"
    total, unit = len(task.corpus.splits["train"]) * task.config.epochs, "documents"
    if steps is not None:
        total, unit = steps, "updates"
    with seeded(seed), ticking(title, total, unit, show=show) as ticker:
        run.resume(ticker)
        while not run.is_over:
            run.epoch(ticker)
    if is_judged:
        task.model.load_state_dict(run.best)
    return [
        History(tuple(one.history), float("nan") if one.best is None else one.best, one.best_step)
        for one in run.done.models
    ]


class _Run:
    """The state of a training between two steps."""

    def __init__(
        self,
        task: Task,
        mark: str,
        steps: int | None,
        is_judged: bool,
        loss_over: str,
        observers: Sequence[Observer],
        folder: Path | None,
    ) -> None:
        self.task, self.config, self.mark, self.steps = task, task.config, mark, steps
        self.is_judged, self.loss_over = is_judged, loss_over
        self.observers, self.folder = observers, folder
        self.size = len(task.corpus.splits["train"])
        standings = [Standing() for _ in range(task.count)]
        self.done = Progress(learning_rate=self.config.learning_rate, models=standings)
        self.best = _copied(task.model) if is_judged else {}
        self.loss = torch.zeros(task.count, dtype=torch.float64, device=task.device)
        self.saved, self.saving = time.monotonic(), 0.0

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to learn."""
        done = self.done
        if self.steps is not None:
            return done.step >= self.steps
        return done.epoch >= self.config.epochs or all(one.is_done for one in done.models)

    def resume(self, ticker: Ticker) -> None:
        """Goes on from the checkpoint where there is one, with the evaluation that is due."""
        task, path = self.task, None if self.folder is None else self.folder / CHECKPOINT
        found = None if path is None else load_checkpoint(path, task, self.mark)
        if found is not None:
            self.done, best = found
            self.best = {name: value.to(task.device) for name, value in best.items()}
            self.loss += torch.tensor(self.done.loss, dtype=torch.float64, device=task.device)
            self._set_rate()
            # After the last step no epoch is left at whose end the weights are looked at.
            refuse_diverged(task.model.parameters(), self.done.epoch)
        ticker.skip(self.done.epoch * self.size if self.steps is None else self.done.step)
        if 0 in self.config.evaluate_at and not self.done.step:
            self.done.due = 0.0
        self._evaluate_due()

    def epoch(self, ticker: Ticker) -> None:
        """What is left of one pass over the training documents, then an evaluation."""
        done = self.done
        taken = 0
        for index, (documents, batch) in enumerate(self.task.batches(done.epoch)):
            taken += documents
            if index < done.batch:
                continue
            if self.steps is not None and done.step >= self.steps:
                break
            self._ramp(done.epoch + (taken - documents / 2) / self.size)
            self._update(batch)
            done.batch, done.step = index + 1, done.step + 1
            if done.step in self.config.evaluate_at:
                done.due = done.epoch + taken / self.size
            self._save_in_time()
            self._evaluate_due()
            ticker.advance(documents if self.steps is None else 1)
        refuse_diverged(self.task.model.parameters(), done.epoch)
        if self.steps is None:
            ticker.advance(0, self._evaluate(done.epoch + 1.0))
        for one in done.models:
            one.is_done = 0 < self.config.patience <= one.without_gain
        done.epoch, done.batch = done.epoch + 1, 0
        if self.loss_over == "epoch":
            self._forget_loss()
        # Many short epochs of a large model would mostly write: then some go without a checkpoint,
        # and where steps are counted epochs mean nothing, so that it goes by the clock alone.
        if self.steps is None and (self.saving < CHEAP or self._is_time(WRITING * self.saving)):
            self._save()

    def _update(self, batch: Any) -> None:
        """One step of the optimiser."""
        self.task.optimiser.zero_grad(set_to_none=True)
        losses = self.task.learn(batch, self.done.epoch)
        self.task.optimiser.step()
        self.loss += losses  # a tensor: reading it here would stall a GPU
        self.done.summed += 1

    def _evaluate_due(self) -> None:
        """Evaluates where that is due; a checkpoint written before knows of it."""
        if self.done.due is not None:
            self._evaluate(self.done.due)
            self.done.due = None

    def _evaluate(self, epoch: float) -> str:
        done, task = self.done, self.task
        losses = (self.loss / max(done.summed, 1)).tolist()
        said, metrics = self._judged() if self.is_judged else ("", [{}] * task.count)
        each = zip(done.models, losses, metrics, self._rates(), strict=True)
        for one, loss, found, rate in each:
            if not one.is_done:
                entry = {"step": done.step, "epoch": round(epoch, 4), "loss": loss}
                one.history.append(entry | found | {"learning_rate": rate})
        if self.loss_over == "evaluation":
            self._forget_loss()
        if self.folder is not None and task.count == 1:
            lines = "".join(json.dumps(line) + "\n" for line in done.models[0].history)
            write_text(self.folder / "metrics.jsonl", lines)
        moment = Moment(done.step, epoch, task.model, task.corpus, task.device)
        for observer in self.observers:
            observer(moment)
        return said

    def _judged(self) -> tuple[str, list[dict[str, Any]]]:
        """Dev metrics as a sentence and as entries; the best weights so far of each model stay."""
        done, select = self.done, self.config.select
        found = self.task.evaluate()
        values = [scores.chosen(select) for scores in found]
        gained = []
        for row, (one, value) in enumerate(zip(done.models, values, strict=True)):
            if one.is_done:
                continue
            if one.best is None or value > one.best:
                one.best, one.best_step, one.without_gain = value, done.step, 0
                gained.append(row)
            else:
                one.without_gain += 1
                if self.config.halve_on_plateau:
                    one.halvings += one.without_gain % self.config.halve_after == 0
        self._keep(gained)
        self._set_rate()
        metrics = [
            {f"dev_{name}": plain(number) for name, number in asdict(scores).items()}
            for scores in found
        ]
        return f"dev {select} {abs(values[0]):.3f}" if len(found) == 1 else "", metrics

    def _keep(self, gained: list[int]) -> None:
        """Copies the weights of the models that gained."""
        if len(gained) == self.task.count:
            self.best = _copied(self.task.model)
        elif gained:
            rows = torch.tensor(gained, device=self.task.device)
            for name, weight in self.task.model.state_dict().items():
                self.best[name][rows] = weight.detach()[rows]

    def _forget_loss(self) -> None:
        self.loss.zero_()
        self.done.summed = 0

    def _rates(self) -> list[float]:
        """The rate that each model learns with now."""
        rate = self.done.learning_rate * self.done.ramp
        return [rate / 2**one.halvings for one in self.done.models]

    def _set_rate(self) -> None:
        rates = self._rates()
        for group in self.task.optimiser.param_groups:
            group["lr"] = rates[0]
            if "rates" in group:  # of an optimiser of several models (`EachAdam`)
                group["rates"] = rates

    def _ramp(self, epoch: float) -> None:
        """Sets the rate of a step by where its middle lies: never 0, also in the first and last."""
        if not (self.config.warm_up or self.config.linear_decay):
            return
        if self.steps is None:
            progress = epoch / self.config.epochs
        else:
            progress = (self.done.step + 0.5) / self.steps
        self.done.ramp = self.config.rate(progress)
        self._set_rate()

    def _save_in_time(self) -> None:
        seconds = self.config.checkpoint_seconds
        if not seconds or self._is_time(max(seconds, WRITING * self.saving)):
            self._save()

    def _is_time(self, seconds: float) -> bool:
        """Whether the last checkpoint is so old."""
        return time.monotonic() - self.saved >= seconds

    def _save(self) -> None:
        if self.folder is None:
            return
        started = time.monotonic()
        self.done.loss = self.loss.tolist()
        save_checkpoint(self.folder / CHECKPOINT, self.done, self.task, self.best, self.mark)
        self.saved = time.monotonic()
        self.saving = self.saved - started


def _copied(model: Any) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}
