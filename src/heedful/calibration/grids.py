"""Which constructed models a calibration is made of, in two halves that share no encoder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from heedful.calibration.constructions import CONSTRUCTIONS, DIAL, ConstructedModel
from heedful.calibration.known_models import parts_of
from heedful.errors import unknown


@dataclass(frozen=True)
class Half:
    """The recipes and the corpus family of one half."""

    family: str
    recipes: tuple[str, ...]
    trained: tuple[tuple[str, str], ...]
    """Construction and recipe of the models that are trained instead of set by hand."""
    transformers: tuple[str, ...] = ()
    """Recipes of `calibration.known_models` beside."""


@dataclass(frozen=True)
class GridSize:
    """How much is done."""

    halves: dict[str, Half]
    classes: tuple[int, ...]
    seeds: int
    dial: tuple[float, ...]
    documents: int
    simulations: int
    """Of each interval and each number of documents."""
    sizes: tuple[int, ...]
    """Numbers of documents on which some models are judged again."""
    of_transformers: tuple[str, ...] = tuple(CONSTRUCTIONS)
    """What Transformers are built for."""


_FIT = Half(
    "short",
    ("none+dot", "conv+additive", "bilstm+additive", "gru+dot", "han:none+additive", "han:gru+dot"),
    (
        ("trained reason", "none+additive"),
        ("trained even", "bilstm+uniform"),
        ("trained hiding", "none+additive"),
        ("trained hiding", "bilstm+additive"),
        ("trained reason", "transformer"),
        ("trained even", "transformer"),
        ("trained hiding", "transformer"),
    ),
    ("transformer",),
)
_TEST = Half(
    "long",
    (
        "affine+additive",
        "affine-tanh+dot",
        "lstm+scaled-dot",
        "bigru+additive",
        "han:affine-tanh+additive",
        "han:lstm+dot",
    ),
    (
        ("trained reason", "affine+additive"),
        ("trained even", "bigru+uniform"),
        ("trained hiding", "affine+additive"),
        ("trained hiding", "bigru+additive"),
        ("trained reason", "bert"),
        ("trained even", "bert"),
        ("trained hiding", "bert"),
    ),
    ("bert", "gpt2"),
)
SCALES: dict[str, GridSize] = {
    "quick": GridSize(
        {
            "fit": Half("short", ("none+dot", "bilstm+additive"), (), ("transformer",)),
            "test": Half("long", ("affine-tanh+additive", "bigru+dot"), (), ("bert",)),
        },
        classes=(2,),
        seeds=1,
        dial=(0.0, 0.15, 0.4, 0.6, 0.85, 1.0),
        documents=100,
        simulations=100,
        sizes=(),
        of_transformers=("reason", "bypassed", "leaked", "hidden", "relayed", "rationalised"),
    ),
    "full": GridSize(
        {"fit": _FIT, "test": _TEST},
        classes=(2, 5),
        seeds=2,
        dial=DIAL,
        documents=200,
        simulations=1000,
        sizes=(50, 100, 400),
    ),
}


def scale_of(name: str) -> GridSize:
    """The scale of a name."""
    if name not in SCALES:
        raise unknown("scale", name, SCALES)
    return SCALES[name]


def settings(scale: GridSize, half: str, seeds: int) -> Iterator[ConstructedModel]:
    """Every model of a half; dials have one seed, since their steps are many."""
    chosen = scale.halves[half]
    for recipe in (*chosen.recipes, *chosen.transformers):
        parts = parts_of(recipe)
        for name, construction in CONSTRUCTIONS.items():
            is_asked = name in scale.of_transformers or recipe not in chosen.transformers
            if name.startswith("trained") or not construction.fits(parts) or not is_asked:
                continue
            for classes in scale.classes:
                if construction.is_dial:
                    for place in scale.dial:
                        yield ConstructedModel(name, recipe, classes, chosen.family, 0, place)
                else:
                    for seed in range(seeds):
                        yield ConstructedModel(name, recipe, classes, chosen.family, seed)
    for name, recipe in chosen.trained:
        for classes in scale.classes:
            for seed in range(seeds):
                yield ConstructedModel(name, recipe, classes, chosen.family, seed)
