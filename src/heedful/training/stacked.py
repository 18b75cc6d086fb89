"""Training many models at once: the same loop as `fit`, over a stack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from heedful.corpora.batches import Batch, batches
from heedful.corpora.encoded import Encoded, EncodedCorpus
from heedful.errors import InputError
from heedful.models.classifier import AttentionClassifier
from heedful.models.classifier_stack import Stack
from heedful.models.recipe import Penalties
from heedful.runs.atomic import plain
from heedful.runs.progress import ticking
from heedful.runs.randomness import numpy_generator
from heedful.statistics.scores import classification_scores
from heedful.training import objectives
from heedful.training.config import TrainConfig, refuse_unstacked
from heedful.training.evaluation import EVALUATION_TOKENS, Metrics
from heedful.training.loop import History, optimiser_for
from heedful.training.refusals import refuse_diverged, refuse_empty
from heedful.training.rows import WordRows, fits

WORDS = "embedding.weight"


@dataclass(frozen=True)
class StackMoment:
    """What an observer of stacked training sees; `stack.models` are the models as they are now."""

    step: int
    epoch: float
    stack: Stack
    corpus: EncodedCorpus
    device: torch.device | str


StackObserver = Callable[[StackMoment], None]


def fit_stacked(
    models: Sequence[AttentionClassifier],
    corpus: EncodedCorpus,
    config: TrainConfig = TrainConfig(),
    penalties: Penalties | Sequence[Penalties] = Penalties(),
    *,
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
    observers: Sequence[StackObserver] = (),
    show: bool = False,
) -> list[History]:
    """Trains all models in place, each exactly as `fit` would train it alone with its seed.

    They share the batches (`config.order_seed`), and models of one seed share what dropout draws,
    as they would one after the other. The models may differ in λ, random start and strength of the
    V·W penalty, and in nothing else. On CUDA dropout draws are others than those of `fit`.
    """
    given = [penalties] * len(models) if isinstance(penalties, Penalties) else list(penalties)
    _check(models, corpus, config, given, seeds)
    run = _StackRun(Stack(models, device), corpus, config, given, list(seeds), device, observers)
    total = len(corpus.splits["train"]) * config.epochs
    with ticking(f"training {len(models)} models", total, show=show) as ticker:
        for epoch in range(config.epochs):
            run.epoch(epoch)
            ticker.advance(len(corpus.splits["train"]))
            if all(run.stopped):
                break
    run.stack.load(run.best)
    run.stack.release()
    return [
        History(tuple(run.history[row]), run.best_value[row], run.best_step[row])
        for row in range(len(models))
    ]


class _StackRun:
    """The state of stacked training between two epochs."""

    def __init__(
        self,
        stack: Stack,
        corpus: EncodedCorpus,
        config: TrainConfig,
        penalties: Sequence[Penalties],
        seeds: list[int],
        device: torch.device | str,
        observers: Sequence[StackObserver],
    ) -> None:
        self.stack, self.corpus, self.config, self.device = stack, corpus, config, device
        self.observers = observers
        self.rows = self._rows()
        self.optimiser = optimiser_for(
            [(n, w) for n, w in stack.named_parameters() if self.rows is None or n != WORDS], config
        )
        strengths = [penalty.alignment for penalty in penalties]
        self.alignment = torch.tensor(strengths, device=device, dtype=stack.scale.dtype)
        self.is_aligned = any(strengths)
        distinct = list(dict.fromkeys(seeds))
        self.generators = [torch.Generator(device).manual_seed(seed) for seed in distinct]
        self.seed_of_model = torch.tensor([distinct.index(s) for s in seeds], device=device)
        self.order = seeds[0] if config.order_seed is None else config.order_seed
        self.step = 0
        self.loss = torch.zeros(len(stack), dtype=torch.float64, device=device)
        self.best = {name: weight.detach().clone() for name, weight in stack.weights.items()}
        self.best_value = [-float("inf")] * len(stack)
        self.best_step = [0] * len(stack)
        self.without_gain = [0] * len(stack)
        self.stopped = [False] * len(stack)
        self.history: list[list[dict[str, Any]]] = [[] for _ in range(len(stack))]

    def epoch(self, epoch: int) -> None:
        """One pass over the training documents, then an evaluation."""
        train = self.corpus.splits["train"]
        order = numpy_generator(self.order, "epoch", epoch)
        taken = 0
        for batch in batches(train, self.config.batch_size, order, self.config.max_batch_tokens):
            here = batch.to(self.device) if self.rows is None else self.rows.lend(batch)
            self._learn(self._batch_losses(here))
            self.step, taken = self.step + 1, taken + 1
            if self.step in self.config.evaluate_at:
                self._evaluate(epoch + taken * len(batch) / len(train), taken)
        refuse_diverged(self.stack.weights.values(), epoch)
        self._evaluate(epoch + 1.0, taken)
        self.loss.zero_()

    def _batch_losses(self, batch: Batch) -> Tensor:
        """Each model's loss on a batch."""
        dropped = self.stack.draw(batch, self.generators, self.seed_of_model)
        vectors = None if self.rows is None else self.rows.rows
        return self._losses(self.stack.forward(batch, dropped, vectors).logits, batch.labels)

    def _rows(self) -> WordRows | None:
        """Word vectors updated row by row, where the training allows it."""
        table = self.stack.weights[WORDS]
        return WordRows(table, self.config) if fits(self.config) and table.requires_grad else None

    def _losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Each model's own loss: its gradient reaches its own parameters alone."""
        count, batch, classes = logits.shape
        targets = labels.expand(count, -1).reshape(-1)
        losses = functional.cross_entropy(logits.reshape(-1, classes), targets, reduction="none")
        found = losses.view(count, batch).mean(1)
        if self.is_aligned:
            found = found + self.alignment * self.stack.alignment()
        return found

    def _learn(self, losses: Tensor) -> None:
        self.optimiser.zero_grad(set_to_none=True)
        losses.sum().backward()  # type: ignore[no-untyped-call]
        learnt = [*self.stack.weights.values(), *([] if self.rows is None else [self.rows.rows])]
        clip_each([weight.grad for weight in learnt if weight.grad is not None], self.config)
        self.optimiser.step()
        if self.rows is not None:
            self.rows.update()
        self.loss += losses.detach().double()

    def _evaluate(self, epoch: float, taken: int) -> None:
        config = self.config
        metrics = evaluate_stack(self.stack, self.corpus.splits["dev"], self.device)
        losses = (self.loss / max(taken, 1)).tolist()
        gained = []
        for row, found in enumerate(metrics):
            if self.stopped[row]:
                continue
            value = found.chosen(config.select)
            if value > self.best_value[row]:
                self.best_value[row], self.best_step[row] = value, self.step
                self.without_gain[row] = 0
                gained.append(row)
            else:
                self.without_gain[row] += 1
                self.stopped[row] = 0 < config.patience <= self.without_gain[row]
            entry: dict[str, Any] = {"step": self.step, "epoch": round(epoch, 4)}
            entry |= {"loss": losses[row]}
            entry |= {f"dev_{name}": plain(number) for name, number in asdict(found).items()}
            self.history[row].append(entry | {"learning_rate": config.learning_rate})
        if gained:
            rows = torch.tensor(gained, device=self.device)
            for name, weight in self.stack.weights.items():
                self.best[name][rows] = weight.detach()[rows]
        moment = StackMoment(self.step, epoch, self.stack, self.corpus, self.device)
        for observer in self.observers:
            observer(moment)


