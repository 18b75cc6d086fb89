"""The words of a batch as they stand in its texts."""

from __future__ import annotations

from jaxtyping import Int
from torch import Tensor

from heedful.corpora.batches import Batch
from heedful.errors import InputError


def unit_spans(
    batch: Batch, unit_of_token: Int[Tensor, "batch token"]
) -> list[list[tuple[int, int]]]:
    """First character and one past the last of every unit of each text."""
    if batch.documents is None:
        raise InputError("The raw texts are not at hand, so words have no characters.")
    found = []
    for document, units in zip(batch.documents, unit_of_token.tolist(), strict=True):
        spans: dict[int, tuple[int, int]] = {}
        for unit, (start, stop) in zip(units, document.spans.tolist(), strict=False):
            first, last = spans.get(unit, (start, stop))
            spans[unit] = (min(first, start), max(last, stop))
        found.append([spans[unit] for unit in sorted(spans)])
    return found


def unit_texts(
    batch: Batch, unit_of_token: Int[Tensor, "batch token"]
) -> tuple[tuple[str, ...], ...]:
    """The units of each text as it was written; where the text is gone, the ids of its pieces."""
    if batch.documents is not None:
        spans = unit_spans(batch, unit_of_token)
        return tuple(
            tuple(document.text[start:stop].strip() for start, stop in row)
            for document, row in zip(batch.documents, spans, strict=True)
        )
    rows = zip(unit_of_token.tolist(), batch.ids.tolist(), batch.lengths.tolist(), strict=True)
    texts = []
    for units, ids, length in rows:
        words: list[list[str]] = [[] for _ in range(units[length - 1] + 1)]
        for unit, piece in zip(units[:length], ids[:length], strict=True):
            words[unit].append(str(piece))
        texts.append(tuple("+".join(word) for word in words))
    return tuple(texts)
