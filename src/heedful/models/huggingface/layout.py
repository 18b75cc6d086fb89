"""Where attention happens in a model's forward pass, found by watching one.

No table of architectures: which modules are layers, how often they attend, which calls look at the
text from a decoder, and which position the head reads are all measured on one small batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from jaxtyping import Int
from torch import Tensor, nn

from heedful.errors import UnsupportedModel
from heedful.models.huggingface.attending import attending, handling, is_on_interface
from heedful.models.huggingface.calls import Call, softmax

Inputs = Mapping[str, Tensor]
"""What a model is called with: `input_ids`, `attention_mask` and whatever else it takes."""


@dataclass(frozen=True)
class Layout:
    """The layers of a model in the order in which one forward pass enters them."""

    layers: tuple[nn.Module, ...]
    """Layers that attend; one that is shared stands here as often as it is entered."""
    layer_of_call: tuple[int, ...]
    """Which of the layers each call of attention belongs to."""
    audited: tuple[int, ...]
    """The calls that attend to the text: all, or a decoder's cross-attention."""
    ends: tuple[int, ...]
    """Layers whose output others than the next layer read: the top of an encoder."""
    returned: tuple[int, ...]
    """How many values each layer returns; 0 where it returns a tensor by itself."""
    is_skippable: bool
    """Whether layers hand on their hidden states alone, so that a pass can begin at any of them."""
    batch_axis: int
    """The axis of hidden states that counts texts."""
    pooled: Literal["first", "last", "every"]
    """The position that the head reads, counted over real tokens."""
    is_on_interface: bool
    table: nn.Module
    """The table in which the pieces are looked up."""
    projections: tuple[tuple[nn.Module, ...], ...]
    """What makes queries, keys and values in each layer and nothing else; nothing where the layer
    attends more than once or they serve something else too."""
    behind: int = 0
    """Tokens behind the position that decides: those of the labels of a language model."""

    def position(self, mask: Int[Tensor, "batch token"]) -> Int[Tensor, " batch"]:
        """The pooled position of each text; the first where the head reads all of them."""
        real = mask.long()
        if self.pooled == "last":
            place = torch.arange(mask.shape[1], device=mask.device)
            return (real * place).argmax(-1) - self.behind
        return real.argmax(-1)


def logits_of(output: Any) -> Tensor:
    """The logits in what a model returns: a tensor, or an object that has them."""
    logits = output if isinstance(output, Tensor) else getattr(output, "logits", None)
    if not isinstance(logits, Tensor) or logits.dim() != 2:
        raise UnsupportedModel(
            f"Expected logits [batch class] from the model, got {type(output).__name__}; heedful "
            "audits text classifiers."
        )
    return logits


