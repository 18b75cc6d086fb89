"""What is asked of a model while it learns, beside the right class."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from heedful.corpora.batches import Batch
from heedful.corpora.vocabulary import MASK, SPECIALS
from heedful.errors import InputError
from heedful.models.classifier import AttentionClassifier, Pass
from heedful.models.recipe import Penalties

MASKED_SHARE = 0.15
"""Share of words that the masked-word objective asks for."""


def check(model: AttentionClassifier, penalties: Penalties) -> None:
    """Raises when the penalties do not fit the model."""
    config = model.config
    states = config.embedding_dim if config.encoder == "none" else config.width
    if (penalties.tying or penalties.masked_words) and states != config.embedding_dim:
        raise InputError(
            f"tying and masked words compare states (width {states}) with embeddings "
            f"(embedding_dim {config.embedding_dim}), which must be equal; set width to "
            f"{config.embedding_dim}."
        )


def loss(model: AttentionClassifier, batch: Batch, penalties: Penalties) -> Float[Tensor, ""]:
    """Mean cross-entropy plus the weighted penalties."""
    inputs = model.embed(batch)
    passed = model.from_inputs(inputs, batch)
    total = functional.cross_entropy(passed.logits, batch.labels)
    if penalties.tying:
        total = total + penalties.tying * tying(passed, inputs, batch.mask)
    if penalties.masked_words:
        total = total + penalties.masked_words * masked_words(model, batch)
    return total


def tying(
    passed: Pass, inputs: Float[Tensor, "batch token dim"], mask: Bool[Tensor, "batch token"]
) -> Float[Tensor, ""]:
    """Mean squared distance between each word's state and its embedding.

    The mean runs over real tokens and over dimensions, so that the published strengths 10 to 30 are
    sensible values; the literal formula sums over dimensions (faithful.md §2.3).
    """
    difference: Tensor = (passed.word_states - inputs)[mask]
    return difference.square().mean()


def masked_words(model: AttentionClassifier, batch: Batch) -> Float[Tensor, ""]:
    """Cross-entropy of the words hidden from the encoder, summed over them, per document.

    The output table is the frozen input table, without a bias (faithful.md §2.4).
    """
    corrupted, chosen = corrupt(batch.ids, batch.mask, len(model.vocabulary))
    if not bool(chosen.any()):
        return model.embedding.weight.new_zeros(())
    states = model(replace(batch, ids=corrupted)).word_states[chosen]
    logits = states @ model.embedding.weight.T
    return functional.cross_entropy(logits, batch.ids[chosen], reduction="sum") / len(batch)


def corrupt(
    ids: Int[Tensor, "batch token"], mask: Bool[Tensor, "batch token"], vocabulary: int
) -> tuple[Int[Tensor, "batch token"], Bool[Tensor, "batch token"]]:
    """Ids with some words hidden, and which words those are.

    15 % of the ordinary words are chosen; of these 80 % become the mask symbol, 10 % a random word
    and 10 % stay.
    """
    chosen = (
        (torch.rand(ids.shape, device=ids.device) < MASKED_SHARE) & mask & (ids >= len(SPECIALS))
    )
    fate = torch.rand(ids.shape, device=ids.device)
    others = torch.randint(len(SPECIALS), vocabulary, ids.shape, device=ids.device)
    corrupted = torch.where(chosen & (fate < 0.8), MASK, ids)
    return torch.where(chosen & (fate >= 0.9), others, corrupted), chosen
