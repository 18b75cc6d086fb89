"""A model asked plainly: its own forward pass, one text at a time, and arithmetic by hand.

Nothing of `heedful.audits`, `heedful.importance` or `heedful.models.verbs` is called here. The
attention of a Transformer is computed, and changed, in a function put in the place of the library's
own; so a change of attention is a whole new pass.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import heedful

Edit = Callable[[Tensor, slice], Tensor]
"""From the rows that decide, [head row key], and where their words are, to other rows."""
Change = Callable[[int, Tensor], Tensor]
"""From the number of a layer and its attention, [text head query key], to another one."""


class Attended(NamedTuple):
    """What a text's decision attends to."""

    weights: np.ndarray
    """Of each word; they sum to one."""
    outside: float
    first: float


@dataclass
class Layers:
    """What the layers of a Transformer did in one pass."""

    weights: list[Tensor] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)
    states: list[Tensor] = field(default_factory=list)
    """What left each layer, [text key dim]."""
    logits: Tensor = field(default_factory=lambda: torch.zeros(0))


class Plain:
    """A run's model; every word of its texts is one piece."""

    def __init__(self, folder: Path) -> None:
        opened: Any = heedful.load(folder, trust_remote_code=True)
        self.is_own = not hasattr(opened, "subwords")
        self.model: Any = opened if self.is_own else opened.model
        self.tokenizer: Any = None if self.is_own else opened.subwords.tokenizer
        if not self.is_own:
            self.model.set_attn_implementation("eager")
        self.logits = cache(self._logits)

    @property
    def table(self) -> Any:
        """Where words become vectors."""
        return self.model.embedding if self.is_own else self.model.get_input_embeddings()

    @property
    def is_causal(self) -> bool:
        """Whether the last position decides, and there are no special tokens."""
        return "Llama" in type(self.model).__name__

    @property
    def is_mean(self) -> bool:
        """Whether all positions decide."""
        return type(self.model).__name__.startswith("MeanPooled")

    def size(self, words: tuple[str, ...]) -> int:
        """Positions that a pass reads, in all layers."""
        if self.is_own:
            return len(words)
        return int(self.model.config.num_hidden_layers * self._given(words)["input_ids"].numel())

    @property
    def inside(self) -> slice:
        """Where the words of a text stand."""
        return slice(None) if self.is_own or self.is_causal else slice(1, -1)

    @property
    def deciding(self) -> slice:
        """The rows that decide."""
        if self.is_mean:
            return slice(None)
        return slice(-1, None) if self.is_causal else slice(0, 1)

    def _given(self, words: tuple[str, ...]) -> Any:
        given = self.tokenizer(" ".join(words), return_tensors="pt")
        has_types = type(self.model).__name__.startswith("Bert")
        return given if has_types else {k: v for k, v in given.items() if k != "token_type_ids"}

    @torch.no_grad()
    def _logits(self, words: tuple[str, ...]) -> np.ndarray:
        """What the model says of these words."""
        if self.is_own:
            passed = self.model(self.model.batch([" ".join(words) or "[an unknown word]"]))
            return np.asarray(passed.logits[0].double())
        return np.asarray(self.model(**self._given(words)).logits[0].double())

    def probabilities(self, words: tuple[str, ...]) -> np.ndarray:
        """The same as probabilities."""
        return odds_of(self.logits(words))

    def passed(
        self,
        words: tuple[str, ...],
        change: Change | None = None,
        value: Callable[[int, Tensor], Tensor] | None = None,
        copies: int = 1,
    ) -> Layers:
        """One pass of a Transformer over so many copies of a text, with attention or values
        changed."""
        found = Layers()

        def attend(
            module: Any, query: Tensor, key: Tensor, values: Tensor, mask: Tensor | None,
            scaling: float | None = None, **rest: Any,
        ) -> tuple[Tensor, Tensor]:  # fmt: skip
            place, groups = len(found.weights), query.shape[1] // key.shape[1]
            key, values = (x.repeat_interleave(groups, 1) for x in (key, values))
            scores = query @ key.transpose(-1, -2) * (scaling or query.shape[-1] ** -0.5)
            scores = scores if mask is None else scores + mask[..., : key.shape[2]]
            weights = scores.softmax(-1)
            weights = weights if change is None else change(place, weights)
            values = values if value is None else value(place, values)
            found.weights.append(weights)
            found.values.append(values)
            return (weights @ values).transpose(1, 2).contiguous(), weights

        given = {k: v.expand(copies, -1) for k, v in self._given(words).items()}
        with lent(type(self.model.base_model), attend):
            passed = self.model(**given, output_hidden_states=True)
        found.states = list(passed.hidden_states or [])[1:]
        found.logits = passed.logits.double()
        return found

    @torch.no_grad()
    def attention(self, words: tuple[str, ...]) -> Attended:
        """What is audited: the row that decides, or the mean of all rows that are pooled."""
        if self.is_own:
            scores = self.model(self.model.batch([" ".join(words)])).attended.scores[0]
            return Attended(np.asarray(scores.double().softmax(-1)), 0.0, 0.0)
        rows = self.passed(words).weights[-1][0].double().mean(0)
        row = np.asarray(rows[self.deciding].mean(0))
        held = row[self.inside]
        return Attended(held / held.sum(), 1 - float(held.sum()), float(row[0]))

    @torch.no_grad()
    def under(self, words: tuple[str, ...], edits: Sequence[Edit]) -> np.ndarray:
        """Logits with the attention of the rows that decide edited, each by a whole pass."""
        if self.is_own:
            attended = self.model(self.model.batch([" ".join(words)])).attended
            weights = attended.scores[:1].double().softmax(-1)[None]
            values = attended.values[0].double()
            mixed = torch.stack(
                [(edit(weights.clone(), slice(None))[0] @ values)[0] for edit in edits]
            )
            return np.asarray(self.model.head(mixed.float()).double())
        last = self.model.config.num_hidden_layers - 1

        def change(place: int, weights: Tensor) -> Tensor:
            if place != last:
                return weights
            weights = weights.clone()
            for text, edit in enumerate(edits):
                rows = weights[text][:, self.deciding]
                weights[text][:, self.deciding] = edit(rows.clone(), self.inside)
            return weights

        return np.asarray(self.passed(words, change, copies=len(edits)).logits)


