"""Training many classifiers at once, each as it would be trained alone.

Models share their batches (`order_seed`), or each seed has its own (`length_seed`): texts of about
the same length meet at the same time, and the host waits for the card once a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.corpora.batches import Batch, batches, collate, moved
from heedful.corpora.encoded import Encoded, EncodedCorpus
from heedful.errors import InputError
from heedful.models.classifier import AttentionClassifier
from heedful.models.classifier_stack import ClassifierStack, StackPass, each_loss
from heedful.models.recipe import Penalties
from heedful.statistics.divergence import entropy
from heedful.training import objectives
from heedful.training.config import TrainConfig, refuse_unstacked
from heedful.training.evaluation import EVALUATION_TOKENS, AttentiveMetrics, StackTally
from heedful.training.loop import History, Observer, train
from heedful.training.optimisers import clip_each, optimiser_for
from heedful.training.refusals import refuse_empty
from heedful.training.resident import OwnBatch, ResidentDocuments

EPSILON = 1e-10
"""Added to Adagrad's root, as the library does."""


def keeps_other_rows(config: TrainConfig) -> bool:
    """Whether a row without gradient stays as it is under this training."""
    is_decayed = config.weight_decay > 0 and config.decay not in ("encoder", "additive map")
    return config.optimiser in ("adagrad", "sgd") and not is_decayed


class WordRows:
    """The word vectors that a step reads, and their update: what the whole table would become.

    Adagrad without decay and plain SGD leave a row without gradient as it was, so a step reads and
    writes the vectors of the batch's words alone (docs/studies/polarity.md, "Shortcuts"). The
    models of a stack share their batches, so these are the same rows in each.
    """

    def __init__(self, table: nn.Parameter, config: TrainConfig) -> None:
        self.table, self.config = table, config
        self.squares = torch.zeros_like(table) if config.optimiser == "adagrad" else None
        self.step = 0
        self.words: Int[Tensor, " row"] = torch.zeros(0, dtype=torch.long)
        self.rows: Float[Tensor, "model row dim"] = table[:, :0]

    def lend(self, batch: Batch) -> Batch:
        """The batch, its words numbered by their place in `rows`; both on the table's device.

        The batch comes from the host: counting its words there keeps a GPU from waiting.
        """
        is_read = torch.zeros(self.table.shape[1], dtype=torch.bool)
        is_read[batch.ids] = True
        place = is_read.cumsum(0) - 1
        device = self.table.device
        self.words = moved(is_read.nonzero()[:, 0], device)
        self.rows = self.table.detach()[:, self.words].requires_grad_()
        return replace(batch, ids=place[batch.ids]).to(device)

    def update(self) -> None:
        """One step of the optimiser on the rows lent, from their gradient."""
        gradient = self.rows.grad
        if gradient is None:
            return
        with torch.no_grad():
            rate = self.config.learning_rate / (1 + self.step * self.config.rate_decay)
            self.step += 1
            rows = self.rows.detach()
            if self.squares is None:
                rows = rows.add(gradient, alpha=-rate)
            else:
                squares = self.squares[:, self.words].addcmul_(gradient, gradient)
                self.squares.index_copy_(1, self.words, squares)
                rows = rows.addcdiv(gradient, squares.sqrt_().add_(EPSILON), value=-rate)
            self.table.index_copy_(1, self.words, rows)


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

    Models of one seed share the batches, the words that are hidden from them and what dropout
    draws, as they would one after the other; with `config.order_seed` all share the first two. The
    models may differ in λ, random start and strength of the penalties, and in nothing else. On CUDA
    dropout draws are others than those of `fit`, and so are hidden words where seeds differ.
    """
    given = [penalties] * len(models) if isinstance(penalties, Penalties) else list(penalties)
    _check(models, corpus, config, given, seeds)
    task = StackedTask(ClassifierStack(models, device), corpus, config, given, seeds, device)
    return train_stacked(task, observers=observers, show=show)


def has_own_batches(config: TrainConfig, seeds: Sequence[int]) -> bool:
    """Whether every seed of a stack reads the documents in an order of its own."""
    is_ranked = config.order_seed is None and config.length_seed is not None
    return is_ranked and len(set(seeds)) > 1


def train_stacked(
    task: StackedTask, *, observers: Sequence[Observer] = (), show: bool = False
) -> list[History]:
    """Trains the models of a task and gives each its weights back; hidden words are the order's, or
    else drawn from the first seed."""
    given = task.config.order_seed
    seed = task.seeds[0] if given is None else given
    histories = train(task, {}, seed=seed, observers=observers, show=show)
    task.model.release()
    return histories


def each_cross_entropy(passed: StackPass, batch: Batch | OwnBatch) -> Float[Tensor, "model row"]:
    """Each model's loss on each document: its gradient reaches its own parameters alone."""
    return each_loss(passed.logits, batch.labels.expand(len(passed.logits), -1))


