"""A stack of bidirectional LSTMs on documents without padding: one after the other, as they are.

Padded, a batch is as long as its longest document, and a stack's as the longest of all models': of
20 Newsgroups more than four fifths of what is computed then is padding. Here every product is over
tokens that are there, and the recurrence (`cluster_kernel`) lets go of a document where it ends.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.models import recurrent
from heedful.models.classifier_stack import ClassifierStack, looked_up


class FlatBatch(NamedTuple):
    """Documents of each model, one after the other."""

    ids: Int[Tensor, "model token"]
    first: Int[Tensor, "model document"]
    """Where each document begins."""
    lengths: Int[Tensor, "model document"]
    """Their tokens."""
    owner: Int[Tensor, "model token"]
    """The document of each token; those after the last document belong to none."""
    labels: Int[Tensor, "model document"]


class FlatPass(NamedTuple):
    """One forward pass of every model."""

    logits: Float[Tensor, "model document class"]
    values: Float[Tensor, "model token dim"]
    attention: Float[Tensor, "model token"]
    """Of its own document."""
    inputs: Float[Tensor, "model token input"]


def flat_of(
    lengths: Int[Tensor, "model document"], tokens: int
) -> tuple[Int[Tensor, "model document"], Int[Tensor, "model token"]]:
    """Where documents of these lengths begin, laid one after the other, and who owns each token."""
    ends = lengths.cumsum(-1)
    place = torch.arange(tokens, device=lengths.device).expand(len(lengths), tokens)
    owner = torch.searchsorted(ends, place.contiguous(), right=True)
    return ends - lengths, owner


def fits(stack: ClassifierStack) -> bool:
    """Whether the stack's recurrence has a cluster's kernel where it is, and nothing stands by."""
    config = stack.config
    is_plain = config.encoder == "bilstm" and config.layers == 1 and config.join == "none"
    if not is_plain or config.marks or config.instance_query or config.dropout:
        return False
    weight = stack.weights["level.encoder.cells.weight_hh_l0"]
    if not weight.is_cuda or weight.dtype != torch.float32:
        return False
    return recurrent.is_clustered(weight.shape[-1], weight.device)


def passed(stack: ClassifierStack, batch: FlatBatch) -> FlatPass:
    """All models on their documents, as `stack.passed` has them on padded ones."""
    from heedful.models import cluster_kernel

    models = len(stack)
    inputs = looked_up(stack.weights["embedding.weight"], batch.ids[..., None])[..., 0, :]
    ends = "", "_reverse"
    inward, outward, of_input, of_state = (
        torch.cat([stack.weights[f"level.encoder.cells.{kind}_l0{end}"] for end in ends])
        for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    gates = torch.baddbmm(
        (of_input + of_state)[:, None], torch.cat([inputs, inputs]), inward.transpose(1, 2)
    )
    where = cluster_kernel.Documents(batch.first.repeat(2, 1), batch.lengths.repeat(2, 1), models)
    states = cluster_kernel.ragged(gates, outward.transpose(1, 2), where)
    values = torch.cat([states[:models], states[models:]], -1)
    scores = stack.scores(values[:, :, None])[..., 0]
    documents = torch.arange(batch.first.shape[1], device=values.device)
    is_own = batch.owner[:, None] == documents[:, None]
    attention = scores[:, None].masked_fill(~is_own, -torch.inf).softmax(-1)
    logits = stack.head(attention @ values)
    return FlatPass(logits, values, attention.sum(1), inputs)
