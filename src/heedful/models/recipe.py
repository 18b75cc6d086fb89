"""What a person types to name a model, and the configuration it stands for."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, fields
from sys import float_info
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from heedful.errors import InputError, unknown

ENCODERS = ("none", "affine", "affine-tanh", "conv", "lstm", "bilstm", "gru", "bigru")
ATTENTIONS = ("additive", "additive-relu", "dot", "scaled-dot", "uniform")
JOINS = ("none", "concat", "residual")
STARTS = ("default", "orthogonal", "orthogonal cells")
PENALTIES = {"tying": "tying", "mlm": "masked_words", "vw": "alignment"}
REDUCTIONS = {"tying_over": ("mean", "sum"), "masked_over": ("documents", "words")}
"""What a penalty is divided by, and the choices; the first is the usual one."""
GRAMMAR = "[han:]ENCODER[*LAYERS]+ATTENTION[@λ][+concat|+residual][+tying:δ][+mlm:η][+vw:μ]"


MOST_LAYERS, MOST_WIDTH = 1_000, 1_000_000
"""Beyond these no machine holds a model; making it would take hours to fail."""


@dataclass(frozen=True)
class ModelConfig:
    """The parts of an attention classifier and their sizes."""

    encoder: str = "bilstm"
    """What makes values of embeddings: none, affine, affine-tanh, conv, (bi)lstm, (bi)gru."""
    layers: int = 1
    """Stacked encoder layers (recurrent encoders only)."""
    attention: str = "additive"
    """How scores are made: additive, additive-relu, dot, scaled-dot, or uniform (frozen)."""
    scale: float | None = None
    """λ, which divides the scores; none means √dim for scaled-dot and 1 otherwise."""
    join: str = "none"
    """Whether each value also holds its own input: none, concat, residual."""
    hierarchical: bool = False
    """Words are attended within sentences, sentences within the document."""
    embedding_dim: int = 100
    """Width of the word vectors."""
    width: int = 100
    """Width of what the encoder gives, both directions together."""
    attention_dim: int | None = None
    """Hidden width of additive attention; none means half the width of the values."""
    normal_query: bool = True
    """Start the query of dot attention from N(0, 1); the small default collapses to uniform."""
    normal_additive_query: bool = False
    """Start the query of additive attention from N(0, 1) too, as the polarity study does."""
    additive_bias: bool = True
    """Whether additive attention has a bias inside tanh."""
    instance_query: bool = False
    """Make the query of dot attention a linear map of the document's mean value."""
    marks: bool = False
    """Put a learnt start and end vector around what the encoder reads; neither is attended."""
    one_logit: bool = False
    """Two classes from a single logit s, reported as (0, s)."""
    head_bias: bool = True
    """Whether the head has a bias."""
    freeze_embeddings: bool = False
    """Keep the word vectors as they were loaded."""
    dropout: float = 0.0
    """Dropout on what an encoder reads."""
    word_dropout: float | None = None
    """The same below the sentences of a hierarchical model; none means the same as `dropout`."""
    window_dropout: float = 0.0
    """More dropout on what a convolution reads."""
    head_dropout: float = 0.0
    """Dropout on what the head reads."""
    head_dropout_on: str = "input"
    """Where head dropout acts: on the head's input, or on its logits (docs/studies/erasure.md,
    "Dropout of the head")."""
    start: str = "default"
    """Random start: the framework's default, orthogonal (recurrent cells, and the head evenly), or
    orthogonal cells (every matrix of recurrent cells and nothing else)."""
    embedding_start: float | None = None
    """Word vectors start uniform between ± this; none means N(0, 1)."""
    head_start: float | None = None
    """The head's weights start uniform between ± this; none means the framework's default."""
    gru_bias_quirk: bool = False
    """Start a quarter of each GRU's recurrent bias at 1, as a release did (docs/studies/erasure.md,
    "Start of the weights")."""
    embedding_norm: float | None = None
    """Longer word vectors are cut to this length whenever they are read; none leaves them."""

    def __post_init__(self) -> None:
        for kind, value, known in (
            ("encoder", self.encoder, ENCODERS),
            ("attention", self.attention, ATTENTIONS),
            ("join", self.join, JOINS),
            ("place for head dropout", self.head_dropout_on, ("input", "logits")),
            ("random start", self.start, STARTS),
        ):
            if value not in known:
                raise unknown(kind, value, known)
        if self.scale is not None and not 0 < self.scale < math.inf:
            raise InputError(f"λ must be above 0, got {self.scale:g}; leave it out for √dim.")
        if not 1 <= self.layers <= MOST_LAYERS:
            raise InputError(f"an encoder has 1 to {MOST_LAYERS} layers, got {self.layers}.")
        if self.layers > 1 and self.encoder not in ("lstm", "bilstm", "gru", "bigru"):
            raise InputError(
                f"only recurrent encoders are stacked, got {self.encoder}*{self.layers}."
            )
        if self.width % 2 and self.encoder in ("bilstm", "bigru", "conv"):
            raise InputError(f"{self.encoder} needs an even width, got {self.width}.")
        if self.instance_query and self.attention not in ("dot", "scaled-dot"):
            raise InputError(
                f"instance_query is for dot and scaled-dot attention, got {self.attention}."
            )
        if self.join == "residual" and self.encoder != "none" and self.width != self.embedding_dim:
            raise InputError(
                f"residual adds inputs to states, so width ({self.width}) and embedding_dim "
                f"({self.embedding_dim}) must be equal; set one to the other."
            )
        for name in ("embedding_dim", "width", "attention_dim"):
            if (size := getattr(self, name)) is not None and not 1 <= size <= MOST_WIDTH:
                raise InputError(f"{name} must be 1 to {MOST_WIDTH:,}, got {size}.")
        if self.gru_bias_quirk and not self.encoder.endswith("gru"):
            raise InputError(f"gru_bias_quirk is for gru and bigru, got {self.encoder}.")
        for name in ("embedding_start", "head_start", "embedding_norm"):
            if (width := getattr(self, name)) is not None and not 0 < width < math.inf:
                raise InputError(f"{name} must be above 0, got {width}.")
        for name in ("dropout", "word_dropout", "window_dropout", "head_dropout"):
            if (share := getattr(self, name)) is not None and not 0 <= share < 1:
                raise InputError(f"{name} lies in [0, 1), got {share}.")


