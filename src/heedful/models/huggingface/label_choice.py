"""A language model that chooses among labels: a classifier whose logits are log-probabilities."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.errors import InputError


class LabelScores(NamedTuple):
    """What a pass over prompts gives."""

    logits: Float[Tensor, "batch class"]
    """log p(label | prompt) of each label's whole words, with the correction for the prior."""
    hidden_states: tuple[Tensor, ...] | None


class LabelChoice(nn.Module):
    """A causal language model asked, at the end of each prompt, which label comes next.

    A label of several pieces needs the model's answer behind its own first pieces: all pieces but
    the last of every label stand behind the prompt, each label seeing the prompt and itself alone,
    so that one pass scores all labels whole. Prompts end together (padding is on the left).
    """

    def __init__(self, base: nn.Module, labels: Sequence[tuple[int, ...]]) -> None:
        super().__init__()
        self.base = base
        self.labels = tuple(labels)
        self.register_buffer("offset", torch.zeros(len(labels), dtype=torch.float64))
        self.offset: Tensor
        self.prior = "none"
        """The correction that the offset is."""
        takes = inspect.signature(base.forward).parameters
        self.takes_positions = "position_ids" in takes
        self.keeps_last = "logits_to_keep" in takes
        within = [place for label in self.labels for place in range(len(label) - 1)]
        owner = [n for n, label in enumerate(self.labels) for _ in label[:-1]]
        self.register_buffer("within", torch.tensor(within, dtype=torch.long), persistent=False)
        self.register_buffer("owner", torch.tensor(owner, dtype=torch.long), persistent=False)
        self.within: Tensor
        self.owner: Tensor

    @property
    def config(self) -> Any:
        """The language model's own."""
        return self.base.config

    @property
    def behind(self) -> int:
        """Pieces of labels that stand behind the prompt."""
        return len(self.owner)

    def forward(
        self,
        input_ids: Int[Tensor, "batch key"],
        attention_mask: Int[Tensor, "batch key"],
        output_hidden_states: bool = False,
    ) -> LabelScores:
        """The log-probability of each label behind each prompt."""
        asked = 1 + self.behind
        given: dict[str, Any] = {"input_ids": input_ids, "attention_mask": attention_mask}
        if self.takes_positions:
            given["position_ids"] = self._positions(attention_mask)
        if self.behind:
            given["attention_mask"] = self._mask(attention_mask)
        if self.keeps_last:
            given["logits_to_keep"] = asked
        passed = self.base(**given, use_cache=False, output_hidden_states=output_hidden_states)
        last = passed.logits[:, -asked:]
        said = last.to(torch.promote_types(last.dtype, torch.float32)).log_softmax(-1)
        scores, place = [], 1
        for label in self.labels:
            rows = [0, *range(place, place + len(label) - 1)]
            scores.append(said[:, rows, list(label)].sum(-1))
            place += len(label) - 1
        logits = torch.stack(scores, -1)
        return LabelScores(logits + self.offset.to(logits), getattr(passed, "hidden_states", None))

    def _positions(self, mask: Int[Tensor, "batch key"]) -> Int[Tensor, "batch key"]:
        """Every piece's place in its prompt; those of a label count on from its end."""
        positions = (mask.cumsum(-1) - 1).clamp_min(0)
        if self.behind:
            end = positions[:, -self.behind - 1, None]
            positions = torch.cat([positions[:, : -self.behind], end + 1 + self.within], 1)
        return positions

    def _mask(self, mask: Int[Tensor, "batch key"]) -> Float[Tensor, "batch 1 query key"]:
        """What each piece may attend to: earlier ones, and of the labels only its own."""
        keys, prompt = mask.shape[1], mask.shape[1] - self.behind
        window = getattr(self.config.get_text_config(), "sliding_window", None)
        if window is not None and keys > window:
            raise InputError(
                f"Labels of several pieces are not scored in prompts of more than {window} pieces "
                "by a model that attends within a window; choose labels of one piece."
            )
        place = torch.arange(keys, device=mask.device)
        owner = torch.cat([torch.full((prompt,), -1, device=mask.device), self.owner])
        seen = (place <= place[:, None]) & ((owner < 0) | (owner == owner[:, None]))
        seen = seen & mask.bool()[:, None] | torch.eye(keys, dtype=torch.bool, device=mask.device)
        kind = self.base.get_input_embeddings().weight.dtype  # type: ignore[operator]
        hidden = torch.zeros(len(mask), 1, keys, keys, dtype=kind, device=mask.device)
        return hidden.masked_fill(~seen[:, None], torch.finfo(kind).min)
