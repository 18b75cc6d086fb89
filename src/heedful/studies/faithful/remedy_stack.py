"""Remedies trained side by side: a stack of models with joins, marks, layers and penalties.

As `fit_stacked`, for the models of the faithful study: seeds and strengths of one shape take hardly
longer together than one alone, because small models wait for launches and not for arithmetic.
Models of a stack share their batches and the words that are masked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.corpora.batches import Batch, batches
from heedful.corpora.encoded import EncodedCorpus
from heedful.errors import InputError, unknown
from heedful.models.classifier import AttentionClassifier
from heedful.models.classifier_stack import Dropped, Stack, StackPass, looked_up, refuse_unlike
from heedful.models.recipe import Penalties
from heedful.models.saved import build
from heedful.runs.randomness import seeded
from heedful.studies.faithful.drift import DOCUMENTS
from heedful.studies.faithful.imitation import (
    DIVERGENCES,
    Imitation,
    distance,
    refuse_strengths,
    remember,
)
from heedful.training import objectives
from heedful.training.config import TrainConfig, refuse_unstacked
from heedful.training.evaluation import EVALUATION_TOKENS
from heedful.training.stacked import StackMoment, _StackRun

ENCODERS = ("none", "lstm", "bilstm")
FREE = ("normal_query", "embedding_start", "head_start")
"""Fields of ModelConfig in which models of a stack may differ."""


class Seen(NamedTuple):
    """One forward pass of every model, with what penalties compare."""

    logits: Float[Tensor, "model row class"]
    values: Float[Tensor, "model row token dim"]
    scores: Float[Tensor, "model row token"]
    states: Float[Tensor, "model row token encoded"]
    inputs: Float[Tensor, "model row token input"]


class RemedyStack(Stack):
    """A stack whose models may have several layers, a join, marks and a query of the instance."""

    def forward(
        self, batch: Batch, dropped: Dropped | None = None, vectors: Tensor | None = None
    ) -> StackPass:
        """All models on the batch; there is no dropout in these models."""
        seen = self.seen(batch.ids, batch.mask)
        return StackPass(seen.logits, seen.values, seen.scores)

    def seen(self, ids: Int[Tensor, "row token"], mask: Bool[Tensor, "row token"]) -> Seen:
        """All models on some documents, with states and inputs."""
        inputs = looked_up(self.weights["embedding.weight"], ids)
        states = inputs if self.config.encoder == "none" else self._states(inputs, mask)
        values = states
        if self.config.join == "concat":
            values = torch.cat([states, inputs], -1)
        elif self.config.join == "residual":
            values = states + inputs
        scores = self._asked(values, mask) if self.config.instance_query else self._scores(values)
        scores = scores.masked_fill(~mask, -torch.inf)
        context = (scores.softmax(-1)[..., None, :] @ values)[..., 0, :]
        return Seen(self.head(context), values, scores, states, inputs)

    def _states(self, inputs: Tensor, mask: Tensor) -> Tensor:
        if not self.config.marks:
            return self._layers(inputs, mask, "level.encoder.cells")
        marks = self.weights["level.encoder.marks"][:, :, None, None]
        rows, last = len(mask), mask.sum(-1, keepdim=True) + 1
        start = marks[:, 0].expand(-1, rows, 1, -1)
        longer = torch.cat([start, inputs * mask[..., None], torch.zeros_like(start)], 2)
        position = torch.arange(longer.shape[2], device=mask.device)
        longer = torch.where((position == last)[..., None], marks[:, 1], longer)
        states = self._layers(longer, position <= last, "level.encoder.encoder.cells")
        return states[:, :, 1:-1] * mask[..., None]

    def _layers(self, inputs: Tensor, mask: Tensor, cells_at: str) -> Tensor:
        for layer in range(self.config.layers):
            inputs = self._recurrent(inputs, mask, cells_at, layer)
        return inputs

    def _asked(self, values: Tensor, mask: Tensor) -> Tensor:
        mean = (values * mask[..., None]).sum(2) / mask.sum(-1, keepdim=True)
        query = self._linear("level.attention.query", mean)
        return (values @ query[..., None])[..., 0] / self.scale[:, None, None]

    def _check(self) -> None:
        config = self.config
        unlike = (config.dropout, config.head_dropout, config.embedding_norm)
        if config.hierarchical or config.encoder not in ENCODERS or any(unlike):
            raise InputError(
                f"{config.encoder}+{config.attention} cannot be stacked; stacked remedies are "
                f"flat, without dropout, with one of {', '.join(ENCODERS)}."
            )
        refuse_unlike(self.models, FREE)


class _RemedyRun(_StackRun):
    """Stacked training with each model's own penalties."""

    stack: RemedyStack

    def __init__(
        self,
        models: Sequence[AttentionClassifier],
        corpus: EncodedCorpus,
        config: TrainConfig,
        penalties: Sequence[Penalties],
        seeds: Sequence[int],
        device: torch.device | str,
    ) -> None:
        stack = RemedyStack(models, device)
        self.drift: list[list[dict[str, Any]]] = [[] for _ in models]
        observers = [self._note_drift]
        super().__init__(stack, corpus, config, penalties, list(seeds), device, observers)
        width = stack.config.embedding_dim
        tying = [p.tying * (width if p.tying_over == "sum" else 1) for p in penalties]
        self.tying = torch.tensor(tying, device=device, dtype=stack.scale.dtype)
        masked = [p.masked_words for p in penalties]
        self.masked = torch.tensor(masked, device=device, dtype=stack.scale.dtype)
        self.per_word = torch.tensor([p.masked_over == "words" for p in penalties], device=device)
        self.is_tied, self.is_masked = any(tying), any(masked)

    def _rows(self) -> None:
        """Penalties ask for all words: there is nothing to spare."""

    def _batch_losses(self, batch: Batch) -> Tensor:
        seen, added = self._penalised(batch)
        return self._losses(seen.logits, batch.labels) + added

    def _penalised(self, batch: Batch) -> tuple[Seen, Float[Tensor, "model"]]:
        """The clean documents as seen, and what each model's penalties add.

        With masked words the clean and the masked documents are rows of one call.
        """
        ids, mask, count = batch.ids, batch.mask, len(batch)
        if self.is_masked:
            words = self.stack.weights["embedding.weight"].shape[1]
            corrupted, chosen = objectives.corrupt(ids, mask, words)
            ids, mask = torch.cat([ids, corrupted]), torch.cat([mask, mask])
        whole = self.stack.seen(ids, mask)
        seen = Seen(*(part[:, :count] for part in whole))
        added = torch.zeros_like(self.tying)
        if self.is_tied:
            apart = (seen.states - seen.inputs).square().mean(-1) * batch.mask
            added = added + self.tying * apart.sum((1, 2)) / batch.mask.sum()
        if self.is_masked:
            # The host waits once, to learn how many words are hidden; each of them is one place,
            # so that its gradient is put there without a sort.
            place = chosen.flatten().nonzero()[:, 0]
            hidden = whole.states[:, count:].flatten(1, 2).index_select(1, place)
            gold = batch.ids.flatten().index_select(0, place)
            losses = objectives.guessed(hidden, self.stack.weights["embedding.weight"], gold)
            below = torch.where(self.per_word, max(len(gold), 1), count)
            added = added + self.masked * losses.sum(1) / below
        return seen, added

    def _note_drift(self, moment: StackMoment) -> None:
        """What `Drift` notes of one model, for each."""
        with torch.no_grad():
            batch = next(batches(self.corpus.splits["dev"], DOCUMENTS)).to(self.device)
            seen = self.stack.seen(batch.ids, batch.mask)
            length = seen.inputs[:, batch.mask].norm(dim=-1).mean(1).tolist()
            apart = [math.nan] * len(length)
            if seen.states.shape == seen.inputs.shape:
                apart = (seen.states - seen.inputs)[:, batch.mask].norm(dim=-1).mean(1).tolist()
        for entries, e, h in zip(self.drift, length, apart, strict=True):
            entries.append({"step": moment.step, "epoch": moment.epoch, "embedding": e, "apart": h})


