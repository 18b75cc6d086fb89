"""A model lent with its attention in our hands, and given back as it was.

Models on the library's attention interface are switched to one function registered here, together
with the mask function it needs: without that one padding would be attended. All others are watched
for the softmax over keys, or for the fused attention they call. What is done with each call is a
handler, kept in a context variable while the model is lent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from jaxtyping import Float
from torch import Tensor, nn

from heedful.errors import UnsupportedModel
from heedful.models.huggingface.calls import Call, call_of
from heedful.models.huggingface.softmaxes import Change, Softmaxes

if TYPE_CHECKING:
    from transformers import PreTrainedModel

EAGER, FUSED = "heedful_eager", "heedful_fused"
"""Our names in the attention interface: with the eager masks, and with those of fused attention."""

Handle = Callable[[Call], Float[Tensor, "batch query head dim"]]
"""From a call to what the layer hands on."""


@dataclass
class WatchedPass:
    """One forward pass as it is watched: how many calls of attention it made so far."""

    handle: Handle
    calls: int = 0

    def next(self) -> int:
        """The number of this call."""
        self.calls += 1
        return self.calls - 1


_ACTIVE: ContextVar[WatchedPass] = ContextVar("heedful's view of the forward pass that is running")


def _attention(
    is_fused: bool,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    given: dict[str, Any],
) -> tuple[Tensor, None]:
    watched = _ACTIVE.get()
    call = call_of(watched.next(), module, query, key, value, attention_mask, is_fused, given)
    return watched.handle(call), None


def _eager(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor,
    attention_mask: Tensor | None, **given: Any,
) -> tuple[Tensor, None]:  # fmt: skip
    return _attention(False, module, query, key, value, attention_mask, given)


def _fused(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor,
    attention_mask: Tensor | None, **given: Any,
) -> tuple[Tensor, None]:  # fmt: skip
    return _attention(True, module, query, key, value, attention_mask, given)


@cache
def _register() -> None:
    """Makes our functions known to the library, each with the masks it needs."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask, sdpa_mask

    for name, function, mask in ((EAGER, _eager, eager_mask), (FUSED, _fused, sdpa_mask)):
        AttentionInterface.register(name, function)
        AttentionMaskInterface.register(name, mask)


def pretrained_parts(model: nn.Module) -> list[PreTrainedModel]:
    """The library's models in a module: itself, or the outermost ones inside it."""
    from transformers import PreTrainedModel

    if isinstance(model, PreTrainedModel):
        return [model]
    return [part for child in model.children() for part in pretrained_parts(child)]


_TAKING: dict[type[nn.Module], bool] = {}
"""Whether models of a class let their attention be chosen."""


def _takes(part: PreTrainedModel) -> bool:
    """Whether the library lets this model's attention be chosen; it looks once per class."""
    if type(part) not in _TAKING:
        _register()
        before = part.config._attn_implementation
        noise = logging.getLogger("transformers.modeling_utils")
        level = noise.level
        noise.setLevel(logging.ERROR)  # a model off the interface only warns; we look ourselves
        try:
            part.set_attn_implementation(EAGER)
            _TAKING[type(part)] = part.config._attn_implementation == EAGER
        finally:
            part.set_attn_implementation(before)
            noise.setLevel(level)
    return _TAKING[type(part)]


def is_on_interface(model: nn.Module) -> bool:
    """Whether the attention function of this model can be chosen."""
    parts = pretrained_parts(model)
    return bool(parts) and all(map(_takes, parts))


@contextmanager
def _switched(model: nn.Module, name: str) -> Iterator[None]:
    """Lends a model of the interface on another attention backend."""
    from transformers import PreTrainedModel

    configs = {id(m.config): m.config for m in model.modules() if isinstance(m, PreTrainedModel)}
    before = {key: config._attn_implementation_internal for key, config in configs.items()}
    try:
        for config in configs.values():
            config._attn_implementation_internal = name
        yield
    finally:
        for key, config in configs.items():
            config._attn_implementation_internal = before[key]


@contextmanager
def attending(model: nn.Module, change: Change) -> Iterator[WatchedPass]:
    """Lends the model with `change` between its scores and its attention weights.

    `change` gets the number of the call in the forward pass (that of the layer, where a layer
    attends once) and the scores with masks added, and returns the weights to use; `calls.softmax`
    changes nothing. Run one forward pass inside. No class is patched, and the backend is given back
    whatever happens. The pass counts the calls, so that attention is never silently empty.

    >>> import torch
    >>> from heedful.models.huggingface.calls import softmax
    >>> from transformers import BertConfig, BertForSequenceClassification
    >>> sizes = dict(hidden_size=8, num_attention_heads=2, num_hidden_layers=3, vocab_size=9)
    >>> model = BertForSequenceClassification(BertConfig(intermediate_size=8, **sizes)).eval()
    >>> with attending(model, lambda layer, scores: softmax(scores)) as watched:
    ...     logits = model(torch.tensor([[1, 2, 3]])).logits
    >>> watched.calls, model.config._attn_implementation
    (3, 'sdpa')
    """
    watched = WatchedPass(lambda call: call.mixed(change(call.number, call.scores())))
    if is_on_interface(model):
        with _switched(model, EAGER), _watching(watched):
            yield watched
    else:
        with Softmaxes(watched.next, change):
            yield watched


@contextmanager
def handling(model: nn.Module, handle: Handle, is_fused: bool) -> Iterator[WatchedPass]:
    """Lends the model with every call of its attention given to `handle`; interface models only.

    With `is_fused` the model stays on fused kernels: `call.output()` is what it would hand on.
    """
    if not is_on_interface(model):
        raise UnsupportedModel(
            f"{type(model).__name__} is not on the attention interface of transformers."
        )
    watched = WatchedPass(handle)
    with _switched(model, FUSED if is_fused else EAGER), _watching(watched):
        yield watched


@contextmanager
def _watching(watched: WatchedPass) -> Iterator[None]:
    token = _ACTIVE.set(watched)
    try:
        yield
    finally:
        _ACTIVE.reset(token)
