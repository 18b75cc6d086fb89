"""Training many classifiers at once on the same batches, each as it would be trained alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.corpora.batches import Batch, batches
from heedful.corpora.encoded import Encoded, EncodedCorpus
from heedful.errors import InputError
from heedful.models.classifier import AttentionClassifier
from heedful.models.classifier_stack import ClassifierStack, StackPass, each_loss
from heedful.models.recipe import Penalties
from heedful.training import objectives
from heedful.training.config import TrainConfig, refuse_unstacked
from heedful.training.evaluation import EVALUATION_TOKENS, Metrics, metrics_of
from heedful.training.loop import History, Observer, train
from heedful.training.optimisers import clip_each, optimiser_for
from heedful.training.refusals import refuse_empty
from heedful.training.rows import WordRows, fits

WORDS = "embedding.weight"


def fit_stacked(
    models: Sequence[AttentionClassifier],
    corpus: EncodedCorpus,
    config: TrainConfig = TrainConfig(),
    penalties: Penalties | Sequence[Penalties] = Penalties(),
    *,
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
    observers: Sequence[Observer] = (),
    show: bool = False,
) -> list[History]:
    """Trains all models in place, each exactly as `fit` would train it alone with its seed.

    They share the batches (`config.order_seed`) and the words that are hidden from them; models of
    one seed share what dropout draws, as they would one after the other. The models may differ in
    λ, random start and strength of the penalties, and in nothing else. On CUDA dropout draws are
    others than those of `fit`.
    """
    given = [penalties] * len(models) if isinstance(penalties, Penalties) else list(penalties)
    _check(models, corpus, config, given, seeds)
    task = StackedTask(ClassifierStack(models, device), corpus, config, given, seeds, device)
    return train_stacked(task, observers=observers, show=show)


def train_stacked(
    task: StackedTask, *, observers: Sequence[Observer] = (), show: bool = False
) -> list[History]:
    """Trains the models of a task and gives each its weights back; hidden words are the order's."""
    given = task.config.order_seed
    seed = task.seeds[0] if given is None else given
    histories = train(task, {}, seed=seed, observers=observers, show=show)
    task.model.release()
    return histories


def each_cross_entropy(passed: StackPass, batch: Batch) -> Float[Tensor, "model row"]:
    """Each model's loss on each document: its gradient reaches its own parameters alone."""
    return each_loss(passed.logits, batch.labels.expand(len(passed.logits), -1))


class Seen(NamedTuple):
    """The documents as each model sees them, and what its penalties add to its loss."""

    passed: StackPass
    added: Float[Tensor, "model"]


