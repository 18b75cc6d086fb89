"""Readings made by hand, with a linear head, and what erasing does to them by plain arithmetic."""

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float

from heedful.corpora.batches import Batch
from heedful.models import AttentiveModel, Reading


def model_of(classes: int) -> AttentiveModel:
    """A model that is only asked for its classes: with a linear head the reading says the rest."""
    return cast(
        AttentiveModel, SimpleNamespace(classes=tuple(f"class {c}" for c in range(classes)))
    )


def reading_of(
    attention: Sequence[Sequence[float]],
    said: Sequence[Any],
    offset: Sequence[float] | None = None,
    labels: Sequence[int] | None = None,
    evidence: Sequence[Sequence[int]] | None = None,
    padding: int = 0,
    scores: Sequence[Sequence[float]] | None = None,
) -> Reading:
    """A reading of documents with the given attention rows and unit logits."""
    count, classes = len(attention), np.asarray(said[0]).shape[-1]
    width = max(map(len, attention)) + padding
    mask = np.zeros((count, width), dtype=bool)
    weights, logs = np.zeros((count, width)), np.full((count, width), -np.inf)
    # What stands at padding must never be read: a large number would show.
    unit_logits, known = np.full((count, width, classes), 1e3), np.zeros((count, width), dtype=bool)
    for row, (weight, logit) in enumerate(zip(attention, said, strict=True)):
        n = len(weight)
        mask[row, :n], weights[row, :n], unit_logits[row, :n] = True, weight, logit
        with np.errstate(divide="ignore"):
            logs[row, :n] = np.log(weight) if scores is None else scores[row]
        if evidence is not None:
            known[row, list(evidence[row])] = True
    bias = np.zeros(classes) if offset is None else np.asarray(offset, dtype=float)
    logits = np.einsum("bu,buc->bc", weights, unit_logits) + bias
    position = torch.arange(width).expand(count, width)
    batch = Batch(
        ids=torch.from_numpy(mask.astype(np.int64) * 3),
        mask=torch.from_numpy(mask),
        labels=torch.tensor([-1] * count if labels is None else list(labels)),
        sentence=torch.zeros(count, width, dtype=torch.long),
        names=tuple(f"document {row}" for row in range(count)),
        evidence=None if evidence is None else torch.from_numpy(known),
    )
    return Reading(
        batch=batch,
        texts=tuple(tuple(f"u{i}" for i in range(len(weight))) for weight in attention),
        mask=batch.mask,
        values=torch.zeros(count, width, 1),
        scores=torch.from_numpy(logs),
        attention=torch.from_numpy(weights),
        logits=torch.from_numpy(logits),
        inputs=torch.zeros(count, width, 1),
        unit_of_token=position,
        unit_logits=torch.from_numpy(unit_logits),
        offset=torch.from_numpy(np.tile(bias, (count, 1))),
    )


def random_reading(
    lengths: Sequence[int],
    classes: int,
    seed: int = 0,
    sharpness: float = 2.0,
    bias: float = 0.5,
    **others: Any,
) -> Reading:
    """Random attention and unit logits for documents of the given lengths."""
    generator = np.random.default_rng(seed)
    scores = [sharpness * generator.normal(size=n) for n in lengths]
    attention = [np.exp(s) / np.exp(s).sum() for s in scores]
    said = [2 * generator.normal(size=(n, classes)) for n in lengths]
    offset = bias * generator.normal(size=classes)
    return reading_of([list(a) for a in attention], said, list(offset), **others)


def logits_with(reading: Reading, document: int, kept: Iterable[int]) -> Float[np.ndarray, "class"]:
    """The logits of one document when only some units are attended: renormalised, one by one."""
    assert reading.unit_logits is not None
    assert reading.offset is not None
    kept = list(kept)
    weights = reading.attention[document].tolist()
    total = sum(weights[i] for i in kept)
    logits = reading.offset[document].numpy().copy()
    for i in kept:
        logits = logits + weights[i] / total * reading.unit_logits[document, i].numpy()
    return logits


def softmax(logits: Float[np.ndarray, "class"]) -> Float[np.ndarray, "class"]:
    """Probabilities."""
    exponent = np.exp(logits - logits.max())
    return exponent / exponent.sum()