def fit_remedies(
    models: Sequence[AttentionClassifier],
    corpus: EncodedCorpus,
    config: TrainConfig,
    penalties: Sequence[Penalties],
    *,
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
) -> list[list[dict[str, Any]]]:
    """Trains all models in place, each as `fit` would with the same batches; gives their drift.

    The models may differ in their random start, their vectors and the strengths of their penalties.
    """
    for model, penalty in zip(models, penalties, strict=True):
        objectives.check(model.config, penalty)
    refuse_unstacked(config)
    run = _RemedyRun(models, corpus, config, penalties, seeds, device)
    with seeded(run.order):
        for epoch in range(config.epochs):
            run.epoch(epoch)
            if all(run.stopped):
                break
    _finish(run)
    return run.drift


def _finish(run: _RemedyRun) -> None:
    run.stack.load(run.best)
    run.stack.release()


class _ImitationRun(_RemedyRun):
    """Stacked adversaries of some models: each has the model it imitates and its own λ."""

    def aim(
        self, firsts: Sequence[AttentionClassifier], strengths: Sequence[float], divergence: str
    ) -> None:
        """Says what is imitated, how strongly attention is pushed away, and in which sense."""
        splits = [self.corpus.splits[name] for name in ("train", "dev")]
        self.firsts = [remember(first.to(self.device), splits, self.device) for first in firsts]
        self.each = len(strengths)
        every = torch.tensor(strengths, device=self.device, dtype=torch.float64)
        self.strengths = every.repeat(len(firsts))
        self.divergence = divergence

    def _objective(self, seen: Seen, batch: Batch) -> Float[Tensor, "model row"]:
        units = batch.mask.shape[1]
        goals = [first.of(batch.names, units, self.device) for first in self.firsts]
        probability, attention = (
            torch.stack(parts).repeat_interleave(self.each, 0) for parts in zip(*goals, strict=True)
        )
        strengths = self.strengths[:, None]
        outputs = seen.logits.double()
        return distance(
            outputs, seen.scores, batch.mask, probability, attention, strengths, self.divergence
        )

    def _batch_losses(self, batch: Batch) -> Tensor:
        seen, added = self._penalised(batch)
        return self._objective(seen, batch).mean(1) + added

    def _evaluate(self, epoch: float, taken: int) -> None:
        total, dev = torch.zeros_like(self.strengths), self.corpus.splits["dev"]
        with torch.no_grad():
            for batch in batches(dev, 256, max_tokens=EVALUATION_TOKENS):
                here = batch.to(self.device)
                total += self._objective(self.stack.seen(here.ids, here.mask), here).sum(1)
        for row, value in enumerate((-total / max(len(dev), 1)).tolist()):
            if self.stopped[row]:
                continue
            self.without_gain[row] += 1
            if value > self.best_value[row]:
                self.best_value[row], self.best_step[row] = value, self.step
                self.without_gain[row] = 0
                for name, weight in self.stack.weights.items():
                    self.best[name][row] = weight.detach()[row]
            self.stopped[row] = 0 < self.config.patience <= self.without_gain[row]


