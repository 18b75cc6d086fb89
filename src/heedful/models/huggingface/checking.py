"""Whether a model is what we take it for, checked on a small padded batch when it is opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from heedful.errors import UnsupportedModel
from heedful.models.huggingface.attending import attending, pretrained_parts
from heedful.models.huggingface.calls import softmax
from heedful.models.huggingface.layout import Inputs, Layout, layout_of, logits_of

CLOSE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 5e-3}
"""How far our attention may be from the library's, and a text in a batch from the same text alone.

Thousands of unit roundoffs: sums are taken in another order on every processor, while a mask that
is forgotten changes logits by a twentieth and more.
"""
SUPPORTED = (
    "albert", "bart", "bert", "deberta-v2", "distilbert", "electra", "gpt2", "llama", "modernbert",
    "mpnet", "rembert", "roberta", "t5", "xlm-roberta", "xlnet",
)  # fmt: skip
"""Model types with tests of their own (docs/architectures.md); others are tried and checked."""


def checked_layout(
    model: nn.Module,
    run: Callable[[Inputs], Any],
    probes: Sequence[Inputs],
    layers: int | None = None,
) -> Layout:
    """The model's layout, once its attention in our hands has been seen to change nothing.

    `probes` are some texts beside each other and the second of them alone; `layers` is how often
    the model should attend, where that is known. The logits must equal those of the untouched
    model, and a text's logits must not depend on the texts beside it.
    """
    together, alone = probes
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            before = logits_of(run(together))
            with attending(model, lambda call, scores: softmax(scores)) as watched:
                ours = logits_of(run(together))
            by_itself = logits_of(run(alone))
        name, close = _name(model), CLOSE.get(before.dtype, 1e-4)
        if watched.calls != (layers if layers is not None else watched.calls) or not watched.calls:
            raise UnsupportedModel(
                f"{name} attended {watched.calls} times where heedful could see it, expected "
                f"{layers}; {_advice()}"
            )
        difference = _relative(ours, before)
        if not difference <= close:
            raise UnsupportedModel(
                f"{name} decides otherwise with its attention in heedful's hands (relative "
                f"difference {difference:.2g}, allowed {close:.0e}); {_advice()}"
            )
        padded = _relative(by_itself, before[1:2])
        if not padded <= close:
            raise UnsupportedModel(
                f"{name} decides otherwise when a longer text stands beside a text (relative "
                f"difference {padded:.2g}): padding is read. Check the tokenizer's padding_side "
                "and that pad_token_id is the same in config.json and in the tokenizer."
            )
        return layout_of(model, together, run)
    finally:
        model.train(was_training)


def _name(model: nn.Module) -> str:
    parts = pretrained_parts(model)
    return f"Model type {parts[0].config.model_type!r}" if parts else type(model).__name__


def _advice() -> str:
    return (
        f"supported and tested are {', '.join(SUPPORTED)} (docs/architectures.md). Try the model "
        "with attn_implementation='eager', or open an issue with its config.json."
    )


def _relative(one: Tensor, other: Tensor) -> float:
    scale = other.double().abs().amax().clamp_min(1e-3)
    return float((one.double() - other.double()).abs().amax() / scale)