def odds_of(logits: np.ndarray) -> np.ndarray:
    """Probabilities of logits."""
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(raised / raised.sum(-1, keepdims=True))


@contextmanager
def lent(kind: type, attend: Callable[..., Any]) -> Iterator[None]:
    """The library's own attention, replaced in the module of a class of models."""
    modules = [sys.modules[one.__module__] for one in kind.__mro__]
    (module,) = {m for m in modules if hasattr(m, "eager_attention_forward")}
    before = module.eager_attention_forward  # type: ignore[attr-defined]
    module.eager_attention_forward = attend  # type: ignore[attr-defined]
    try:
        yield
    finally:
        module.eager_attention_forward = before  # type: ignore[attr-defined]


def given_anew(shares: np.ndarray) -> Edit:
    """What words get is divided anew; special tokens keep theirs."""

    def edit(rows: Tensor, words: slice) -> Tensor:
        held = rows[..., words].sum(-1, keepdim=True)
        rows[..., words] = torch.from_numpy(shares).to(rows) * held
        return rows

    return edit


def shuffled(order: np.ndarray) -> Edit:
    """Each word gets what another got."""

    def edit(rows: Tensor, words: slice) -> Tensor:
        rows[..., words] = rows[..., words][..., torch.from_numpy(order)]
        return rows

    return edit


def forbidden(places: Sequence[int]) -> Edit:
    """Attention to some words is forbidden: the rest is made to sum to one."""

    def edit(rows: Tensor, words: slice) -> Tensor:
        rows[..., words][..., list(places)] = 0
        return rows / rows.sum(-1, keepdim=True).clamp_min(1e-30)

    return edit
