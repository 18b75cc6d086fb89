"""Tiny models and batches for the tests, and the brute force that the verbs are held against."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.corpora.batches import Batch
from heedful.corpora.vocabulary import PAD, SPECIALS, Vocabulary
from heedful.models import AttentionClassifier, Edit, Reading, build, parse
from heedful.models.edits import rows

DIM = 6
WORDS = Vocabulary(SPECIALS + tuple(f"word{index}" for index in range(40)))
DOCUMENTS = ((1,), (2, 1), (1, 3, 2), (4, 1))
"""Words in each sentence of each document."""


def batch_of(documents: tuple[tuple[int, ...], ...] = DOCUMENTS, seed: int = 0) -> Batch:
    """Random words in sentences of the given lengths; sentence numbers have gaps."""
    generator = np.random.default_rng(seed)
    longest = max(map(sum, documents))
    ids = np.full((len(documents), longest), PAD)
    sentence = np.zeros_like(ids)
    for row, lengths in enumerate(documents):
        ids[row, : sum(lengths)] = generator.integers(len(SPECIALS), len(WORDS), sum(lengths))
        numbers = np.repeat(2 * np.arange(len(lengths)), lengths)
        sentence[row] = np.pad(numbers, (0, longest - len(numbers)), mode="edge")
    return Batch(
        ids=torch.from_numpy(ids),
        mask=torch.from_numpy(ids != PAD),
        labels=torch.from_numpy(generator.integers(0, 2, len(documents))),
        sentence=torch.from_numpy(sentence),
        names=tuple(f"document {row}" for row in range(len(documents))),
    )


def chosen(batch: Batch, order: list[int]) -> Batch:
    """Some documents of a batch in the given order, padded no further than they need."""
    index = torch.tensor(order)
    length = int(batch.lengths[index].max())
    return replace(
        batch,
        ids=batch.ids[index, :length],
        mask=batch.mask[index, :length],
        labels=batch.labels[index],
        sentence=batch.sentence[index, :length],
        names=tuple(batch.names[row] for row in order),
        evidence=None if batch.evidence is None else batch.evidence[index, :length],
        documents=None,
    )


def padded(batch: Batch, columns: int) -> Batch:
    """The batch with more padding on the right."""
    last = batch.sentence[:, -1:].expand(-1, columns)
    zero = torch.zeros_like(last)
    return replace(
        batch,
        ids=torch.cat([batch.ids, zero], 1),
        mask=torch.cat([batch.mask, zero.bool()], 1),
        sentence=torch.cat([batch.sentence, last], 1),
        documents=None,
    )


def classifier(
    recipe: str, classes: int = 3, seed: int = 0, sharpness: float = 3.0, **settings: object
) -> AttentionClassifier:
    """A random classifier in float64, its weights enlarged so that attention is far from even."""
    sizes = {"embedding_dim": DIM, "width": DIM} | settings
    config = parse(recipe, **sizes).model
    model = build(config, WORDS, tuple(f"class {c}" for c in range(classes)), seed=seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight *= sharpness
        model.embedding.weight[PAD] = 0
    return model.double().eval()


def brute_force(
    model: AttentionClassifier, batch: Batch, document: int, attention: Float[np.ndarray, " unit"]
) -> Float[np.ndarray, "class"]:
    """The logits of one document, run through the model alone with its attention replaced."""
    alone = chosen(batch, [document])
    with torch.no_grad():
        values = model(alone).attended.values[0]
        context = (torch.from_numpy(attention)[:, None] * values).sum(0)
        said = model.head(context)
    if model.config.one_logit:
        said = torch.cat([torch.zeros(1, dtype=said.dtype), said])
    return said.numpy()


class NonLinear(nn.Module):
    """A classifier read at the same attention, whose head is not linear (or only not used as such).

    `bend` is put between the attended context and the linear head of the classifier inside.
    """

    def __init__(self, inner: AttentionClassifier, bend: nn.Module) -> None:
        super().__init__()
        self.inner, self.bend, self.classes = inner, bend, inner.classes
        self.calls = 0

    def read(self, batch: Batch) -> Reading:
        """The inner reading without the linear shortcut."""
        reading = replace(self.inner.read(batch), unit_logits=None, offset=None)
        logits = self._head(reading, reading.attention[:, None])[:, 0]
        return replace(reading, logits=logits)

    def answer(self, reading: Reading, edit: Edit) -> Float[Tensor, "batch edit class"]:
        """The head on every edited context."""
        self.calls += 1
        return self._head(reading, rows(reading, edit).attention)

    def _head(self, reading: Reading, attention: Tensor) -> Tensor:
        context = torch.einsum("beu,bud->bed", attention, reading.values)
        return self.inner.with_zero(self.inner.head(self.bend(context)))


def assert_close(ours: Tensor, theirs: object, tolerance: float = 1e-10) -> None:
    """Asserts that numbers agree, relatively where they are large; nan equals nan."""
    expected = np.asarray(theirs)
    assert ours.shape == expected.shape
    # Written out since numpy's own assertion is called some ten thousand times here and is slow.
    close = np.abs(ours.numpy() - expected) <= tolerance * (1 + np.abs(expected))
    assert (close | (np.isnan(ours.numpy()) & np.isnan(expected))).all(), f"{ours} != {expected}"
