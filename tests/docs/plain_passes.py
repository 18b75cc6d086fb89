"""A model asked plainly: its own forward pass, one text at a time, and arithmetic by hand.

Nothing of `heedful.audits` or of `heedful.models.verbs` is called here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import heedful

Edit = Callable[[Tensor, slice], Tensor]
"""From the row that decides, [head key], and where its words are, to another row."""


class Attended(NamedTuple):
    """What a text's decision attends to."""

    weights: np.ndarray
    """Of each word; they sum to one."""
    outside: float
    first: float


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
        odds = np.exp(self.logits(words) - self.logits(words).max())
        return np.asarray(odds / odds.sum())

    @property
    def _is_causal(self) -> bool:
        return "Llama" in type(self.model).__name__

    @torch.no_grad()
    def attention(self, words: tuple[str, ...]) -> Attended:
        """What is audited: the row that decides, or the mean of all rows that are pooled."""
        if self.is_own:
            scores = self.model(self.model.batch([" ".join(words)])).attended.scores[0]
            return Attended(np.asarray(scores.double().softmax(-1)), 0.0, 0.0)
        passed = self.model.base_model(**self._given(words), output_attentions=True)
        rows = passed.attentions[-1][0].double().mean(0)
        is_mean = type(self.model).__name__.startswith("MeanPooled")
        row = np.asarray(rows.mean(0) if is_mean else rows[-1 if self._is_causal else 0])
        held = row if self._is_causal else row[1:-1]
        return Attended(held / held.sum(), 1 - float(held.sum()), float(row[0]))

    @torch.no_grad()
    def under(self, words: tuple[str, ...], edits: Sequence[Edit]) -> np.ndarray:
        """Logits with the attention of the row that decides edited: of an own model, or a BERT.

        By the parts of the model, one after the other.
        """
        if self.is_own:
            attended = self.model(self.model.batch([" ".join(words)])).attended
            weights = attended.scores[:1].double().softmax(-1)
            values = attended.values[0].double()
            mixed = torch.stack(
                [(edit(weights.clone(), slice(None)) @ values)[0] for edit in edits]
            )
            return np.asarray(self.model.head(mixed.float()).double())
        bert = self.model.bert
        passed = bert(**self._given(words), output_attentions=True, output_hidden_states=True)
        layer, before = bert.encoder.layer[-1], passed.hidden_states[-2]
        weights = passed.attentions[-1][0, :, 0]  # [head, key]
        values = layer.attention.self.value(before)[0].view(len(weights[0]), len(weights), -1)
        rows = torch.stack([edit(weights.clone(), slice(1, -1)) for edit in edits])
        mixed = torch.einsum("ehk,khd->ehd", rows, values).flatten(1)[:, None]
        attended = layer.attention.output(mixed, before[:, :1].expand(len(mixed), -1, -1))
        states = layer.output(layer.intermediate(attended), attended)
        return np.asarray(self.model.classifier(bert.pooler(states)).double())


def given_anew(shares: np.ndarray) -> Edit:
    """What words get is divided anew; special tokens keep theirs."""

    def edit(row: Tensor, words: slice) -> Tensor:
        row[:, words] = torch.from_numpy(shares).to(row) * row[:, words].sum(-1, keepdim=True)
        return row

    return edit


def shuffled(order: np.ndarray) -> Edit:
    """Each word gets what another got."""

    def edit(row: Tensor, words: slice) -> Tensor:
        row[:, words] = row[:, words][:, torch.from_numpy(order)]
        return row

    return edit


def forbidden(places: Sequence[int]) -> Edit:
    """Attention to some words is forbidden: the rest is made to sum to one."""

    def edit(row: Tensor, words: slice) -> Tensor:
        row[:, words][:, list(places)] = 0
        return row / row.sum(-1, keepdim=True).clamp_min(1e-30)

    return edit
