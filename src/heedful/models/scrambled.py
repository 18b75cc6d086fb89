"""A model with its weights dealt anew, part by part from the top, and given back as it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import nn

from heedful.runs.randomness import numpy_generator
from heedful.runs.threads import usable_cores


class Part(NamedTuple):
    """A piece of a model between input and output: embeddings, a layer, a head."""

    name: str
    module: nn.Module


def parts_from_top(model: nn.Module) -> tuple[Part, ...]:
    """The pieces of a model that hold weights, from the output down to the input.

    Modules are taken in the order in which they were registered, which is that of the computation
    in our models and in those of `transformers`. A stack of layers gives one part per layer;
    weights that belong to no module of theirs (learnt positions, often) come last, as the input's.
    """
    opened = model
    while len(inside := _with_weights(opened)) == 1 and not _is_stack(opened):
        (opened,) = (module for _, module in inside)
    found = [part for name, module in _with_weights(opened) for part in _pieces(name, module)] or [
        Part("model", opened)
    ]
    owned = {id(weight) for part in found for weight in part.module.parameters()}
    loose = [weight for weight in model.parameters() if id(weight) not in owned]
    if loose:
        found.insert(0, Part("other weights", nn.ParameterList(loose)))
    return tuple(reversed(found))


@contextmanager
def scrambled(parts: Sequence[Part], seed: int = 0) -> Iterator[None]:
    """Lends the parts with the entries of every weight in random order, and gives them back.

    The numbers stay what they were and only their places are drawn, so that scales are kept and no
    architecture's own way to start is needed. The draw depends on the seed, the part's place and
    the weight's name alone: scrambling more parts leaves the others scrambled as before.
    """
    kept: list[tuple[nn.Parameter, torch.Tensor]] = []
    seen: set[int] = set()
    try:
        wanted = []
        for place, part in enumerate(parts):
            _DRAWN.setdefault(part.module, {})
            for name, weight in part.module.named_parameters():
                if id(weight) not in seen:
                    seen.add(id(weight))
                    wanted.append((part.module, name, weight, seed, place))
        # numpy lets other threads work while it draws, which of a large model takes seconds.
        with ThreadPoolExecutor(usable_cores()) as pool:
            found = list(pool.map(lambda one: _drawn(*one), wanted))
        for (_, _, weight, _, _), drawn in zip(wanted, found, strict=True):
            kept.append((weight, weight.data))
            weight.data = drawn
        yield
    finally:
        for weight, before in kept:
            weight.data = before


_DRAWN: WeakKeyDictionary[nn.Module, dict[str, tuple[tuple[int, ...], torch.Tensor]]] = (
    WeakKeyDictionary()
)
"""The last draw of every weight: an audit asks for the same one batch after batch."""


def _drawn(
    module: nn.Module, name: str, weight: nn.Parameter, seed: int, place: int
) -> torch.Tensor:
    """The entries of a weight in random order, drawn once for as long as nobody changes them."""
    known = _DRAWN[module]
    stamp = seed, place, weight.data_ptr(), weight._version
    if name not in known or known[name][0] != stamp:
        order = numpy_generator(seed, "scrambled", place, name).permutation(weight.numel())
        index = torch.from_numpy(order).to(weight.device)
        known[name] = stamp, weight.detach().flatten()[index].view(weight.shape)
    return known[name][1]


def _with_weights(module: nn.Module) -> list[tuple[str, nn.Module]]:
    return [
        (name, child)
        for name, child in module.named_children()
        if next(child.parameters(), None) is not None
    ]


def _is_stack(module: nn.Module) -> bool:
    return isinstance(module, nn.ModuleList)


def _pieces(name: str, module: nn.Module) -> list[Part]:
    """The module itself, or what is inside it where it holds a stack of layers."""
    if not any(map(_is_stack, module.modules())):
        return [Part(name, module)]
    if _is_stack(module):
        return [Part(f"{name}.{place}", layer) for place, layer in _with_weights(module)]
    inside = _with_weights(module)
    return [part for inner, child in inside for part in _pieces(f"{name}.{inner}", child)]
