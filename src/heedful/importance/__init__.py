"""Who claims what matters: every way to rank the units of a reading."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from heedful.errors import unknown
from heedful.importance import methods
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel

Importance = Mapping[str, Float[Tensor, "batch unit"]]
"""One ranking of the same units for each method, by the method's name."""


class Method(NamedTuple):
    """A way to rank units, and what it claims in one sentence."""

    function: Callable[[AttentiveModel, Reading], Float[Tensor, "batch unit"]]
    sentence: str


METHODS: dict[str, Method] = {
    "random": Method(methods.random, "A random order: what no knowledge at all achieves."),
    "attention": Method(methods.attention, "The attention weight the model gave the unit."),
    "gradient": Method(
        methods.gradient, "How fast the decision's probability rises with the unit's weight."
    ),
    "product": Method(methods.product, "Attention times gradient."),
    "centred": Method(
        methods.centred_product,
        "Attention times how far the gradient lies above its attended mean.",
    ),
    "single": Method(
        methods.single_unit, "How sure the decision would be if only this unit were attended."
    ),
    "leave-one-out": Method(
        methods.leave_one_out, "How much the decision loses when only this unit is erased."
    ),
    "integrated": Method(
        methods.integrated_gradients,
        "Gradient on the word vectors, integrated from nothing to the text.",
    ),
}


def explain(
    model: AttentiveModel, reading: Reading, names: Sequence[str] = tuple(METHODS), seed: int = 0
) -> Importance:
    """The importance of every unit by each named method."""
    for name in names:
        if name not in METHODS:
            raise unknown("importance method", name, METHODS)
    functions = {name: METHODS[name].function for name in names}
    if "random" in functions:
        functions["random"] = partial(methods.random, seed=seed)
    return {name: function(model, reading) for name, function in functions.items()}


__all__ = ["METHODS", "Importance", "Method", "explain"]
