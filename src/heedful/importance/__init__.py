"""Who claims what matters: every way to rank the units of a reading."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from heedful.errors import InputError, UnsupportedModel, unknown
from heedful.importance import flow, inputs, layers, methods, surrogates, traced, zeroing
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel
from heedful.runs.meter import spent_on

Importance = Mapping[str, Float[Tensor, "batch unit"]]
"""One ranking of the same units for each method, by the method's name."""


def _always(model: AttentiveModel) -> bool:
    return True


def _never(model: AttentiveModel) -> bool:
    return False


class Method(NamedTuple):
    """A way to rank units, and what it claims in one sentence."""

    function: Callable[..., Float[Tensor, "batch unit"]]
    """Of (model, reading), and of `seed` where it draws something."""
    sentence: str
    suits: Callable[[AttentiveModel], bool] = _always
    """Whether the model offers what the method needs."""
    is_signed: bool = True
    """Whether below 0 means that the unit speaks against the decision."""
    is_costly: Callable[[AttentiveModel], bool] = _never
    """Whether whole corpora go without it, unless it is asked for by name."""
    most: int = 0
    """Units of the longest text it is for; 0 where any will do."""
    is_drawn: bool = False
    """Whether it draws something at random, by the seed."""
    is_extra: bool = False
    """Whether it is a package's, and is asked for by name alone."""


METHODS: dict[str, Method] = {
    "random": Method(
        methods.random,
        "A random order: what no knowledge at all achieves.",
        is_signed=False,
        is_drawn=True,
    ),
    "attention": Method(
        methods.attention, "The attention weight the model gave the unit.", is_signed=False
    ),
    "gradient": Method(
        methods.gradient, "How fast the decision's probability rises with the unit's weight."
    ),
    "product": Method(methods.product, "Attention times gradient."),
    "centred": Method(
        methods.centred_product,
        "Attention times how far the gradient lies above its attended mean.",
        methods.has_one_row,
    ),
    "single": Method(
        methods.single_unit,
        "How sure the decision would be if only this unit were attended.",
        is_signed=False,
    ),
    "leave-one-out": Method(
        methods.leave_one_out, "How much the decision loses when attention to this unit is removed."
    ),
    "input-gradient": Method(
        inputs.input_gradient,
        "How fast the decision's probability changes with the unit's word vectors.",
        inputs.starts_from_inputs,
        is_signed=False,
    ),
    "gradient-input": Method(
        inputs.gradient_input, "Gradient times word vectors.", inputs.starts_from_inputs
    ),
    "integrated": Method(
        inputs.integrated_gradients,
        "Gradient on the word vectors, integrated from nothing to the text.",
        inputs.starts_from_inputs,
    ),
    "occlusion": Method(
        inputs.occlusion,
        "How much the decision loses when only this unit is replaced by an unknown one.",
        is_costly=methods.has_one_row,
    ),
    "trace": Method(
        traced.trace,
        "Where one unit of attention ends up, followed down every head from the pooling.",
        traced.is_traceable,
        is_signed=False,
    ),
    "rollout": Method(
        traced.rollout,
        "The same with heads averaged and half kept by each position (attention rollout).",
        traced.is_traceable,
        is_signed=False,
    ),
    "mean-attention": Method(
        layers.mean_attention,
        "What the positions that decide attend to, averaged over layers and heads.",
        traced.is_traceable,
        is_signed=False,
    ),
    "max-attention": Method(
        layers.max_attention,
        "The most that the positions that decide give to the unit in any head of any layer.",
        traced.is_traceable,
        is_signed=False,
    ),
    "last-attention": Method(
        layers.last_attention,
        "The attention the unit receives from all positions in the last layer.",
        traced.is_traceable,
        is_signed=False,
    ),
    "received-attention": Method(
        layers.received_attention,
        "The attention the unit receives from all positions, over all layers.",
        traced.is_traceable,
        is_signed=False,
    ),
    "value-norm": Method(
        layers.value_norm,
        "Attention received times the length of the values that are handed on.",
        layers.is_followable,
        is_signed=False,
    ),
    "attention-gradient": Method(
        layers.attention_gradient,
        "Attention times its gradient, summed over all layers.",
        layers.is_followable,
    ),
    "value-zeroing": Method(
        zeroing.value_zeroing,
        "How far the deciding state turns when the unit's values are set to zero.",
        zeroing.is_zeroable,
        is_signed=False,
    ),
    "attention-flow": Method(
        flow.attention_flow,
        "The most attention that can pass from the unit to the decision through all layers.",
        traced.is_traceable,
        is_signed=False,
        is_costly=_always,
        most=flow.MOST_UNITS,
    ),
    "squared gradient": Method(
        traced.squared_gradient,
        "How fast the summed outputs change with the word's vector.",
        traced.has_outputs,
        is_signed=False,
    ),
    "lime": Method(
        surrogates.lime,
        "The unit's weight in a linear model that decides alike on texts near this one (LIME).",
        is_drawn=True,
        is_extra=True,
    ),
    "kernel-shap": Method(
        surrogates.kernel_shap,
        "The unit's Shapley value, its fair share of the decision, by samples (KernelSHAP).",
        is_drawn=True,
        is_extra=True,
    ),
}


