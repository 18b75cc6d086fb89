"""One forward pass, kept: everything the audited attention layer saw and did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.corpora.batches import Batch

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Reading:
    """What a model read in a batch, up to the attention that is audited.

    Decision arithmetic is float64 whatever the model's own precision, so that removing a unit and
    rounding are never confused.
    """

    batch: Batch
    texts: tuple[tuple[str, ...], ...]
    """The units of each document as text: words, or sentences in a hierarchical model."""
    mask: Bool[Tensor, "batch unit"]
    """True where there is a unit."""
    values: Float[Tensor, "batch unit dim"]
    """What attention averages."""
    scores: Float[Tensor, "batch unit"]
    """Attention before the softmax; -inf at padding."""
    attention: Float[Tensor, "batch unit"]
    """The audited attention row; the mean over heads where there are several."""
    logits: Float[Tensor, "batch class"]
    """The decision, from the same arithmetic as `decide`."""
    inputs: Float[Tensor, "batch token dim"]
    """Input embeddings, for gradients on words."""
    unit_of_token: Int[Tensor, "batch token"]
    """Which unit each token belongs to; the identity in a flat model."""
    unit_logits: Float[Tensor, "batch unit class"] | None = None
    """What each value says of each class, without bias; only with a linear head."""
    offset: Float[Tensor, "batch class"] | None = None
    """What the head says of an empty context (the bias); only with a linear head."""
    heads: Float[Tensor, "batch head unit"] | None = None
    """The attention of each head, where there are several."""
    shared: Int[Tensor, " batch"] | None = None
    """Which row of `values` and `inputs` an instance uses, where several share one: the output
    words of a sentence in a translator. Without it each instance has its own."""
    first: Float[Tensor, " batch"] | None = None
    """The share of the audited row on the first token, where that is no word of the text."""
    state: Any = None
    """What the model needs to go on from the audited site; only the model looks inside."""
    explained: Int[Tensor, " batch"] | None = None
    """The class that importance speaks of, where it is not the decision."""
    memory: dict[str, Any] | None = None
    """What several methods of one explanation need, by name; none outside of one."""

    def once(self, name: str, compute: Callable[[], T]) -> T:
        """What is computed once for all methods that explain this reading together."""
        if self.memory is None:
            return compute()
        if name not in self.memory:
            self.memory[name] = compute()
        found: T = self.memory[name]
        return found

    @property
    def outside(self) -> Float[Tensor, " batch"] | None:
        """The share of the audited row that lies on no unit, over heads: that of special tokens.

        None where attention has one head, which is over units alone.
        """
        return None if self.heads is None else (1 - self.heads.sum(-1).mean(1)).clamp_min(0)

    @property
    def names(self) -> tuple[str, ...]:
        """Stable instance ids."""
        return self.batch.names

    @property
    def labels(self) -> Int[Tensor, " batch"]:
        """Gold classes; -1 when unknown."""
        return self.batch.labels

    @property
    def decision(self) -> Int[Tensor, " batch"]:
        """The class with the highest logit; the first one on ties."""
        return self.logits.argmax(-1)

    @property
    def target(self) -> Int[Tensor, " batch"]:
        """The class whose reasons are asked for: the decision, unless another one is explained."""
        return self.decision if self.explained is None else self.explained

    @property
    def units(self) -> Int[Tensor, " batch"]:
        """Number of units of each document."""
        return self.mask.sum(-1)

    @property
    def evidence(self) -> Bool[Tensor, "batch unit"] | None:
        """Units that hold known evidence, where the corpus has it."""
        if self.batch.evidence is None:
            return None
        return self.per_unit(self.batch.evidence.double()) > 0

    def per_unit(self, per_token: Float[Tensor, "batch token"]) -> Float[Tensor, "batch unit"]:
        """Sums a quantity on tokens into the units they belong to."""
        per_token = per_token.masked_fill(~self.batch.mask, 0)
        total = torch.zeros(self.mask.shape, dtype=per_token.dtype, device=per_token.device)
        return total.scatter_add(1, self.unit_of_token, per_token)
