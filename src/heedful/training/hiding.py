"""Training a model to keep its attention off the words it decides by (Pruthi et al. 2020, §3)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from heedful.corpora.batches import Batch, batches
from heedful.corpora.encoded import EncodedCorpus
from heedful.models.classifier import AttentionClassifier, Pass, sentences
from heedful.runs.randomness import numpy_generator, seeded


def hiding(passed: Pass, batch: Batch) -> Float[Tensor, ""]:
    """-log(1 - attention on evidence), averaged over documents: large while evidence is attended.

    In a hierarchical model the evidence is the sentences that hold evidence words.
    """
    if batch.evidence is None:
        raise ValueError("hiding attention from evidence needs documents whose evidence is known.")
    known = batch.evidence & batch.mask
    if passed.mask.shape != known.shape or passed.attended.scores.shape != known.shape:
        of_token = sentences(batch).unit_of_token
        spread = torch.zeros(passed.mask.shape, device=known.device)
        known = spread.scatter_add(1, of_token, known.to(spread)) > 0
    attention = passed.attended.scores.softmax(-1)
    shown = (attention * known).sum(-1).clamp_max(1 - 1e-6)
    return -torch.log1p(-shown).mean()


def fit_hiding(
    model: AttentionClassifier,
    corpus: EncodedCorpus,
    strength: float = 1.0,
    *,
    epochs: int = 20,
    learning_rate: float = 0.02,
    seed: int = 0,
) -> None:
    """Trains in place on cross-entropy plus `strength` times the hiding penalty."""
    optimiser = torch.optim.Adam(model.parameters(), learning_rate)
    model.train()
    with seeded(seed):
        for epoch in range(epochs):
            order = numpy_generator(seed, "hiding", epoch)
            for batch in batches(corpus.splits["train"], 32, order):
                passed: Pass = model(batch)
                loss = functional.cross_entropy(passed.logits, batch.labels)
                loss = loss + strength * hiding(passed, batch)
                optimiser.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                optimiser.step()
    model.eval()
