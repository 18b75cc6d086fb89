"""Training a model to keep its attention off the words it decides by (Pruthi et al. 2020, §3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from heedful.corpora.batches import Batch, batches
from heedful.corpora.encoded import EncodedCorpus
from heedful.errors import InputError
from heedful.models.classifier import AttentionClassifier, Pass, sentences
from heedful.models.huggingface import PretrainedClassifier
from heedful.models.huggingface.pieces import framed
from heedful.models.transformer import TransformerClassifier
from heedful.runs.randomness import numpy_generator, seeded
from heedful.training.optimisers import descend

Trainable = AttentionClassifier | TransformerClassifier | PretrainedClassifier


class DecisionPass(NamedTuple):
    """A decision with the audited attention behind it, both with gradients."""

    logits: Float[Tensor, "batch class"]
    attention: Float[Tensor, "batch unit"]
    known: Bool[Tensor, "batch unit"]
    """Units that hold evidence; in a hierarchical model sentences with evidence words."""


def attended(model: Trainable, batch: Batch) -> DecisionPass:
    """The decisions on a batch, what the audited attention shows, and what it should not."""
    if batch.evidence is None:
        raise InputError("Hiding attention from evidence needs documents with known evidence.")
    known = batch.evidence & batch.mask
    if isinstance(model, PretrainedClassifier):
        return _of_pretrained(model, batch, known)
    if isinstance(model, TransformerClassifier):
        pooled = model(batch)
        return DecisionPass(pooled.logits, pooled.pooled.scores.softmax(-1), known)
    passed: Pass = model(batch)
    scores = passed.attended.scores
    if scores.shape != known.shape:
        spread = torch.zeros(passed.mask.shape, device=known.device)
        known = spread.scatter_add(1, sentences(batch).unit_of_token, known.to(spread)) > 0
    return DecisionPass(passed.logits, scores.softmax(-1), known)


def _of_pretrained(
    model: PretrainedClassifier, batch: Batch, known: Bool[Tensor, "batch token"]
) -> DecisionPass:
    """The row of the position that is read, over pieces; special tokens are left out."""
    frame = framed(batch, model.subwords)
    found = model.model(**model.inputs_of(frame), output_attentions=True)
    weights = found.attentions[-1].mean(1)
    position = model.layout.position(frame.mask)[:, None, None].expand(-1, 1, weights.shape[2])
    row = frame.at_pieces(weights.gather(1, position)[:, 0]) * batch.mask
    return DecisionPass(found.logits, row / row.sum(-1, keepdim=True).clamp_min(1e-9), known)


def hiding(found: DecisionPass) -> Float[Tensor, ""]:
    """The mean of -log(1 - attention on evidence): large while evidence is attended."""
    shown = (found.attention * found.known).sum(-1).clamp_max(1 - 1e-6)
    return -torch.log1p(-shown).mean()


def fit_hiding(
    model: Trainable,
    corpus: EncodedCorpus,
    strength: float = 1.0,
    *,
    epochs: int = 20,
    learning_rate: float = 0.02,
    seed: int = 0,
) -> None:
    """Trains in place on cross-entropy plus `strength` times the hiding penalty."""
    added = (lambda found: strength * hiding(found)) if strength else None
    fit_attended(model, corpus, added, "hiding", epochs, learning_rate, seed)


def fit_attended(
    model: Trainable,
    corpus: EncodedCorpus,
    added: Callable[[DecisionPass], Float[Tensor, ""]] | None,
    name: str,
    epochs: int,
    learning_rate: float,
    seed: int,
) -> None:
    """Trains in place on cross-entropy plus what is `added`; batches are drawn under the name."""
    free = [weight for weight in model.parameters() if weight.requires_grad]
    optimiser = torch.optim.Adam(free, learning_rate)
    model.train()
    with seeded(seed):
        for epoch in range(epochs):
            order = numpy_generator(seed, name, epoch)
            for batch in batches(corpus.splits["train"], 32, order):
                found = attended(model, batch)
                loss = functional.cross_entropy(found.logits, batch.labels)
                if added is not None:
                    loss = loss + added(found)
                descend(optimiser, loss, clip_norm=5.0)
    model.eval()
