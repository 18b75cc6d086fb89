"""How word vectors and states move while a model learns (faithful.md §5, trap 5)."""

from __future__ import annotations

from typing import Any

from heedful.corpora.batches import batches
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
        self.entries: list[dict[str, Any]] = []

    def __call__(self, moment: Moment) -> None:
        """Notes `embedding` (mean ‖e‖) and `apart` (mean ‖h - e‖; nan where sizes differ)."""
        model = moment.model
        with evaluating(model):
            batch = next(batches(moment.corpus.splits["dev"], DOCUMENTS)).to(moment.device)
            inputs = model.embed(batch)
            states = model.from_inputs(inputs, batch).word_states
            apart = float("nan")
            if states.shape == inputs.shape:
                apart = float((states - inputs)[batch.mask].norm(dim=-1).mean())
            length = float(inputs[batch.mask].norm(dim=-1).mean())
        self.entries.append(
            {"step": moment.step, "epoch": moment.epoch, "embedding": length, "apart": apart}
        )


__all__ = ["Drift"]