LATER = ("gru_bias_quirk", "embedding_norm")
"""Fields of ModelConfig that came after results were kept."""


def described(config: ModelConfig) -> dict[str, Any]:
    """The configuration as plain data, for what a result was computed from.

    Fields of later versions count only where they are set: older results stay what they are.
    """
    return settings_without(config, LATER)


def settings_without(config: Any, later: Collection[str]) -> dict[str, Any]:
    """The fields of a configuration, without those named that are as they come."""
    unset = {field.name for field in fields(config) if getattr(config, field.name) == field.default}
    return {n: value for n, value in asdict(config).items() if n not in unset.intersection(later)}


@dataclass(frozen=True)
class Penalties:
    """What is added to the classification loss."""

    tying: float = 0.0
    """δ: weight of the mean squared distance between each state and its word's embedding."""
    masked_words: float = 0.0
    """η: weight of guessing masked words from their states."""
    alignment: float = 0.0
    """μ: weight of |V·W|, the query's inner product with the head, in a dot model."""
    tying_over: str = "mean"
    """Over the dimensions of a word's distance: mean, or sum (the literal formula)."""
    masked_over: str = "documents"
    """What the guesses' summed loss is divided by: documents of the batch, or masked words."""

    def __post_init__(self) -> None:
        for name, known in REDUCTIONS.items():
            if (value := getattr(self, name)) not in known:
                raise unknown(f"reduction {name}", value, known)
        for name, symbol in (("tying", "δ"), ("masked_words", "η"), ("alignment", "μ")):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(
                    f"{name} ({symbol}) must be a number from 0 up, got {getattr(self, name)}."
                )


def reductions(penalties: Penalties) -> dict[str, str]:
    """How the penalties are reduced, where that is not the usual way."""
    found = {name: str(getattr(penalties, name)) for name in REDUCTIONS}
    return {name: over for name, over in found.items() if over != REDUCTIONS[name][0]}


