"""How likely an answer is when sources are removed from its prompt, sharing what precedes them.

A prompt is a row of parts, each cut into pieces for itself, so that removing a part removes its
pieces and nothing else. After a removal later pieces stand at earlier positions and see other keys,
so all of them are read again; what precedes the first difference is kept as keys and values.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.errors import InputError

Parts = Sequence[Sequence[int]]
"""The pieces of each part of a prompt, in order."""


@torch.no_grad()
def answer_log_probabilities(
    model: Any, parts: Parts, answer: Sequence[int], kept: Bool[Tensor, "edit part"]
) -> Float[Tensor, "edit piece"]:
    """log p of each piece of the answer behind the parts that each edit keeps.

    Equal, to rounding, to a plain pass over each shortened prompt. Prompts are read in an order in
    which neighbours share as long a beginning as they can.
    """
    from transformers import DynamicCache

    if not answer:
        raise InputError("The answer has no pieces, so it has no probability.")
    rows = [[piece for n, part in enumerate(parts) if row[n] for piece in part] for row in kept]
    if not all(rows):
        raise InputError("Nothing is left of the prompt; keep what asks the question.")
    cache = DynamicCache()  # of whole keys in windowed layers too, so that it can be cut back
    last_only = of_the_last(model, len(answer))
    found: dict[int, Tensor] = {}
    before: list[int] = []
    for row in sorted(range(len(rows)), key=lambda n: kept[n].tolist(), reverse=True):
        prompt = rows[row]
        read = [*prompt, *answer[:-1]]
        shared = _common(before, read, len(prompt) - 1)  # the prompt's last piece is asked again
        if shared < len(before):
            cache.crop(shared - len(before))
        ids = torch.tensor([read[shared:]], device=model.device)
        logits = model(input_ids=ids, past_key_values=cache, use_cache=True, **last_only).logits[0]
        found[row] = said_of(logits, answer)
        before = read
    return torch.stack([found[row] for row in range(len(rows))])


@torch.no_grad()
def greedy_answer(
    model: Any,
    prompt: Sequence[int],
    most: int,
    is_end: Callable[[Sequence[int], int], bool],
) -> list[int]:
    """The likeliest piece each time, up to the first that ends an answer, which is left out.

    `is_end` is told what was said before a piece, and the piece.
    """
    from transformers import DynamicCache

    cache, read, found = DynamicCache(), list(prompt), list[int]()
    while len(found) < most:
        ids = torch.tensor([read], device=model.device)
        logits = model(
            input_ids=ids, past_key_values=cache, use_cache=True, **of_the_last(model, 1)
        ).logits
        piece = int(logits[0, -1].argmax())
        if is_end(found, piece):
            break
        found.append(piece)
        read = [piece]
    return found


def of_the_last(model: Any, count: int) -> dict[str, int]:
    """What to tell a model that can leave out the logits of all but the last positions."""
    keeps = "logits_to_keep" in inspect.signature(model.forward).parameters
    return {"logits_to_keep": count} if keeps else {}


def said_of(
    logits: Float[Tensor, "position piece"], answer: Sequence[int]
) -> Float[Tensor, " answer"]:
    """log p of each piece of the answer, which the last positions tell."""
    last = logits[-len(answer) :]
    said = last.to(torch.promote_types(last.dtype, torch.float32)).log_softmax(-1)
    return said[range(len(answer)), list(answer)]


def _common(first: Sequence[int], second: Sequence[int], most: int) -> int:
    """How many pieces two prompts begin with alike, at most so many."""
    pairs = zip(first[:most], second[:most], strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(first), most))
