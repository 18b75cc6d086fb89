"""Translations: greedy, or the best of a beam."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.corpora.pairs import END, PAD, START, Pairs
from heedful.models.translator import State, Translator
from heedful.models.verbs import evaluating

LONGEST = 100
"""Words of a translation at most."""


class Beams(NamedTuple):
    """What a search found for each sentence, best first."""

    words: Int[Tensor, "sentence beam step"]
    """The end included where it was reached; then padding."""
    score: Float[Tensor, "sentence beam"]
    """Log probability, without any length penalty."""


def greedy(model: Translator, pairs: Pairs, longest: int = LONGEST) -> list[list[int]]:
    """The most probable next word again and again, until the end; the end is left out."""
    with evaluating(model):
        values, state = model.encode(model.embedding(pairs.source), pairs)
        mask = pairs.source_mask
        last = torch.full_like(pairs.source[:, :1], START)
        is_done = torch.zeros_like(last[:, 0], dtype=torch.bool)
        words = []
        for _ in range(longest):
            logits, state = _next(model, last, state, values, mask)
            last = logits.argmax(-1, keepdim=True).masked_fill(is_done[:, None], PAD)
            words.append(last[:, 0])
            is_done = is_done | (last[:, 0] == END)
            if bool(is_done.all()):
                break
    return _cut(torch.stack(words, 1))


def beam_search(
    model: Translator, pairs: Pairs, width: int = 5, longest: int = LONGEST
) -> list[list[int]]:
    """The best translation that a beam finds, without length penalty; the end is left out."""
    return _cut(search(model, pairs, width, longest).words[:, 0])


def search(model: Translator, pairs: Pairs, width: int = 5, longest: int = LONGEST) -> Beams:
    """The `width` best translations that a beam search finds; finished ones keep their score."""
    with evaluating(model):
        values, state = model.encode(model.embedding(pairs.source), pairs)
        count, size = len(pairs), model.config.vocabulary
        mask = pairs.source_mask.repeat_interleave(width, 0)
        values = values.repeat_interleave(width, 0)
        hidden, cell = (part.repeat_interleave(width, 1) for part in state)
        words = torch.full((count * width, 1), START, device=values.device)
        # All beams start alike: only the first may be extended at the first step.
        score = values.new_full((count, width), -torch.inf)
        score[:, 0] = 0
        is_done = torch.zeros(count * width, dtype=torch.bool, device=values.device)
        nothing = values.new_full((size,), -torch.inf)
        nothing[PAD] = 0  # a finished translation goes on with padding, for free
        first = torch.arange(count, device=values.device)[:, None] * width
        for _ in range(longest):
            logits, (hidden, cell) = _next(model, words[:, -1:], (hidden, cell), values, mask)
            step = torch.where(is_done[:, None], nothing, logits.log_softmax(-1))
            total = score[..., None] + step.view(count, width, size)
            score, best = total.flatten(1).topk(width, -1)
            from_row = (first + best // size).flatten()
            words = torch.cat([words[from_row], (best % size).view(-1, 1)], 1)
            hidden, cell = hidden[:, from_row], cell[:, from_row]
            is_done = is_done[from_row] | (words[:, -1] == END)
            if bool(is_done.all()):
                break
    return Beams(words[:, 1:].view(count, width, -1), score)


def _next(
    model: Translator, last: Int[Tensor, "row 1"], state: State, values: Tensor, mask: Tensor
) -> tuple[Float[Tensor, "row word"], State]:
    """Logits of the next word and the decoder's new state."""
    states, state = model.decode(last, state)
    attention = model.scores(states, values, mask).softmax(-1)
    return model.output(states, attention, values)[:, 0], state


def _cut(words: Int[Tensor, "sentence step"]) -> list[list[int]]:
    """Words before the end."""
    found = []
    for row in words.tolist():
        stop = next((place for place, word in enumerate(row) if word == END), len(row))
        found.append([word for word in row[:stop] if word != PAD])
    return found