class Seen(NamedTuple):
    """The documents as each model sees them, and what its penalties add to its loss."""

    passed: StackPass
    added: Float[Tensor, " model"]


class StackedTask:
    """Stacked classifiers on batches that they or those of a seed share, with own penalties."""

    def __init__(
        self,
        stack: ClassifierStack,
        corpus: EncodedCorpus,
        config: TrainConfig,
        penalties: Sequence[Penalties],
        seeds: Sequence[int],
        device: torch.device | str,
        objective: Callable[[StackPass, Any], Float[Tensor, "model row"]] = each_cross_entropy,
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
        self.distinct = distinct = list(dict.fromkeys(seeds))
        self.generators = [torch.Generator(device).manual_seed(seed) for seed in distinct]
        self.seed_of_model = torch.tensor([distinct.index(s) for s in seeds], device=device)
        self.documents = None
        if has_own_batches(config, seeds):
            self.documents = ResidentDocuments.of(corpus.splits["train"], device)
        self.rows = rows = self._rows()
        self.optimiser = optimiser_for(
            [(n, w) for n, w in stack.named_parameters() if rows is None or n != WORDS], config
        )
        if rows is not None:  # they are lent to a step, and no parameters of the optimiser's
            self.optimiser.register_step_post_hook(lambda *_: rows.update())

    def batches(self, epoch: int) -> Iterable[tuple[int, Any]]:
        """The training documents in batches: one for all models, or the rows of every seed's."""
        config, train = self.config, self.corpus.splits["train"]
        found = [config.groups(train, seed, epoch) for seed in self._orders]
        if self.documents is None:
            yield from ((len(rows), collate(train, rows)) for rows in found[0])
            return
        for parts in zip(*found, strict=True):
            rows = np.stack(parts)
            yield rows.shape[1], (rows, int(train.lengths[rows].max()))

    @property
    def _orders(self) -> Sequence[int]:
        """The seeds that have an order of their own."""
        return self.distinct if self.documents is not None else self.distinct[:1]

    def learn(self, batch: Any, epoch: int) -> Float[Tensor, " model"]:
        """The gradient of every model's own loss."""
        if self.documents is not None:
            rows, longest = batch
            here: Any = self.documents.batch(moved(torch.from_numpy(rows), self.device), longest)
        else:
            here = batch.to(self.device) if self.rows is None else self.rows.lend(batch)
        seen = self.seen(here)
        losses = self.objective(seen.passed, self._of_models(here)).mean(1) + seen.added
        losses.sum().backward()  # type: ignore[no-untyped-call]
        lent = [] if self.rows is None else [self.rows.rows]
        clip_each([*self.model.parameters(), *lent], self.config)
        return losses.detach().double()

    def _of_models(self, batch: Batch | OwnBatch) -> Batch | OwnBatch:
        """Every seed's batch given to its models; one that all share as it is."""
        if isinstance(batch, Batch):
            return batch
        return OwnBatch(*(part[self.seed_of_model] for part in batch))

    def evaluate(self) -> Sequence[Any]:
        """Every model's dev metrics."""
        return self.evaluation(self.model, self.corpus.splits["dev"], self.device)

    def seen(self, batch: Batch | OwnBatch) -> Seen:
        """The documents with dropout, and what each model's penalties add.

        With masked words the clean and the masked documents are rows of one call.
        """
        ids, mask, count = batch.ids, batch.mask, batch.ids.shape[-2]
        is_masked = self.masked is not None
        if is_masked:
            words = self.model.weights[WORDS].shape[1]
            corrupted, chosen = objectives.corrupt(ids, mask, words)
            ids, mask = torch.cat([ids, corrupted], -2), torch.cat([mask, mask], -2)
        if isinstance(batch, Batch):
            dropped = self.model.draw(batch, self.generators, self.seed_of_model)
        else:
            ids, mask, dropped = ids[self.seed_of_model], mask[self.seed_of_model], None
        vectors = None if self.rows is None else self.rows.rows
        whole = self.model.passed(ids, mask, dropped, vectors)
        passed = StackPass(*(part[:, :count] for part in whole)) if is_masked else whole
        added = torch.zeros_like(self.model.scale)
        if self.alignment is not None:
            added = added + self.alignment * self.model.alignment()
        if self.tying is not None:
            own = mask[..., :count, :]
            apart = (passed.states - passed.inputs).square().mean(-1) * own
            added = added + self.tying * apart.sum((1, 2)) / own.sum((-2, -1))
        if self.masked is not None:
            added = added + self.masked * self._guessed(whole.states[:, count:], batch.ids, chosen)
        return Seen(passed, added)

    def _guessed(
        self,
        states: Float[Tensor, "model batch token dim"],
        ids: Int[Tensor, "*seed batch token"],
        chosen: Bool[Tensor, "*seed batch token"],
    ) -> Float[Tensor, " model"]:
        """Each model's loss on the words hidden from it, divided as its penalty says.

        The host waits once, to learn how many words are hidden; each of them is one place, so that
        its gradient is put there without a sort. Where seeds hide words of their own, those that
        hide fewer than another have places left over, which count nothing.
        """
        flat, table = states.flatten(1, 2), self.model.weights[WORDS]
        if chosen.dim() == 2:
            place = chosen.flatten().nonzero()[:, 0]
            gold = ids.flatten().index_select(0, place)
            losses = objectives.guessed(flat.index_select(1, place), table, gold)
            hidden: Tensor = chosen.sum()
        else:
            every = chosen.flatten(1)
            hidden = every.sum(1)
            most = max(int(hidden.max()), 1)
            place = torch.argsort(every.int(), dim=1, descending=True, stable=True)[:, :most]
            gold = ids.flatten(1).gather(1, place)[self.seed_of_model]
            is_hidden = every.gather(1, place)[self.seed_of_model]
            place, hidden = place[self.seed_of_model], hidden[self.seed_of_model]
            picked = flat.gather(1, place[..., None].expand(-1, -1, flat.shape[-1]))
            losses = objectives.guessed(picked, table, gold) * is_hidden
        below = torch.where(self.per_word, hidden.clamp_min(1), ids.shape[-2])
        return losses.sum(1) / below

    def _strengths(self, given: list[float]) -> Float[Tensor, " model"] | None:
        """The strengths of a penalty; none where no model has it."""
        scale = self.model.scale
        return torch.tensor(given, device=scale.device, dtype=scale.dtype) if any(given) else None

    def _rows(self) -> WordRows | None:
        """Word vectors updated row by row, where the training allows it; masked words ask for
        all of them."""
        table = self.model.weights[WORDS]
        is_fit = keeps_other_rows(self.config) and table.requires_grad and self.masked is None
        return WordRows(table, self.config) if is_fit else None


def evaluate_stack(
    stack: ClassifierStack, encoded: Encoded, device: torch.device | str = "cpu"
) -> list[AttentiveMetrics]:
    """Loss, accuracy, F1 and entropy of every model over a split, without dropout."""
    tally = StackTally(len(stack), len(stack.models[0].classes), device)
    with torch.no_grad():
        for batch in batches(encoded, 256, max_tokens=EVALUATION_TOKENS):
            here = batch.to(device)
            passed = stack.forward(here)
            tally.add(passed.logits, here.labels)
            every = here.mask.expand_as(passed.scores)
            tally.watch(entropy(passed.scores.softmax(-1), every), here.mask.sum(-1))
    return tally.attentive()


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
    has_own = has_own_batches(config, seeds)
    if config.order_seed is None and len(set(seeds)) > 1 and not has_own:
        raise InputError(
            "stacked models share their batches or the order of lengths: set order_seed or "
            "length_seed in the training."
        )
    refuse_unstacked(replace(config, length_seed=None))
    for model, penalty in zip(models, penalties, strict=True):
        drops_out = model.config.dropout or model.config.head_dropout
        if drops_out and has_own:
            raise InputError("with dropout stacked models share their batches: set order_seed.")
        if drops_out and replace(penalty, alignment=0.0) != Penalties():
            raise InputError(
                "with dropout only V·W of the penalties can be stacked; train one by one."
            )
        objectives.check(model.config, penalty)
