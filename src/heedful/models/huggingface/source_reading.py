"""What a language model's attention gives to each source of a prompt while it answers.

One pass over prompt and answer on the model's own kernels; of every head only the rows of the
positions that tell the answer's pieces are made, and summed over the pieces of each source.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.models.huggingface.answers import of_the_last, said_of
from heedful.models.huggingface.attending import handling
from heedful.models.huggingface.calls import Call, softmax
from heedful.models.huggingface.following import layer_of
from heedful.models.huggingface.question_prompts import AnswerPrompt
from heedful.models.tracing import Layer, LayerStack, lat, rollout
from heedful.models.verbs import frozen


class SourceReading(NamedTuple):
    """What one pass showed; `answer` counts the pieces of the answer, in order."""

    log_probabilities: Float[Tensor, " answer"]
    attention: Float[Tensor, "layer head answer source"]
    """What the position before each piece of the answer gives to the pieces of each source."""
    first: Float[Tensor, "layer head answer"]
    """What it gives to the first token of the prompt."""
    values: Float[Tensor, "layer head answer source"]
    """The same attention, each key counted by the length of its value."""
    rollout: Float[Tensor, " source"]
    trace: Float[Tensor, " source"]


def read_sources(model: Any, prompt: AnswerPrompt, is_followed: bool = True) -> SourceReading:
    """One pass over the prompt and its answer; without `is_followed` nothing is traced."""
    return _read(model, prompt, 0, None, is_followed)


def read_both(model: Any, prompt: AnswerPrompt, free: AnswerPrompt) -> list[SourceReading]:
    """The reading of a prompt, and of the same sources behind a question without content.

    What both begin with is read once; the second is not traced.
    """
    from transformers import DynamicCache

    cache = DynamicCache()  # of whole keys in windowed layers too, so that it can be cut back
    first = _read(model, prompt, 0, cache, True)
    asked = len(prompt.after) + len(prompt.answer) - 1
    cache.crop(-asked)
    return [first, _read(model, free, len(prompt.pieces) - len(prompt.after), cache, False)]


@torch.no_grad()
def _read(
    model: Any, prompt: AnswerPrompt, known: int, cache: Any, is_followed: bool
) -> SourceReading:
    """The reading of a prompt whose first pieces are known to the cache."""
    answer, rows = prompt.answer, slice(-len(prompt.answer), None)
    whole = [*prompt.pieces, *answer[:-1]]
    ids = torch.tensor([whole[known:]], device=model.device)
    owner = _owner(prompt, len(whole), model.device)
    attention: list[Tensor] = []
    values: list[Tensor] = []
    first: list[Tensor] = []
    layers: list[Layer] = []

    def handle(call: Call) -> Tensor:
        weights = softmax(call.scores(rows))[0]
        attention.append(weights @ owner.to(weights))
        first.append(weights[..., 0])
        lengths = call.value[0].to(weights).norm(dim=-1)
        values.append((weights * lengths[:, None]) @ owner.to(weights))
        if is_followed:
            layers.append(layer_of(call))
        return call.output()

    with handling(model, handle, is_fused=True):
        options = of_the_last(model, len(answer))
        logits = model(
            input_ids=ids, past_key_values=cache, use_cache=cache is not None, **options
        ).logits[0]
    traced = torch.zeros(2, len(prompt.sources), dtype=torch.float64)
    if is_followed:
        start = torch.zeros(1, ids.shape[1], dtype=layers[0].dtype, device=ids.device)
        start[:, rows] = 1 / len(answer)
        stack = LayerStack(tuple(layers), start, torch.ones_like(ids, dtype=torch.bool))
        both = torch.cat([rollout(stack).total, lat(stack).total])
        traced = (both @ owner.to(both)).double().cpu()
    return SourceReading(
        said_of(logits, answer).double().cpu(),
        torch.stack(attention).double().cpu(),
        torch.stack(first).double().cpu(),
        torch.stack(values).double().cpu(),
        traced[0],
        traced[1],
    )


def gradient_by_input(model: Any, prompt: AnswerPrompt) -> Float[Tensor, " source"]:
    """⟨x, ∂ log p(answer) / ∂x⟩ of the word vectors x, summed over the pieces of each source."""
    ids = torch.tensor([[*prompt.pieces, *prompt.answer[:-1]]], device=model.device)
    with frozen(model), torch.enable_grad():
        inputs = model.get_input_embeddings()(ids).detach().requires_grad_()
        options = of_the_last(model, len(prompt.answer))
        logits = model(inputs_embeds=inputs, use_cache=False, **options).logits[0]
        (slope,) = torch.autograd.grad(said_of(logits, prompt.answer).sum(), inputs)
    products = (inputs.detach() * slope).sum(-1)[0].double()
    owner = _owner(prompt, ids.shape[1], ids.device)
    found: Tensor = products @ owner.to(products)
    return found.cpu()


def _owner(prompt: AnswerPrompt, keys: int, device: torch.device) -> Float[Tensor, "key source"]:
    """One where a key is a piece of a source."""
    owner = torch.zeros(keys, len(prompt.sources), device=device)
    start = len(prompt.before)
    for place, source in enumerate(prompt.sources):
        owner[start : start + len(source), place] = 1
        start += len(source)
    return owner
