"""What a translator thinks of given words: the probe β, saliency Δ.

A translator has thousands of classes; these functions keep one number per question and look at the
whole vocabulary only in chunks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.corpora.pairs import Pairs
from heedful.models.log_odds import log_odds
from heedful.models.translator import Translator
from heedful.models.verbs import evaluating

CHUNK = 2**24
"""Numbers of a chunk of rows x vocabulary: 64 MiB in float32."""


class TeacherForced(NamedTuple):
    """What a translator did with pairs under teacher forcing."""

    attention: Float[Tensor, "sentence step unit"]
    """The mean over heads; 0 at padding."""
    probe: Float[Tensor, "sentence step unit"]
    """The log-odds of y_t if the context of step t were that source state; -inf at padding."""
    is_right: Bool[Tensor, "sentence step"]
    """Whether the most probable word is the reference's."""


def attended(model: Translator, pairs: Pairs) -> TeacherForced:
    """Attention, probe and token accuracy of every output word, from one pass."""
    with evaluating(model):
        values, start = model.encode(model.embedding(pairs.source), pairs)
        states, _ = model.decode(pairs.before, start)
        attention = model.scores(states, values, pairs.source_mask).softmax(-1)
        base, message = model.said(states, values)
        added = (attention @ message).sum(1)
        mask = pairs.target_mask
        logits = model.logits(model.activated((base + added)[mask]))
        is_right = torch.zeros_like(mask)
        is_right[mask] = logits.argmax(-1) == pairs.target[mask]
        return TeacherForced(
            attention.mean(1), _probe(model, pairs, base, message.sum(1)), is_right
        )


def _probe(
    model: Translator,
    pairs: Pairs,
    base: Float[Tensor, "sentence step hidden"],
    message: Float[Tensor, "sentence unit hidden"],
) -> Float[Tensor, "sentence step unit"]:
    """The log-odds of y_t with all attention on source position l, for all t and l."""
    asked = pairs.target_mask[:, :, None] & pairs.source_mask[:, None]
    found = base.new_full(asked.shape, -torch.inf)
    sentence, step, unit = asked.nonzero(as_tuple=True)
    right = pairs.target[sentence, step]
    rows = max(CHUNK // base.shape[-1], 1)
    parts = []
    for start in range(0, len(sentence), rows):
        part = slice(start, start + rows)
        pre = base[sentence[part], step[part]] + message[sentence[part], unit[part]]
        parts.append(_log_odds(model, model.activated(pre), right[part]))
    found[asked] = torch.cat(parts)
    return found


def _log_odds(
    model: Translator, hidden: Float[Tensor, "row hidden"], right: Int[Tensor, " row"]
) -> Float[Tensor, " row"]:
    """The log-odds of one word per row, the vocabulary in chunks of rows."""
    rows = max(CHUNK // model.config.vocabulary, 1)
    parts = zip(torch.split(hidden, rows), torch.split(right, rows), strict=True)
    return torch.cat([log_odds(model.logits(part), word) for part, word in parts])


def saliency(
    model: Translator, pairs: Pairs, chunk: int = 512
) -> Float[Tensor, "sentence step unit"]:
    """Δ_{t,l}: the derivative by a gate on source word l, all t at once.

    See docs/studies/dynamics.md, "Saliency".

    Gradient times input of the reference's log-odds: positive = supports it. (That of log p is
    1 − p times as large for all l, which rounds to 0 where the model is sure.) Every sentence
    is repeated once per output word with gates of its own, so that one backward pass over a sum
    gives all of them; `chunk` copies at a time. 0 at padding.
    """
    found = torch.zeros(
        *pairs.target.shape, pairs.source.shape[1], device=pairs.source.device,
        dtype=model.words.weight.dtype,
    )  # fmt: skip
    steps = pairs.target.shape[1]
    per_call = max(chunk // steps, 1)
    with differentiating(model):
        for first in range(0, len(pairs), per_call):
            rows = slice(first, first + per_call)
            found[rows] = _saliency(model, _rows(pairs, rows))
    return found


def _saliency(model: Translator, pairs: Pairs) -> Tensor:
    steps, units = pairs.target.shape[1], pairs.source.shape[1]
    copies = pairs.repeated(steps)
    step = torch.arange(steps, device=pairs.target.device).repeat(len(pairs))
    row = torch.arange(len(step), device=step.device)
    vectors = model.embedding(copies.source).detach()
    gates = torch.ones_like(vectors[..., 0], requires_grad=True)
    values, start = model.encode(vectors * gates[..., None], copies)
    states, _ = model.decode(copies.before, start)
    # Only the step that a copy stands for is asked about.
    states = states[row, step][:, None]
    attention = model.scores(states, values, copies.source_mask).softmax(-1)
    logits = model.output(states, attention, values)[:, 0]
    right = copies.target[row, step]
    told = log_odds(logits, right)
    is_asked = pairs.target_mask.flatten()
    (gradient,) = torch.autograd.grad(told[is_asked].sum(), gates)
    return gradient.view(len(pairs), steps, units)


def _rows(pairs: Pairs, rows: slice) -> Pairs:
    """Some of the pairs, still padded to the width of all."""
    return Pairs(
        pairs.source[rows], pairs.before[rows], pairs.target[rows],
        pairs.source_lengths[rows], pairs.target_lengths[rows], pairs.names[rows],
    )  # fmt: skip


@contextmanager
def differentiating(model: nn.Module) -> Iterator[None]:
    """Lends the model for gradients with dropout 0, and gives it back as it was.

    In training mode, since cuDNN has no gradients of recurrent layers in the other.
    """
    layers = [m for m in model.modules() if isinstance(m, nn.RNNBase | nn.Dropout)]
    kept = [layer.dropout if isinstance(layer, nn.RNNBase) else layer.p for layer in layers]
    was_training = model.training
    model.train()
    try:
        for layer in layers:
            _set_dropout(layer, 0.0)
        with torch.enable_grad():
            yield
    finally:
        for layer, share in zip(layers, kept, strict=True):
            _set_dropout(layer, share)
        model.train(was_training)


def _set_dropout(layer: nn.Module, share: float) -> None:
    if isinstance(layer, nn.RNNBase):
        layer.dropout = share
    elif isinstance(layer, nn.Dropout):
        layer.p = share