def methods_of(model: AttentiveModel, costly: bool = False, units: int = 0) -> tuple[str, ...]:
    """The names of the methods that the model offers, for texts of so many units.

    Those for single texts are among them only if asked for; of those that are the same for this
    model one is. Those of other packages are never among them.
    """
    return tuple(
        name
        for name, method in METHODS.items()
        if method.suits(model)
        and not method.is_extra
        and name not in alike(model)
        and (costly or not method.is_costly(model))
        and (not method.most or units <= method.most)
    )


def alike(model: AttentiveModel) -> Mapping[str, str]:
    """Methods that for this model are another one, by name: all its positions decide alike.

    Then what the deciding position attends to is what a unit receives from all.
    """
    if getattr(getattr(model, "layout", None), "pooled", None) != "every":
        return {}
    is_last = getattr(getattr(model, "site", None), "name", "") == "pooled"
    same = {"received-attention": "mean-attention"}
    return same | {"last-attention": "attention"} if is_last else same


def sentence_of(name: str) -> str:
    """What a method claims."""
    return METHODS[name].sentence


def explain(
    model: AttentiveModel, reading: Reading, names: Sequence[str] | None = None, seed: int = 0
) -> Importance:
    """The importance of every unit by each named method, or by all that the model offers."""
    return {name: ask() for name, ask in one_by_one(model, reading, names, seed).items()}


def one_by_one(
    model: AttentiveModel, reading: Reading, names: Sequence[str] | None = None, seed: int = 0
) -> dict[str, Callable[[], Float[Tensor, "batch unit"]]]:
    """What gives the importance by each method when it is called; they share what they need."""
    names = methods_of(model) if names is None else names
    names = [names] if isinstance(names, str) else names
    refuse(model, names)
    units = int(reading.units.max())
    for name in names:
        most = METHODS[name].most
        if most and units > most:
            raise InputError(f"{name} is for texts of at most {most} units, this one has {units}.")
    functions = {
        name: partial(METHODS[name].function, **({"seed": seed} if METHODS[name].is_drawn else {}))
        for name in names
    }
    together = replace(reading, memory={})

    def ask(name: str) -> Float[Tensor, "batch unit"]:
        with spent_on(method=name):
            return functions[name](model, together)

    return {name: partial(ask, name) for name in functions}


def asked_for(model: AttentiveModel, names: Sequence[str] | None) -> tuple[str, ...]:
    """The methods to judge where these were named: all usual ones where none were.

    Those of other packages stand beside what they are to be compared with, a random order and
    attention; named alone, beside all usual ones.
    """
    if names is None:
        return methods_of(model)
    refuse(model, names)
    own = [name for name in names if not METHODS[name].is_extra]
    if len(own) == len(names):
        return tuple(names)
    return tuple(dict.fromkeys(("random", "attention", *(own or methods_of(model)), *names)))


def refuse(model: AttentiveModel, names: Sequence[str]) -> None:
    """Raises for a method that is not known, not offered by the model, or lacks its package."""
    for name in names:
        if name not in METHODS:
            raise unknown("importance method", name, METHODS)
        if METHODS[name].is_extra:
            surrogates.refuse_without_captum(name)
        if not METHODS[name].suits(model):
            offered = ", ".join(methods_of(model, costly=True))
            raise UnsupportedModel(f"This model does not offer {name}; it offers {offered}.")


__all__ = [
    "METHODS",
    "Importance",
    "Method",
    "alike",
    "asked_for",
    "explain",
    "methods_of",
    "one_by_one",
    "refuse",
    "sentence_of",
]
