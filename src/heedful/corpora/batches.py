"""Padded batches of similar length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.corpora.documents import Document
from heedful.corpora.encoded import Encoded
from heedful.corpora.vocabulary import PAD, UNKNOWN, Vocabulary


@dataclass(frozen=True, eq=False)
class Batch:
    """Some documents side by side, padded on the right."""

    ids: Int[Tensor, "batch token"]
    """Word ids; padding is `<pad>`."""
    mask: Bool[Tensor, "batch token"]
    """True where there is a token."""
    labels: Int[Tensor, " batch"]
    """Classes; -1 when unknown."""
    sentence: Int[Tensor, "batch token"]
    """Sentence number of each token, or that of its word where tokens are pieces of words; padding
    repeats the last one."""
    names: tuple[str, ...]
    """Stable instance ids."""
    evidence: Bool[Tensor, "batch token"] | None = None
    """Known evidence."""
    documents: tuple[Document, ...] | None = None
    """The documents, where the raw text is at hand."""
    unknown: int = UNKNOWN
    """The id that stands for a word that is not there."""

    def __len__(self) -> int:
        return len(self.names)

    @property
    def lengths(self) -> Int[Tensor, " batch"]:
        """Tokens per document."""
        return self.mask.sum(-1)

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        return replace(
            self,
            ids=moved(self.ids, device),
            mask=moved(self.mask, device),
            labels=moved(self.labels, device),
            sentence=moved(self.sentence, device),
            evidence=None if self.evidence is None else moved(self.evidence, device),
        )

    def words(self, vocabulary: Vocabulary) -> list[tuple[str, ...]]:
        """The tokens of each document: as written where known, else as the vocabulary has them."""
        if self.documents is not None:
            return [document.tokens or ("",) for document in self.documents]
        rows = zip(self.ids.tolist(), self.lengths.tolist(), strict=True)
        return [tuple(vocabulary.words[i] for i in ids[:n]) for ids, n in rows]

    def keeping(self, kept: Bool[Tensor, "batch token"], length: int | None = None) -> Batch:
        """The batch with only the kept tokens, moved together; nothing kept leaves one unknown.

        The raw documents and the evidence no longer fit and are dropped. `length` is the most
        that a document keeps, where it is known: a card need not be waited for then.
        """
        kept = kept & self.mask
        empty = ~kept.any(-1)
        order = torch.argsort(~kept, dim=-1, stable=True)
        length = max(int(kept.sum(-1).max()), 1) if length is None else length
        mask = kept.gather(1, order)[:, :length].clone()
        ids = self.ids.gather(1, order)[:, :length].masked_fill(~mask, PAD)
        ids[:, 0] = torch.where(empty, self.unknown, ids[:, 0])
        mask[:, 0] |= empty
        sentence = self.sentence.gather(1, order)[:, :length]
        return replace(self, ids=ids, mask=mask, sentence=sentence, evidence=None, documents=None)

    def repeated(self, times: int) -> Batch:
        """The batch so many times over, one copy after the other."""
        return Batch(
            ids=self.ids.repeat(times, 1),
            mask=self.mask.repeat(times, 1),
            labels=self.labels.repeat(times),
            sentence=self.sentence.repeat(times, 1),
            names=self.names * times,
            unknown=self.unknown,
        )

    def replacing(self, replaced: Bool[Tensor, "batch token"], symbol: int) -> Batch:
        """The batch with the marked tokens replaced by one symbol."""
        ids = self.ids.masked_fill(replaced & self.mask, symbol)
        return replace(self, ids=ids, documents=None)


def moved(tensor: Tensor, device: torch.device | str) -> Tensor:
    """The tensor on a device; a copy to a GPU is queued, so that the host need not wait for it."""
    if tensor.is_cpu and torch.device(device).type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def collate(encoded: Encoded, rows: Sequence[int] | Int[np.ndarray, " batch"]) -> Batch:
    """The named documents of a split as one padded batch, in the order given."""
    rows = np.asarray(rows)
    lengths = encoded.lengths[rows]
    position = np.arange(int(lengths.max()))
    mask = position < lengths[:, None]
    last = encoded.starts[rows + 1] - 1
    source = np.minimum(encoded.starts[rows][:, None] + position, last[:, None])
    documents = encoded.documents
    return Batch(
        ids=torch.from_numpy(np.where(mask, encoded.ids[source], PAD).astype(np.int64)),
        mask=torch.from_numpy(mask),
        labels=torch.from_numpy(encoded.labels[rows]),
        sentence=torch.from_numpy(encoded.sentence[source].astype(np.int64)),
        names=tuple(encoded.names[row] for row in rows),
        evidence=None
        if encoded.evidence is None
        else torch.from_numpy(encoded.evidence[source] & mask),
        documents=None if documents is None else tuple(documents[row] for row in rows),
        unknown=encoded.unknown,
    )


def mixed_batches(
    encoded: Encoded, batch_size: int, generator: np.random.Generator
) -> Iterator[Batch]:
    """The documents in random order, whatever their length: the batches `mixed_groups` names."""
    for group in mixed_groups(encoded, batch_size, generator):
        yield collate(encoded, group)


def mixed_groups(
    encoded: Encoded, batch_size: int, generator: np.random.Generator
) -> list[Int[np.ndarray, " batch"]]:
    """The documents of each batch in random order, by their rows; an incomplete one is left out.

    Fewer documents than a batch are one batch.
    """
    order = generator.permutation(len(encoded))
    starts = range(0, max(len(order) - batch_size, 0) + 1, batch_size)
    return [order[start : start + batch_size] for start in starts]


def batches(
    encoded: Encoded,
    batch_size: int = 32,
    generator: np.random.Generator | None = None,
    max_tokens: int | None = None,
) -> Iterator[Batch]:
    """All documents once, in batches of similar length: those that `groups` names."""
    for group in groups(encoded, batch_size, generator, max_tokens):
        yield collate(encoded, group)


def groups(
    encoded: Encoded,
    batch_size: int = 32,
    generator: np.random.Generator | None = None,
    max_tokens: int | None = None,
) -> list[Int[np.ndarray, " batch"]]:
    """The documents of each batch, by their rows.

    Without a generator the order is fixed: by length, longest last. With one, lengths get 10 % of
    noise before sorting and the batches come in random order. `max_tokens` bounds documents ×
    longest document, so that long texts come in smaller batches.
    """
    lengths = encoded.lengths.astype(float)
    if generator is not None:
        lengths = lengths * generator.uniform(0.9, 1.1, len(lengths))
    order = np.argsort(lengths, kind="stable")
    found: list[Int[np.ndarray, " batch"]] = []
    start = 0
    while start < len(order):
        stop = min(start + batch_size, len(order))
        if max_tokens is not None:
            longest = np.maximum.accumulate(encoded.lengths[order[start:stop]])
            fits = longest * np.arange(1, stop - start + 1) <= max_tokens
            stop = start + max(int(fits.sum()), 1)
        found.append(order[start:stop])
        start = stop
    if generator is not None:
        generator.shuffle(found)
    return found


def ranked_groups(
    encoded: Encoded,
    batch_size: int,
    generator: np.random.Generator,
    order: np.random.Generator,
    max_tokens: int | None = None,
) -> list[Int[np.ndarray, " batch"]]:
    """As `groups`, with batches cut at the same ranks of length whatever the noise.

    `generator` draws the noise, and so which documents meet; `order` the order of the batches. So
    models of different generators and one order read texts of about equal length at the same time.
    The bound on tokens is kept by the lengths without noise.
    """
    sizes = [len(group) for group in groups(encoded, batch_size, None, max_tokens)]
    noisy = encoded.lengths * generator.uniform(0.9, 1.1, len(encoded))
    parts = np.split(np.argsort(noisy, kind="stable"), np.cumsum(sizes)[:-1])
    return [parts[number] for number in order.permutation(len(parts))]
