"""How the layers of a model were entered in one pass, so that any of them can be entered again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.models.huggingface.layout import Layout, hidden_argument, hidden_output


class Entered(NamedTuple):
    """A layer, what it was called with and the states that left it."""

    layer: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    after: Float[Tensor, "batch key dim"]

    @property
    def hidden(self) -> Float[Tensor, "batch key dim"]:
        """The states that entered."""
        return hidden_argument(self.args, self.kwargs)

    def again(self, text: Int[Tensor, " row"]) -> Float[Tensor, "row key dim"]:
        """The states that leave when texts enter once more, each as often as it is named."""
        shape = self.hidden.shape[:2]
        args, kwargs = _rows(self.args, text, shape), _rows(dict(self.kwargs), text, shape)
        return hidden_output(self.layer(*args, **kwargs))

    def once_more(self, hidden: Float[Tensor, "batch key dim"]) -> Float[Tensor, "batch key dim"]:
        """The states that leave when others enter, with masks and positions as they were."""
        if self.args:
            return hidden_output(self.layer(hidden, *self.args[1:], **self.kwargs))
        return hidden_output(self.layer(**{**self.kwargs, "hidden_states": hidden}))


def _rows(given: Any, text: Int[Tensor, " row"], shape: torch.Size) -> Any:
    """What belongs to the texts, of all that a layer is called with; the rest serves every text.

    [batch key] and [batch … …] belong to texts; [key dim], a table of positions, does not.
    """
    if isinstance(given, Tensor):
        has_texts = given.dim() > 2 and len(given) == shape[0]
        return given[text] if has_texts or given.shape == shape else given
    if isinstance(given, tuple | list):
        return type(given)(_rows(one, text, shape) for one in given)
    if isinstance(given, dict):
        return {name: _rows(one, text, shape) for name, one in given.items()}
    return given


@contextmanager
def keeping_calls(layout: Layout) -> Iterator[list[Entered]]:
    """Lends a model that notes how every layer is entered, in order."""
    entered: list[Entered] = []

    def leave(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        entered.append(Entered(module, args, kwargs, hidden_output(output)))

    modules = dict.fromkeys(layout.layers)
    handles = [module.register_forward_hook(leave, with_kwargs=True) for module in modules]
    try:
        yield entered
    finally:
        for handle in handles:
            handle.remove()