def clip_each(gradients: Sequence[Tensor], config: TrainConfig) -> None:
    """Clips stacked gradients in place, each model's as if it were alone."""
    if config.clip_value:
        for gradient in gradients:
            gradient.clamp_(-config.clip_value, config.clip_value)
    if config.clip_norm:
        squares = torch.stack([g.flatten(1).square().sum(1) for g in gradients]).sum(0)
        # As torch's clip_grad_norm_ does for one model.
        factor = (config.clip_norm / (squares.sqrt() + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient *= factor.view(-1, *[1] * (gradient.dim() - 1))


def evaluate_stack(
    stack: Stack, encoded: Encoded, device: torch.device | str = "cpu"
) -> list[Metrics]:
    """Loss, accuracy and F1 of every model over a split, without dropout."""
    total = np.zeros(len(stack))
    decided, gold = [], []
    with torch.no_grad():
        for batch in batches(encoded, 256, max_tokens=EVALUATION_TOKENS):
            here = batch.to(device)
            labelled = here.labels >= 0
            logits = stack.forward(here).logits[:, labelled].double()
            labels = here.labels[labelled]
            right = labels.expand(len(stack), -1)[..., None]
            lost = logits.logsumexp(-1) - logits.gather(-1, right)[..., 0]
            total += lost.sum(1).cpu().numpy()
            decided.append(logits.argmax(-1).cpu().numpy())
            gold.append(labels.cpu().numpy())
    predicted, seen = np.concatenate(decided, 1), np.concatenate(gold)
    scores = classification_scores(predicted, seen, len(stack.models[0].classes))
    return [
        Metrics(
            loss=float(total[row] / max(len(seen), 1)),
            accuracy=float(scores.accuracy[0, row]),
            macro_f1=float(scores.macro_f1[0, row]),
            f1=tuple(float(value) for value in scores.f1[0, row]),
        )
        for row in range(len(stack))
    ]


def _check(
    models: Sequence[AttentionClassifier],
    corpus: EncodedCorpus,
    config: TrainConfig,
    penalties: Sequence[Penalties],
    seeds: Sequence[int],
) -> None:
    refuse_empty(corpus)
    if len(seeds) != len(models) or len(penalties) != len(models):
        raise InputError(
            f"one seed and one set of penalties for each of {len(models)} models, got "
            f"{len(seeds)} and {len(penalties)}."
        )
    if config.order_seed is None and len(set(seeds)) > 1:
        raise InputError("stacked models share their batches: set order_seed in the training.")
    refuse_unstacked(config)
    for model, penalty in zip(models, penalties, strict=True):
        if replace(penalty, alignment=0.0) != Penalties():
            raise InputError("of the penalties only V·W can be stacked; train one by one.")
        objectives.check(model.config, penalty)
