"""Attention learnt on top of a probe that never changes.

See docs/studies/dynamics.md, "A frozen probe".

Word vectors, encoder and head stay as they started; only what makes the scores is trained. So the
states are constants: they are computed once, and no gradient goes through the encoder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, islice

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from heedful.corpora.batches import collate, mixed_groups, moved
from heedful.corpora.encoded import Encoded
from heedful.dynamics.probes import SeenBatch, groups, marks_of, told_of, trajectories
from heedful.dynamics.trajectory import Trajectory
from heedful.errors import InputError
from heedful.models.classifier import AttentionClassifier
from heedful.models.verbs import evaluating
from heedful.runs.randomness import numpy_generator, seeded
from heedful.training.config import Schedule
from heedful.training.optimisers import descend

CACHED_BYTES = 24 * 2**30
"""States of more bytes are computed anew for every batch."""


class _States:
    """The states of a split, kept on the device where they fit."""

    def __init__(
        self, model: AttentionClassifier, encoded: Encoded, device: str, most: int
    ) -> None:
        self.model, self.encoded, self.device = model, encoded, device
        self.kept: Tensor | None = None
        if len(encoded.ids) * model.level.dim * 4 <= most:
            self.kept = torch.empty(len(encoded.ids), model.level.dim, device=device)
            for rows, batch in groups(encoded):
                here = batch.to(device)
                values = model(here).attended.values[here.mask]
                place = torch.from_numpy(np.concatenate([_tokens(encoded, r) for r in rows]))
                self.kept[place.to(device)] = values

    def of(
        self, rows: Int[np.ndarray, " batch"]
    ) -> tuple[Float[Tensor, "batch unit dim"], Bool[Tensor, "batch unit"]]:
        """Padded states of some documents."""
        if self.kept is None:
            batch = collate(self.encoded, rows).to(self.device)
            return self.model(batch).attended.values, batch.mask
        starts = moved(torch.from_numpy(self.encoded.starts[rows])[:, None], self.device)
        last = moved(torch.from_numpy(self.encoded.starts[rows + 1] - 1)[:, None], self.device)
        longest = int(self.encoded.lengths[rows].max())
        place = starts + torch.arange(longest, device=self.device)
        return self.kept[torch.minimum(place, last)], place <= last


class FrozenReader:
    """What a model whose states never change attends to; its states are kept while it learns."""

    def __init__(
        self,
        model: AttentionClassifier,
        encoded: Encoded,
        device: torch.device | str,
        cached_bytes: int | None = None,
    ) -> None:
        self.model, self.encoded = model.to(device), encoded
        most = CACHED_BYTES if cached_bytes is None else cached_bytes
        with evaluating(model):
            self.states = _States(model, encoded, str(device), most)

    def __call__(self, step: int) -> Trajectory:
        """The trajectory of this one moment, as `probed` has it."""
        with evaluating(self.model):
            return trajectories(self._read(), self.encoded, step)[0]

    def _read(self) -> Iterator[SeenBatch]:
        for rows, batch in groups(self.encoded):
            here = batch.to(self.states.device)
            values, mask = self.states.of(rows)
            scores = self.model.level.attention(values).masked_fill(~mask, -torch.inf)
            attention = scores.softmax(-1)
            said = self.model.with_zero(self.model.head(values))
            is_right = (attention[..., None] * said).sum(1).argmax(-1) == here.labels
            told = told_of(said[None], here)
            yield SeenBatch(
                rows, attention[None], told, is_right[None], marks_of(here), mask.sum(-1)
            )


def train_frozen(
    model: AttentionClassifier,
    encoded: Encoded,
    schedule: Schedule,
    observe: Callable[[int], None],
    *,
    batch_size: int = 32,
    learning_rate: float = 1e-3,
    seed: int = 0,
    device: torch.device | str = "cpu",
    cached_bytes: int = CACHED_BYTES,
) -> None:
    """Trains the model's attention in place and leaves everything else as it was.

    `observe` is called with the number of updates done wherever the schedule says; batches are
    those that `fit` would draw.
    """
    if model.words is not None or not list(model.level.attention.parameters()):
        raise InputError("Attention on frozen states needs a flat model with attention to train.")
    model.to(device)
    trained = list(model.level.attention.parameters())
    optimiser = torch.optim.Adam(trained, learning_rate)
    labels = torch.from_numpy(encoded.labels).to(device)
    with evaluating(model):
        states = _States(model, encoded, str(device), cached_bytes)
    if 0 in schedule.evaluate_at:
        observe(0)
    with seeded(seed):
        for step, rows in enumerate(_orders(encoded, batch_size, schedule.steps, seed), 1):
            with evaluating(model):
                values, mask = states.of(rows)
                said = model.with_zero(model.head(values))
            scores = model.level.attention(values).masked_fill(~mask, -torch.inf)
            logits = (scores.softmax(-1)[..., None] * said).sum(1)
            right = labels[moved(torch.from_numpy(rows), device)]
            descend(optimiser, functional.cross_entropy(logits, right))
            if step in schedule.evaluate_at:
                observe(step)


def _orders(
    encoded: Encoded, batch_size: int, steps: int, seed: int
) -> Iterator[Int[np.ndarray, " batch"]]:
    """Row numbers of as many batches as there are steps, in the order of `mixed_batches`."""
    epochs = (numpy_generator(seed, "epoch", epoch) for epoch in count())
    every = (rows for order in epochs for rows in mixed_groups(encoded, batch_size, order))
    return islice(every, steps)


def _tokens(encoded: Encoded, row: int) -> Int[np.ndarray, " token"]:
    return np.arange(encoded.starts[row], encoded.starts[row + 1])
