"""What every layer saw and handed on, from the model's own fused kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.errors import UnsupportedModel
from heedful.models.followed import Followed
from heedful.models.huggingface.attending import handling
from heedful.models.huggingface.calls import Call
from heedful.models.huggingface.entering import keeping_calls
from heedful.models.huggingface.layout import logits_of, starting_at
from heedful.models.huggingface.pieces import framed
from heedful.models.tracing import Explicit, Fused, Layer
from heedful.models.verbs import frozen

if TYPE_CHECKING:
    from heedful.corpora.batches import Batch
    from heedful.models.huggingface.classifier import PretrainedClassifier


def follow(classifier: PretrainedClassifier, batch: Batch) -> Followed:
    """The layers of one pass, with the values of their keys."""
    _check(classifier)
    layers: list[Layer] = []
    values: list[Tensor] = []

    def handle(call: Call) -> Tensor:
        layers.append(classifier.layer_of(call))
        values.append(call.value)
        return call.output()

    frame = framed(batch, classifier.subwords)
    with torch.no_grad(), handling(classifier.model, handle, classifier.is_fused):
        classifier.run(classifier.inputs_of(frame))
    return Followed(classifier.stack_of(layers, frame), tuple(values))


def value_products(
    classifier: PretrainedClassifier, batch: Batch, target: Int[Tensor, " batch"]
) -> Float[Tensor, "batch layer*head token"]:
    """⟨v_k, ∂p_y/∂v_k⟩ of every layer and head at the pieces of the texts.

    After a pass that keeps what enters each layer, gradients go down layer by layer, each run once
    more: the memory is that of one layer, whatever their number, and weights get no gradient.
    """
    _check(classifier)
    values: list[Tensor] = []

    def handle(call: Call) -> Tensor:
        if torch.is_grad_enabled():
            values.append(call.value)
        return call.output()

    frame = framed(batch, classifier.subwords)
    inputs = classifier.inputs_of(frame)
    layout, found = classifier.layout, []
    with frozen(classifier), handling(classifier.model, handle, classifier.is_fused):
        with torch.no_grad(), keeping_calls(layout) as entered:
            classifier.run(inputs)
        last = len(entered) - 1
        hidden = entered[last].hidden.detach().requires_grad_()
        with torch.enable_grad(), starting_at(layout, last, hidden, {}):
            logits = logits_of(classifier.run(inputs))
            # In 64 bits: the slope of a sure model's probability rounds to 0 in fewer.
            after = logits.double().softmax(-1).gather(1, target[:, None]).sum()
        slope = torch.ones_like(after)
        for place in range(last, -1, -1):
            if place < last:
                values.clear()
                hidden = entered[place].hidden.detach().requires_grad_()
                with torch.enable_grad():
                    after = entered[place].once_more(hidden)
            slope, of_value = torch.autograd.grad(after, [hidden, values[0]], slope)
            found.append((values[0].detach() * of_value).sum(-1))
    return classifier.stack_of((), frame).of_batch(torch.cat(found[::-1], 1))


def _check(classifier: PretrainedClassifier) -> None:
    if not classifier.shows_values:
        raise UnsupportedModel(
            "The values of this model's layers cannot be seen: it is not on the attention "
            "interface of transformers, or its layers are not one plain stack."
        )


def layer_of(call: Call) -> Layer:
    """A call of attention as tracing sees it: fused, unless its scores are bent by a cap.

    Queries that see nothing (padding, for some masks) see everything.
    """
    if call.cap is not None:
        return Explicit(call.weights())
    mask = call.mask
    if mask is not None and mask.dtype == torch.bool:
        is_blind = ~mask.any(-1, keepdim=True)
        mask = mask | is_blind if bool(is_blind.any()) else mask
    if call.bias is not None:
        hidden = torch.finfo(call.bias.dtype).min
        if mask is None:
            mask = call.bias
        elif mask.dtype == torch.bool:
            mask = call.bias.masked_fill(~mask, hidden)
        else:
            mask = call.bias + mask
    return Fused(call.query, call.key, mask, call.is_causal, call.scale)
