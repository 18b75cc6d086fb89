"""Word vectors of a stack, updated row by row: what the whole table would become, for less.

Adagrad without decay and plain SGD leave a row without gradient as it was, so a step needs to
read and write the vectors of the batch's words alone (docs/studies/polarity.md, "Shortcuts"). The
models of a stack share their batches, so these are the same rows in each.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.corpora.batches import Batch, moved
from heedful.training.config import TrainConfig

EPSILON = 1e-10
"""Added to Adagrad's root, as the library does."""


def fits(config: TrainConfig) -> bool:
    """Whether a row without gradient stays as it is under this training."""
    is_decayed = config.weight_decay > 0 and config.decay not in ("encoder", "additive map")
    return config.optimiser in ("adagrad", "sgd") and not is_decayed


class WordRows:
    """The rows of a table that a step reads, and their update."""

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
