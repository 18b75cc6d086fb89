"""Texts with words taken away, read again by the same model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.corpora.batches import Batch
from heedful.models.classifier import AttentionClassifier
from heedful.models.verbs import AttentiveModel, evaluating

PASS_TOKENS = 2**14
"""Tokens, padding included, in one forward pass."""
ON_A_CARD = 8
"""How many times more a flat classifier reads at once on a GPU, where an encoder that goes from
word to word takes hardly longer for a thousand texts than for fifty."""


def read_again(
    model: AttentiveModel,
    batch: Batch,
    kept: Bool[Tensor, "batch edit token"],
    mode: str,
    symbol: int | None = None,
) -> Float[Tensor, "batch edit class"]:
    """Logits with only the kept tokens, the others removed or replaced by an unknown word.

    Rankings often agree, so equal edits of a document are read once; what is left is read in
    passes of bounded size, by length.
    """
    symbol = batch.unknown if symbol is None else symbol
    kept = kept & batch.mask[:, None]
    document, edit, answer = _distinct(kept)
    tokens = kept[document, edit]
    length = tokens.sum(-1).clamp_min(1) if mode == "removed" else batch.lengths[document]
    order = length.argsort(stable=True)
    parts = []
    for some in _passes(order, length, _most_tokens(model, batch)):
        part = chosen(batch, document[some])
        here = tokens[some, : part.mask.shape[1]]
        part = part.keeping(here) if mode == "removed" else part.replacing(~here, symbol)
        parts.append(_logits(model, part))
    logits = torch.cat(parts)
    logits = torch.empty_like(logits).index_copy(0, order, logits)
    return logits[answer].view(*kept.shape[:2], -1)


def _distinct(
    kept: Bool[Tensor, "batch edit token"],
) -> tuple[Int[Tensor, "distinct"], Int[Tensor, "distinct"], Int[Tensor, "batch*edit"]]:
    """Document and edit of each distinct edited text, and which of them each edit is."""
    bits = np.packbits(kept.flatten(0, 1).cpu().numpy(), axis=1)
    owner = np.repeat(np.arange(len(kept), dtype=np.int32), kept.shape[1])
    coded = np.hstack([owner[:, None].view(np.uint8), bits])
    _, first, answer = np.unique(coded, axis=0, return_index=True, return_inverse=True)
    place = torch.from_numpy(first).to(kept.device)
    count = kept.shape[1]
    return place // count, place % count, torch.from_numpy(answer.reshape(-1)).to(kept.device)


def _passes(
    order: Int[Tensor, "distinct"], length: Int[Tensor, "distinct"], most: int
) -> list[Int[Tensor, "pass"]]:
    """The edited texts in passes of similar length, each of at most so many tokens."""
    lengths, start, found = length[order].tolist(), 0, []
    for stop in range(1, len(lengths) + 1):
        if stop == len(lengths) or (stop + 1 - start) * lengths[stop] > most:
            found.append(order[start:stop])
            start = stop
    return found


def _most_tokens(model: AttentiveModel, batch: Batch) -> int:
    """Tokens of one pass, by what memory allows: layers of many heads take far more of it."""
    is_flat = isinstance(model, AttentionClassifier) and not model.config.hierarchical
    return PASS_TOKENS * (ON_A_CARD if is_flat and batch.ids.is_cuda else 1)


def chosen(batch: Batch, document: Int[Tensor, "pass"], width: int | None = None) -> Batch:
    """Some documents of a batch, in the order given, padded no further than they need.

    With `width`, to that many tokens.
    """
    longest = int(batch.lengths[document].max()) if width is None else width
    return replace(
        batch,
        ids=batch.ids[document, :longest],
        mask=batch.mask[document, :longest],
        labels=batch.labels[document],
        sentence=batch.sentence[document, :longest],
        names=tuple(batch.names[row] for row in document.tolist()),
        evidence=None,
        documents=None,
    )


def _logits(model: AttentiveModel, batch: Batch) -> Float[Tensor, "batch class"]:
    """The decision alone: a whole reading also keeps the words, which nobody asks for here."""
    with evaluating(model):
        if isinstance(model, nn.Module) and hasattr(model, "from_inputs"):
            logits: Tensor = model(batch).logits
        else:
            logits = model.read(batch).logits
    return logits.double()


def probability(
    logits: Float[Tensor, "batch edit class"], chosen: Int[Tensor, "batch"]
) -> Float[Tensor, "batch edit"]:
    """The probability of one class of each document under every edit."""
    index = chosen[:, None, None].expand(-1, logits.shape[1], 1)
    return logits.softmax(-1).gather(2, index)[..., 0]