def imitate_together(
    models: Sequence[AttentionClassifier],
    corpus: EncodedCorpus,
    strengths: Sequence[float],
    config: TrainConfig = TrainConfig(),
    penalties: Penalties = Penalties(),
    *,
    divergence: str = "jsd",
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
) -> list[list[Imitation]]:
    """As `imitate`, in one stack: of every model one adversary for each λ.

    Those of a model start from the same weights, drawn with its seed. All share their batches and
    the words that are masked: those of `config.order_seed`, or else of the first seed.
    """
    if divergence not in DIVERGENCES:
        raise unknown("divergence", divergence, DIVERGENCES)
    refuse_strengths(strengths)
    words, classes = corpus.vocabulary, corpus.classes
    drawn = [seed for seed in seeds for _ in strengths]
    seconds = [
        build(model.config, words, classes, seed, corpus.vectors, corpus.tokeniser)
        for model, seed in zip(models, seeds, strict=True)
        for _ in strengths
    ]
    objectives.check(seconds[0].config, penalties)
    epochs = 0
    run = _ImitationRun(seconds, corpus, config, [penalties] * len(seconds), drawn, device)
    run.aim(models, strengths, divergence)
    with seeded(run.order):
        for epoch in range(config.epochs):
            run.epoch(epoch)
            epochs = epoch + 1
            if all(run.stopped):
                break
    _finish(run)
    found = [
        Imitation(second.eval(), -value, epochs)
        for second, value in zip(seconds, run.best_value, strict=True)
    ]
    return [found[at : at + run.each] for at in range(0, len(found), run.each)]
