"""How word vectors and states move while a model learns.

See docs/studies/faithful.md, "Controls of our own".
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.corpora.batches import Batch, batches
from heedful.models.classifier import AttentionClassifier
from heedful.models.classifier_stack import ClassifierStack
from heedful.models.verbs import evaluating
from heedful.training.loop import Moment

DOCUMENTS = 256
"""Dev documents looked at, the shortest first."""


class Drift:
    """An observer that notes the mean length of embeddings and of state minus embedding.

    A tying penalty can be met by moving the states to the embeddings, or the other way round; the
    two lengths tell which happened.
    """

    def __init__(self) -> None:
        self.entries: list[list[dict[str, Any]]] = []
        """Those of each model."""

    def __call__(self, moment: Moment) -> None:
        """Notes `embedding` (mean ‖e‖) and `apart` (mean ‖h - e‖; nan where sizes differ)."""
        batch = next(batches(moment.corpus.splits["dev"], DOCUMENTS)).to(moment.device)
        inputs, states = _read(moment.model, batch)
        length = _mean_norm(inputs, batch)
        apart = [float("nan")] * len(length)
        if states.shape == inputs.shape:
            apart = _mean_norm(states - inputs, batch)
        self.entries = self.entries or [[] for _ in length]
        for entries, e, h in zip(self.entries, length, apart, strict=True):
            entries.append({"step": moment.step, "epoch": moment.epoch, "embedding": e, "apart": h})


def _read(
    model: ClassifierStack | AttentionClassifier, batch: Batch
) -> tuple[Float[Tensor, "model batch token dim"], Float[Tensor, "model batch token state"]]:
    """Embeddings and states of every model of a stack, or of the only one."""
    if isinstance(model, ClassifierStack):
        with torch.no_grad():
            passed = model.forward(batch)
        return passed.inputs, passed.states
    with evaluating(model):
        inputs = model.embed(batch)
        return inputs[None], model.from_inputs(inputs, batch).word_states[None]


def _mean_norm(vectors: Float[Tensor, "model batch token dim"], batch: Batch) -> list[float]:
    """The mean length of each model's vectors, without padding."""
    found: list[float] = vectors[:, batch.mask].norm(dim=-1).mean(1).tolist()
    return found
