"""What is asked of a model while it learns, beside the right class."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from heedful.corpora.batches import Batch
from heedful.corpora.vocabulary import MASK, SPECIALS
from heedful.errors import InputError
from heedful.models.classifier import AttentionClassifier, Pass
from heedful.models.recipe import ModelConfig, Penalties

MASKED_SHARE = 0.15
"""Share of words that the masked-word objective asks for."""
LOGITS = {"cpu": 2**26, "cuda": 2**29}
"""Logits of hidden words held at a time, over all models: 256 MiB of float32, and 2 GiB on a GPU,
whose products with few rows leave most of it idle."""


def check(config: ModelConfig, penalties: Penalties) -> None:
    """Raises when the penalties do not fit the model."""
    states = config.embedding_dim if config.encoder == "none" else config.width
    if (penalties.tying or penalties.masked_words) and states != config.embedding_dim:
        raise InputError(
            f"tying and masked words compare states (width {states}) with embeddings "
            f"(embedding_dim {config.embedding_dim}), which must be equal; set width to "
            f"{config.embedding_dim}."
        )
    if penalties.masked_words and not config.freeze_embeddings:
        raise InputError(
            "masked words are guessed with the table that the words are read from, which must not "
            "move; set freeze_embeddings to true."
        )
    is_dot = config.attention in ("dot", "scaled-dot") and not config.instance_query
    if penalties.alignment and not (is_dot and config.join != "concat"):
        raise InputError(
            "the V·W penalty needs one query in the space of the values (dot or scaled-dot "
            f"attention, no concat), got {config.encoder}+{config.attention}."
        )


def alignment(model: AttentionClassifier) -> Float[Tensor, ""]:
    """|V·W|: how far the query points along the head; summed over classes where there are several.

    The raw inner product, not divided by λ (docs/studies/polarity.md, "The penalty"). Behind an
    affine map M both are taken back to the words first: |Wᵀ M Mᵀ V|. The derivative at 0 is 0.
    """
    attention = model.level.attention
    query, head = attention.query.weight[0], model.head.weight  # type: ignore[union-attr, index]
    if model.config.encoder == "affine":
        through: Tensor = model.level.encoder.linear.weight  # type: ignore[union-attr, assignment]
        query, head = query @ through, head @ through
    return (head @ query).abs().sum()


def loss(
    model: AttentionClassifier,
    batch: Batch,
    penalties: Penalties,
    class_weights: Float[Tensor, "class"] | None = None,
) -> Float[Tensor, ""]:
    """Mean cross-entropy, its classes weighed where asked for, plus the weighted penalties."""
    passed, added = with_penalties(model, batch, penalties)
    return functional.cross_entropy(passed.logits, batch.labels, class_weights) + added


class Penalised(NamedTuple):
    """A forward pass and what the penalties add to its loss."""

    passed: Pass
    added: Float[Tensor, ""]


def with_penalties(model: AttentionClassifier, batch: Batch, penalties: Penalties) -> Penalised:
    """The pass over the batch and the weighted sum of the penalties, in one call of the model.

    With masked words the clean and the masked documents are stacked: the same weights read both,
    and a recurrent encoder hardly takes longer for twice the rows.
    """
    count = len(batch)
    if penalties.masked_words:
        corrupted, chosen = corrupt(batch.ids, batch.mask, len(model.vocabulary))
        both = replace(batch.repeated(2), ids=torch.cat([batch.ids, corrupted]))
    else:
        both = batch
    inputs = model.embed(both)
    whole = model.from_inputs(inputs, both)
    passed = whole if both is batch else _first(whole, count)
    added = whole.logits.new_zeros(())
    if penalties.tying:
        apart = tying(passed, inputs[:count], batch.mask, penalties.tying_over)
        added = added + penalties.tying * apart
    if penalties.masked_words:
        states = whole.word_states[count:]
        missed = guesses(model, states, batch.ids, chosen, penalties.masked_over)
        added = added + penalties.masked_words * missed
    if penalties.alignment:
        added = added + penalties.alignment * alignment(model)
    return Penalised(passed, added)


def _first(whole: Pass, count: int) -> Pass:
    """The first documents of a pass."""
    attended = whole.attended._replace(
        **{name: part[:count] for name, part in whole.attended._asdict().items()}
    )
    return Pass(whole.logits[:count], attended, whole.mask[:count], whole.word_states[:count])


def tying(
    passed: Pass,
    inputs: Float[Tensor, "batch token dim"],
    mask: Bool[Tensor, "batch token"],
    over: str = "mean",
) -> Float[Tensor, ""]:
    """Mean squared distance between each word's state and its embedding.

    The mean runs over real tokens and over dimensions, so that the published strengths 10 to 30 are
    sensible values; the literal formula sums over dimensions (docs/studies/faithful.md,
    "Remedies"): `over="sum"`.
    """
    difference: Tensor = (passed.word_states - inputs)[mask]
    mean = difference.square().mean()
    return mean * difference.shape[-1] if over == "sum" else mean


def guesses(
    model: AttentionClassifier,
    states: Float[Tensor, "batch token dim"],
    ids: Int[Tensor, "batch token"],
    chosen: Bool[Tensor, "batch token"],
    over: str = "documents",
) -> Float[Tensor, ""]:
    """Cross-entropy of the words hidden from the encoder, summed over them, per document.

    `over="words"` divides by the hidden words instead. The output table is the frozen input table,
    without a bias; only the hidden words meet it (docs/studies/faithful.md, "Masked words").
    """
    summed = guessed(states[chosen], model.embedding.weight, ids[chosen]).sum()
    return summed / (len(ids) if over == "documents" else chosen.sum().clamp_min(1))


def guessed(
    states: Float[Tensor, "*model place dim"],
    table: Float[Tensor, "*model word dim"],
    gold: Int[Tensor, "*model place"],
) -> Float[Tensor, "*model place"]:
    """Cross-entropy of the word at each place, -log softmax(E h), of one model or of several.

    Several models guess the same words, or with a model axis each its own.

    The table E is a constant and gets no gradient. That of a state is E's mean under the softmax
    less its gold row; both are taken from the same logits, a few places at a time, so that no
    place's logits outlive their turn.
    """
    losses: Tensor = _Guessed.apply(states, table, gold)  # type: ignore[no-untyped-call]
    return losses


class _Guessed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, table: Tensor, gold: Tensor) -> Tensor:
        mean, norm = torch.empty_like(states), states.new_empty(states.shape[:-1])
        held = LOGITS.get(states.device.type, LOGITS["cpu"])
        rows = max(1, held // (states.shape[:-2].numel() * table.shape[-2]))
        for at in range(0, states.shape[-2], rows):
            here = slice(at, at + rows)
            logits = states[..., here, :] @ table.mT
            top = logits.amax(-1, keepdim=True)
            odds = logits.sub_(top).exp_()
            total = odds.sum(-1, keepdim=True)
            mean[..., here, :] = odds @ table / total
            norm[..., here] = (top + total.log())[..., 0]
        if gold.dim() == 1:
            right = table.index_select(-2, gold)
        else:
            right = table.gather(1, gold[..., None].expand(-1, -1, table.shape[-1]))
        ctx.save_for_backward(mean - right)
        return norm - (states * right).sum(-1)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (downhill,) = ctx.saved_tensors
        return gradients[0][..., None] * downhill, None, None


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