class StackedTask:
    """Stacked classifiers on batches that they share, each with its own penalties."""

    def __init__(
        self,
        stack: ClassifierStack,
        corpus: EncodedCorpus,
        config: TrainConfig,
        penalties: Sequence[Penalties],
        seeds: Sequence[int],
        device: torch.device | str,
        objective: Callable[[StackPass, Batch], Float[Tensor, "model row"]] = each_cross_entropy,
        evaluation: Callable[[ClassifierStack, Encoded, torch.device | str], Sequence[Any]]
        | None = None,
    ) -> None:
        self.model, self.corpus, self.config, self.seeds = stack, corpus, config, seeds
        self.device, self.count = device, len(stack)
        self.objective, self.evaluation = objective, evaluation or evaluate_stack
        width = stack.config.embedding_dim
        self.alignment = self._strengths([p.alignment for p in penalties])
        self.tying = self._strengths(
            [p.tying * (width if p.tying_over == "sum" else 1) for p in penalties]
        )
        self.masked = self._strengths([p.masked_words for p in penalties])
        self.per_word = torch.tensor([p.masked_over == "words" for p in penalties], device=device)
        distinct = list(dict.fromkeys(seeds))
        self.generators = [torch.Generator(device).manual_seed(seed) for seed in distinct]
        self.seed_of_model = torch.tensor([distinct.index(s) for s in seeds], device=device)
        self.rows = rows = self._rows()
        self.optimiser = optimiser_for(
            [(n, w) for n, w in stack.named_parameters() if rows is None or n != WORDS], config
        )
        if rows is not None:  # they are lent to a step, and no parameters of the optimiser's
            self.optimiser.register_step_post_hook(lambda *_: rows.update())

    def batches(self, epoch: int) -> Iterable[tuple[int, Batch]]:
        """The training documents in batches."""
        config = self.config
        order = config.order(self.seeds[0], epoch)
        train = self.corpus.splits["train"]
        for batch in batches(train, config.batch_size, order, config.max_batch_tokens):
            yield len(batch), batch

    def learn(self, batch: Batch, epoch: int) -> Float[Tensor, "model"]:
        """The gradient of every model's own loss."""
        here = batch.to(self.device) if self.rows is None else self.rows.lend(batch)
        seen = self.seen(here)
        losses = self.objective(seen.passed, here).mean(1) + seen.added
        losses.sum().backward()  # type: ignore[no-untyped-call]
        rows = [] if self.rows is None else [self.rows.rows]
        clip_each([*self.model.parameters(), *rows], self.config)
        return losses.detach().double()

    def evaluate(self) -> Sequence[Any]:
        """Every model's dev metrics."""
        return self.evaluation(self.model, self.corpus.splits["dev"], self.device)

    def seen(self, batch: Batch) -> Seen:
        """The documents with dropout, and what each model's penalties add.

        With masked words the clean and the masked documents are rows of one call.
        """
        ids, mask, count = batch.ids, batch.mask, len(batch)
        is_masked = self.masked is not None
        if is_masked:
            words = self.model.weights[WORDS].shape[1]
            corrupted, chosen = objectives.corrupt(ids, mask, words)
            ids, mask = torch.cat([ids, corrupted]), torch.cat([mask, mask])
        dropped = self.model.draw(batch, self.generators, self.seed_of_model)
        vectors = None if self.rows is None else self.rows.rows
        whole = self.model.passed(ids, mask, dropped, vectors)
        passed = StackPass(*(part[:, :count] for part in whole)) if is_masked else whole
        added = torch.zeros_like(self.model.scale)
        if self.alignment is not None:
            added = added + self.alignment * self.model.alignment()
        if self.tying is not None:
            apart = (passed.states - passed.inputs).square().mean(-1) * batch.mask
            added = added + self.tying * apart.sum((1, 2)) / batch.mask.sum()
        if self.masked is not None:
            # The host waits once, to learn how many words are hidden; each of them is one place,
            # so that its gradient is put there without a sort.
            place = chosen.flatten().nonzero()[:, 0]
            hidden = whole.states[:, count:].flatten(1, 2).index_select(1, place)
            gold = batch.ids.flatten().index_select(0, place)
            losses = objectives.guessed(hidden, self.model.weights[WORDS], gold)
            below = torch.where(self.per_word, max(len(gold), 1), count)
            added = added + self.masked * losses.sum(1) / below
        return Seen(passed, added)

    def _strengths(self, given: list[float]) -> Float[Tensor, "model"] | None:
        """The strengths of a penalty; none where no model has it."""
        scale = self.model.scale
        return torch.tensor(given, device=scale.device, dtype=scale.dtype) if any(given) else None

    def _rows(self) -> WordRows | None:
        """Word vectors updated row by row, where the training allows it; masked words ask for
        all of them."""
        table = self.model.weights[WORDS]
        is_fit = fits(self.config) and table.requires_grad and self.masked is None
        return WordRows(table, self.config) if is_fit else None


def evaluate_stack(
    stack: ClassifierStack, encoded: Encoded, device: torch.device | str = "cpu"
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
    return metrics_of(total, predicted, seen, len(stack.models[0].classes))


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
        drops_out = model.config.dropout or model.config.head_dropout
        if drops_out and replace(penalty, alignment=0.0) != Penalties():
            raise InputError(
                "with dropout only V·W of the penalties can be stacked; train one by one."
            )
        objectives.check(model.config, penalty)