def hidden_argument(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tensor:
    """The hidden states among the arguments of a layer: the first one, or the one of that name."""
    hidden = args[0] if args else kwargs.get("hidden_states")
    if not isinstance(hidden, Tensor):
        raise UnsupportedModel("A layer was called without hidden states as its first argument.")
    return hidden


def hidden_output(output: Any) -> Tensor:
    """The hidden states in what a layer returns."""
    hidden = output[0] if isinstance(output, tuple) else output
    assert isinstance(hidden, Tensor)
    return hidden


def layout_of(
    model: nn.Module, inputs: Inputs, call: Callable[[Inputs], Any] | None = None
) -> Layout:
    """The layout of the model, from one forward pass over a batch with padding.

    The batch must have more texts than one and as many tokens as texts nowhere, so that the axes
    can be told apart.
    """
    run = call or (lambda given: model(**given))
    watcher = _Watcher(model, inputs["input_ids"])
    with torch.no_grad(), watcher, attending(model, watcher.change):
        run(inputs)
    if not watcher.layer_of_call:
        raise UnsupportedModel(
            f"{type(model).__name__} never called attention where heedful can see it: neither the "
            "attention interface, nor a softmax over [batch head query key], nor "
            "scaled_dot_product_attention. See docs/architectures.md for what is supported."
        )
    if watcher.table is None:
        raise UnsupportedModel(
            f"{type(model).__name__} never looks its input_ids up in an nn.Embedding, so heedful "
            "cannot find the vectors of words."
        )
    crossing = [number for number, crosses in enumerate(watcher.crosses) if crosses]
    layers, texts = watcher.layers, len(inputs["attention_mask"])
    ends: tuple[int, ...] = ()
    if crossing:
        first = watcher.layer_of_call[crossing[0]]
        ends = (first - 1,) if first else ()
    # With logits from a classifier's head, only the positions it reads have a gradient.
    hidden, logits = _last_hidden(run, inputs, layers)
    axis = 0 if hidden.shape[0] == texts else 1
    # Unequal factors, so that the gradients of two classes never cancel.
    factors = torch.linspace(1, 2, logits.numel(), device=logits.device).view_as(logits)
    (slope,) = torch.autograd.grad(logits, hidden, factors.to(logits.dtype))
    seen = slope.transpose(0, axis).abs().sum(-1) > 0
    behind = int(getattr(model, "behind", 0))
    found = Layout(
        layers=tuple(layers),
        layer_of_call=tuple(watcher.layer_of_call),
        audited=tuple(crossing or range(len(watcher.layer_of_call))),
        ends=ends,
        returned=tuple(watcher.returned),
        is_skippable=not watcher.hands_on_more,
        batch_axis=axis,
        pooled="last" if behind else _pooled(seen, inputs["attention_mask"]),
        is_on_interface=is_on_interface(model),
        table=watcher.table,
        projections=tuple(map(tuple, watcher.projections)),
        behind=behind,
    )
    if found.is_on_interface and found.is_skippable and _serve_attention(model, found, run, inputs):
        return found
    return replace(found, projections=((),) * len(layers))


def _serve_attention(
    model: nn.Module, layout: Layout, run: Callable[[Inputs], Any], inputs: Inputs
) -> bool:
    """Whether the projections serve attention alone.

    Without numbers from them, and with what attention handed on before, the logits stay the same.
    """
    contexts: list[Tensor] = []

    def keep(call: Call) -> Tensor:
        contexts.append(call.output())
        return contexts[-1]

    every = [module for modules in layout.projections for module in modules]
    with torch.no_grad():
        with handling(model, keep, False):
            before = logits_of(run(inputs))
        with handling(model, lambda call: contexts[call.number], False), skipping(every, torch.nan):
            after = logits_of(run(inputs))
    return torch.equal(before, after)


@contextmanager
def skipping(modules: Iterable[nn.Module], value: float = 0.0) -> Iterator[None]:
    """Lends modules that hand on one value at once in place of their products."""
    known = [(module, module.__dict__.get("forward")) for module in dict.fromkeys(modules)]

    def shadow(width: int) -> Callable[..., Tensor]:
        return lambda x: x.new_full((), value).expand(*x.shape[:-1], width)

    try:
        for module, _ in known:
            module.forward = shadow(_width(module))
        yield
    finally:
        for module, own in known:
            if own is None:
                module.__dict__.pop("forward", None)
            else:
                module.forward = own


def _width(module: nn.Module) -> int:
    """How wide a linear map's result is; 0 for anything else. GPT-2 has a class of its own."""
    return int(getattr(module, "out_features", getattr(module, "nf", 0)))


def _pooled(seen: Tensor, mask: Tensor) -> Literal["first", "last", "every"]:
    """Which real position is the one with a gradient, if it is one."""
    mask = mask.bool()
    if bool((seen.sum(-1) == 1).all()):
        place = seen.long().argmax(-1)
        real = mask.long().cumsum(-1).gather(1, place[:, None])[:, 0]
        if bool((real == 1).all()):
            return "first"
        if bool((real == mask.sum(-1)).all()):
            return "last"
    if bool((seen & ~mask).any()):
        raise UnsupportedModel(
            "The model's head reads padding: the decision on a text depends on the texts beside "
            "it. Pool over the attention mask."
        )
    return "every"


def _last_hidden(
    run: Callable[[Inputs], Any], inputs: Inputs, layers: list[nn.Module]
) -> tuple[Tensor, Tensor]:
    """The states that leave the last layer, as a leaf, and the logits made of them."""
    kept: list[Tensor] = []
    last, entered = len([layer for layer in layers if layer is layers[-1]]), 0

    def hook(module: nn.Module, args: Any, output: Any) -> Any:
        nonlocal entered
        entered += 1
        if entered < last:
            return output
        leaf = hidden_output(output).detach().requires_grad_()
        kept.append(leaf)
        return (leaf, *output[1:]) if isinstance(output, tuple) else leaf

    handle = layers[-1].register_forward_hook(hook)
    try:
        with torch.enable_grad():
            return_value = logits_of(run(inputs))
    finally:
        handle.remove()
    return kept[0], return_value


class _Watcher:
    """Follows which modules a forward pass is inside of, and notes where attention is called."""

    def __init__(self, model: nn.Module, ids: Int[Tensor, "batch token"]) -> None:
        self.model, self.ids = model, ids
        self.table: nn.Module | None = None
        stacks = [m for m in model.modules() if isinstance(m, nn.ModuleList)]
        self.stackable = {id(child) for stack in stacks for child in stack}
        self.inside: list[tuple[nn.Module, int]] = []
        self.entered = 0
        self.crossing: list[bool] = []
        self.layers: list[nn.Module] = []
        self.places: dict[int, int] = {}
        self.layer_of_call: list[int] = []
        self.crosses: list[bool] = []
        self.returned: list[int] = []
        self.linear: list[tuple[int, nn.Module]] = []
        self.projections: list[list[nn.Module]] = []
        self.hands_on_more = False
        self.handles: list[Any] = []

    def __enter__(self) -> _Watcher:
        for module in self.model.modules():
            self.handles.append(module.register_forward_pre_hook(self._enter, with_kwargs=True))
            self.handles.append(module.register_forward_hook(self._leave))
        return self

    def __exit__(self, *error: Any) -> None:
        for handle in self.handles:
            handle.remove()

    def _enter(self, module: nn.Module, args: Any, kwargs: Mapping[str, Any]) -> None:
        self.inside.append((module, self.entered))
        self.entered += 1
        self.crossing.append(kwargs.get("key_value_states") is not None)
        if _width(module):
            self.linear.append((self.entered, module))
        if self.table is None and isinstance(module, nn.Embedding) and args:
            looked_up = args[0] if args[0].shape == self.ids.shape else args[0].T
            if torch.equal(looked_up, self.ids):
                self.table = module

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        _, ticket = self.inside.pop()
        self.crossing.pop()
        if ticket in self.places:
            others = output[1:] if isinstance(output, tuple) else ()
            self.returned[self.places[ticket]] = len(output) if isinstance(output, tuple) else 0
            self.hands_on_more |= any(isinstance(other, Tensor) for other in others)

    def change(self, number: int, scores: Tensor) -> Tensor:
        """Notes the layer of a call and changes nothing."""
        found = next(
            ((m, ticket) for m, ticket in self.inside if id(m) in self.stackable),
            self.inside[0] if len(self.inside) == 1 else self.inside[1],
        )
        module, ticket = found
        if ticket not in self.places:
            self.places[ticket] = len(self.layers)
            self.layers.append(module)
            self.returned.append(0)
            self.projections.append([one for entered, one in self.linear if entered > ticket])
        else:
            self.projections[self.places[ticket]].clear()
        self.layer_of_call.append(self.places[ticket])
        self.crosses.append(any(self.crossing))
        return softmax(scores)


@contextmanager
def starting_at(
    layout: Layout,
    first: int,
    entering: Tensor,
    outputs: Mapping[int, Tensor],
) -> Iterator[None]:
    """Lends a model whose forward pass begins at one layer, with the states that enter it.

    Layers below hand their input on (`outputs` in place of it where others than the next layer
    read it), so that the model's own code does everything that comes before, between and after.
    Only the layers' own `forward` is shadowed, on the instances, and given back.
    """
    entered = 0
    modules = list(dict.fromkeys(layout.layers))
    before = [module.__dict__.get("forward") for module in modules]

    def shadow(forward: Callable[..., Any]) -> Callable[..., Any]:
        def begun(*args: Any, **kwargs: Any) -> Any:
            nonlocal entered
            place = entered
            entered += 1
            if place > first:
                return forward(*args, **kwargs)
            if place == first:
                if args:
                    return forward(entering, *args[1:], **kwargs)
                return forward(**{**kwargs, "hidden_states": entering})
            hidden = outputs.get(place, hidden_argument(args, kwargs))
            count = layout.returned[place]
            return (hidden, *[None] * (count - 1)) if count else hidden

        return begun

    try:
        for module in modules:
            module.forward = shadow(module.forward)
        yield
    finally:
        for module, own in zip(modules, before, strict=True):
            if own is None:
                module.__dict__.pop("forward", None)
            else:
                module.forward = own


@contextmanager
def keeping_states(
    layout: Layout, first: int
) -> Iterator[tuple[dict[int, Tensor], dict[int, Tensor]]]:
    """Lends a model that notes what enters a layer and what leaves the layers others read."""
    entering: dict[int, Tensor] = {}
    leaving: dict[int, Tensor] = {}
    entered = -1

    def enter(module: nn.Module, args: Any, kwargs: Mapping[str, Any]) -> None:
        nonlocal entered
        entered += 1
        if entered == first:
            entering[first] = hidden_argument(args, kwargs)

    def leave(module: nn.Module, args: Any, output: Any) -> None:
        if entered in layout.ends:
            leaving[entered] = hidden_output(output)

    handles = []
    try:
        for module in dict.fromkeys(layout.layers):
            handles.append(module.register_forward_pre_hook(enter, with_kwargs=True))
            handles.append(module.register_forward_hook(leave))
        yield entering, leaving
    finally:
        for handle in handles:
            handle.remove()
