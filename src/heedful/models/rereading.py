"""Texts with words taken away, read again by the same model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.corpora.batches import Batch
from heedful.models.classifier import AttentionClassifier
from heedful.models.verbs import AttentiveModel, evaluating, positions
from heedful.runs.memory import halving
from heedful.runs.meter import passed

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
    device, whole = kept.device, batch.lengths.cpu().numpy()[document]
    tokens = kept[torch.from_numpy(document).to(device), torch.from_numpy(edit).to(device)]
    length = tokens.sum(-1).clamp_min(1).cpu().numpy() if mode == "removed" else whole
    order = np.argsort(length, kind="stable")

    def one_pass(some: Int[np.ndarray, "pass"]) -> Float[Tensor, "pass class"]:
        place = torch.from_numpy(some).to(device)
        part = chosen(batch, document[some], int(whole[some].max()))
        here = tokens[place, : part.mask.shape[1]]
        if mode == "removed":
            part = part.keeping(here, int(length[some].max()))
        else:
            part = part.replacing(~here, symbol)
        return _logits(model, part)

    parts = []
    for some in passes(order, length, _most_tokens(model, batch)):
        parts.append(halving(one_pass, some, torch.cat))
    logits = torch.cat(parts)
    logits = torch.empty_like(logits).index_copy(0, torch.from_numpy(order).to(device), logits)
    return logits[torch.from_numpy(answer).to(device)].view(*kept.shape[:2], -1)


def _distinct(
    kept: Bool[Tensor, "batch edit token"],
) -> tuple[
    Int[np.ndarray, " distinct"], Int[np.ndarray, " distinct"], Int[np.ndarray, " batch*edit"]
]:
    """Document and edit of each distinct edited text, and which of them each edit is."""
    bits = np.packbits(kept.flatten(0, 1).cpu().numpy(), axis=1)
    owner = np.repeat(np.arange(len(kept), dtype=np.int32), kept.shape[1])
    coded = np.hstack([owner[:, None].view(np.uint8), bits])
    _, place, answer = np.unique(coded, axis=0, return_index=True, return_inverse=True)
    return place // kept.shape[1], place % kept.shape[1], answer.reshape(-1)


def passes(
    order: Int[np.ndarray, " distinct"], length: Int[np.ndarray, " distinct"], most: int
) -> list[Int[np.ndarray, "pass"]]:
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
    usual = PASS_TOKENS * (ON_A_CARD if is_flat and batch.ids.is_cuda else 1)
    return int(getattr(model, "pass_tokens", usual))


def chosen(batch: Batch, document: Int[np.ndarray, "pass"], width: int) -> Batch:
    """Some documents of a batch, in the order given, padded to so many tokens."""
    rows = torch.from_numpy(document).to(batch.ids.device)
    return replace(
        batch,
        ids=batch.ids[rows, :width],
        mask=batch.mask[rows, :width],
        labels=batch.labels[rows],
        sentence=batch.sentence[rows, :width],
        names=tuple(batch.names[row] for row in document.tolist()),
        evidence=None,
        documents=None,
    )


def _logits(model: AttentiveModel, batch: Batch) -> Float[Tensor, "batch class"]:
    """The decision alone: a whole reading also keeps the words, which nobody asks for here."""
    passed(positions(model, batch))
    with evaluating(model):
        if isinstance(model, nn.Module) and hasattr(model, "from_inputs"):
            logits: Tensor = model(batch).logits
        else:
            logits = model.read(batch).logits
    return logits.double()


def probability(
    logits: Float[Tensor, "batch edit class"], chosen: Int[Tensor, " batch"]
) -> Float[Tensor, "batch edit"]:
    """The probability of one class of each document under every edit."""
    index = chosen[:, None, None].expand(-1, logits.shape[1], 1)
    return logits.softmax(-1).gather(2, index)[..., 0]