@dataclass(frozen=True)
class Recipe:
    """A model and its training penalties, as typed."""

    model: ModelConfig
    penalties: Penalties = Penalties()

    def __str__(self) -> str:
        model = self.model
        text = "han:" if model.hierarchical else ""
        text += model.encoder + (f"*{model.layers}" if model.layers > 1 else "")
        text += f"+{model.attention}" + (
            f"@{typed(model.scale)}" if model.scale is not None else ""
        )
        text += f"+{model.join}" if model.join != "none" else ""
        return penalised(text, self.penalties)


def penalised(text: str, penalties: Penalties) -> str:
    """The name of a model followed by what is added to its loss, as typed."""
    strengths = {key: getattr(penalties, field) for key, field in PENALTIES.items()}
    return text + "".join(f"+{key}:{typed(n)}" for key, n in strengths.items() if n)


def parse(recipe: str, **sizes: Any) -> Recipe:
    """The configuration that a recipe such as `bilstm+additive+tying:10` stands for."""
    hierarchical, _, rest = recipe.rpartition("han:")
    encoder, *others = rest.split("+")
    if hierarchical or not others:
        raise InputError(f"A recipe reads {GRAMMAR}, e.g. bilstm+additive; got {recipe!r}.")
    name, star, layers = encoder.partition("*")
    attention, at, scale = others[0].partition("@")
    config: dict[str, Any] = {
        "hierarchical": recipe.startswith("han:"),
        "encoder": name,
        "layers": _number(layers, int, recipe) if star else 1,
        "attention": attention,
        "scale": _number(scale, float, recipe) if at else None,
    }
    penalties: dict[str, Any] = {}
    for part in others[1:]:
        key, _, value = part.partition(":")
        if key in ("concat", "residual") and not value and "join" not in config:
            config["join"] = key
        elif key in PENALTIES and value and PENALTIES[key] not in penalties:
            penalties[PENALTIES[key]] = _number(value, float, recipe)
        else:
            raise InputError(f"Cannot read {part!r} in {recipe!r}; a recipe reads {GRAMMAR}.")
    if penalties.get("masked_words"):
        # Input and output share one frozen table (docs/studies/faithful.md, "Masked words").
        config["freeze_embeddings"] = True
    for name in sizes:
        if name in config and sizes[name] != config[name]:
            raise InputError(
                f"The recipe {recipe!r} already says {name}; leave it out of the settings."
            )
    return Recipe(with_settings(ModelConfig, config | sizes), Penalties(**penalties))


Config = TypeVar("Config")


def with_settings(kind: Callable[..., Config], settings: Mapping[str, Any]) -> Config:
    """A configuration dataclass from named settings; unknown names and wrong types are refused."""
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    hints = get_type_hints(kind)
    for name, value in settings.items():
        if name not in known:
            raise unknown("setting", name, known)
        if not fits(value, hints[name]):
            is_list = get_origin(hints[name]) is tuple
            wanted = "a list" if is_list else str(getattr(hints[name], "__name__", hints[name]))
            raise InputError(f"The setting {name} must be {wanted}, got {value!r}.")
    return kind(**{n: tuple(v) if isinstance(v, list) else v for n, v in settings.items()})


def fits(value: Any, hint: Any) -> bool:
    """Whether a value read from a file has the annotated type; whole numbers serve as floats."""
    if get_origin(hint) is UnionType:
        return any(fits(value, one) for one in get_args(hint))
    if get_origin(hint) in (tuple, list):
        one = get_args(hint)[0]
        return isinstance(value, tuple | list) and all(fits(entry, one) for entry in value)
    if hint is float:
        # A whole number read from JSON may be larger than any float.
        return isinstance(value, float) or (fits(value, int) and abs(value) <= float_info.max)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, get_origin(hint) or hint)


def looks_like_recipe(text: str) -> bool:
    """Whether the text has the shape of a recipe rather than of a path."""
    return (
        text == "transformer" or re.fullmatch(r"(han:)?[a-z-]+(\*\d+)?\+[a-z].*", text) is not None
    )


def typed(number: float) -> str:
    """The shortest text that reads back as the same number and has no plus sign."""
    short = f"{number:g}"
    return (short if float(short) == number else repr(number)).replace("e+", "e")


def _number(text: str, kind: type[int] | type[float], recipe: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"Expected a number, got {text!r} in {recipe!r}.") from None
