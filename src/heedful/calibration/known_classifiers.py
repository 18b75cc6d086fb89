"""Classifiers with weights set by hand, so that what they decide by is known.

Every unit carries a few *attributes*: its score, what it says of each class, whether it is marked,
and the class its mark writes. An encoder passes them on exactly, and a recurrent one may also
*remember*: the class of the marked unit is written into the states of all others (a convolution
reaches the next unit only). The head weighs what a unit says against what is remembered:

    logits of unit i = sharpness · (own · strength · [class it says] + memory · [class remembered]).

It may also attend to the units that say what it remembers. Gates are pushed so far that they are
open or closed to float precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.calibration.known_documents import Unit, vocabulary_of, words_of
from heedful.errors import InputError
from heedful.models.classifier import AttentionClassifier
from heedful.models.parts import AdditiveScores, Affine, Convolution, DotScores, Level, Recurrent
from heedful.models.recipe import ModelConfig, parse

REACH = 0.3
"""Largest value of an attribute in a state: well within the range of nested tanh."""
SHUT = 60.0
"""What opens or closes a gate: σ(-60) is 1e-26."""
REMEMBERING = ("lstm", "bilstm", "gru", "bigru", "conv")


@dataclass(frozen=True)
class Program:
    """What a hand-set model attends to and decides by."""

    scores: Mapping[str, float] = field(default_factory=dict)
    """Attention score by role; 0 for roles that are not named."""
    own: Mapping[str, float] = field(default_factory=dict)
    """How many times louder than its strength a role speaks; 1 for roles that are not named."""
    memory: float = 0.0
    """Weight of the remembered class."""
    match: float = 0.0
    """Score of units that say the remembered class: attention that knows the answer already."""
    sharpness: float = 6.0
    """Logits per unit of strength."""

    def score(self, unit: Unit) -> float:
        """The attention score of a unit."""
        return self.scores.get(unit.role, 0.0)

    def said(self, unit: Unit) -> float:
        """How loud a unit speaks for its class."""
        return self.own.get(unit.role, 1.0) * unit.strength


def hand_set(recipe: str, classes: int, program: Program) -> AttentionClassifier:
    """The classifier of a recipe that runs a program."""
    typed = parse(recipe).model
    if typed.join != "none" or typed.layers > 1:
        raise InputError(f"hand-set models have one layer and no join, got {recipe!r}.")
    if program.match and (typed.encoder not in REMEMBERING[:-1] or typed.attention == "additive"):
        raise InputError(f"to match takes a recurrent encoder and dot attention, got {recipe!r}.")
    if program.memory and typed.encoder not in REMEMBERING:
        raise InputError(
            f"the encoder {typed.encoder} passes nothing between units; to remember takes one of "
            f"{', '.join(REMEMBERING)}."
        )
    layout = _Layout(classes, typed.encoder)
    sizes = {"embedding_dim": layout.attributes, "width": layout.width, "attention_dim": 1}
    config = parse(recipe, **sizes).model
    names = tuple(f"class {index}" for index in range(classes))
    model = AttentionClassifier(config, vocabulary_of(classes), names)
    coded = _Coded(layout, config, program)
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        _set_words(model, coded)
        if model.words is not None:
            _set_level(model.words, coded, remembers=False)
            # Within a sentence the word that stands for something is all that is attended.
            _set_query(model.words.attention, layout.content, 40.0 / coded.scale[layout.content])
        _set_level(model.level, coded, remembers=program.memory > 0 or program.match > 0)
        _set_query(model.level.attention, layout.score, 1 / coded.scale[layout.score])
        for place in layout.both_ways(layout.match) if program.match else ():
            _set_query(model.level.attention, place, program.match / (2 * layout.height))
        _set_head(model.head, coded, program)
    return model.eval()


@dataclass(frozen=True)
class _Layout:
    """Where attributes stand in inputs and states: score, content, mark, own …, write …, says …"""

    classes: int
    encoder: str
    score: int = 0
    content: int = 1
    mark: int = 2

    @property
    def own(self) -> range:
        return range(3, 3 + self.classes)

    @property
    def write(self) -> range:
        return range(3 + self.classes, 3 + 2 * self.classes)

    @property
    def says(self) -> range:
        return range(3 + 2 * self.classes, 3 + 3 * self.classes)

    @property
    def attributes(self) -> int:
        return 3 + 3 * self.classes

    @property
    def cells(self) -> int:
        """States of one direction: attributes, then for each class what is remembered, matches."""
        return self.attributes + 2 * self.classes

    @property
    def memory(self) -> range:
        """Cells that remember each class."""
        return range(self.attributes, self.attributes + self.classes)

    @property
    def match(self) -> range:
        """Cells that hold whether a unit says the class that is remembered."""
        return range(self.attributes + self.classes, self.cells)

    def both_ways(self, cells: range) -> list[int]:
        """States of the cells in every direction."""
        ways = 2 if self.encoder.startswith("bi") else 1
        return [way * self.cells + cell for way in range(ways) for cell in cells]

    @property
    def width(self) -> int:
        """Width of the encoder."""
        if self.encoder in ("lstm", "gru"):
            return self.cells
        if self.encoder in ("bilstm", "bigru"):
            return 2 * self.cells
        return 2 * self.attributes if self.encoder == "conv" else self.attributes

    def remembered(self, index: int) -> list[int]:
        """States that hold what is remembered of a class."""
        if self.encoder == "conv":
            return [self.attributes + index]
        return self.both_ways(self.memory[index : index + 1])

    @property
    def height(self) -> float:
        """What a state holds of the class it remembers."""
        return math.tanh(1) if self.encoder.endswith("lstm") else 1.0


def _same(x: np.ndarray) -> np.ndarray:
    return x


def _twice(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.arctanh(np.arctanh(x)))


# What a value must be so that passing one level gives it back.
_ENTER: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "affine-tanh": np.arctanh,
    "lstm": _twice,
    "bilstm": _twice,
    "gru": np.arctanh,
    "bigru": np.arctanh,
}


class _Coded:
    """The attributes of every word as the audited level must read them."""

    def __init__(self, layout: _Layout, config: ModelConfig, program: Program) -> None:
        self.layout, self.config = layout, config
        words = words_of(layout.classes)
        wanted = np.zeros((len(words), layout.attributes))
        for row, unit in enumerate(words.values()):
            wanted[row, layout.score] = program.score(unit)
            wanted[row, layout.content] = unit.role != "empty"
            if unit.says >= 0:
                wanted[row, layout.own[unit.says]] = program.said(unit)
                wanted[row, layout.says[unit.says]] = 1
            if unit.role == "marked":
                wanted[row, layout.mark] = wanted[row, layout.write[unit.says]] = 1
        # Softmax does not see a shift, and a rectifier wants no negative score.
        wanted[:, layout.score] -= wanted[:, layout.score].min()
        most = np.abs(wanted).max(0)
        most[layout.own] = most[layout.own].max()
        self.scale = REACH / np.where(most > 0, most, 1.0)
        held = wanted * self.scale
        if config.attention == "additive":  # so that the tanh of its hidden layer gives it back
            held[:, layout.score] = np.arctanh(held[:, layout.score])
            held[:, layout.content] = np.arctanh(held[:, layout.content])
        enter = _ENTER.get(config.encoder, _same)
        self.entering = enter(held)
        self.one = float(enter(np.array(REACH)))  # how an attribute of 0 or 1 says 1
        self.embedded = enter(self.entering) if config.hierarchical else self.entering


def _set_words(model: AttentionClassifier, coded: _Coded) -> None:
    first = len(model.vocabulary) - len(coded.embedded)
    model.embedding.weight[first:] = torch.from_numpy(coded.embedded).to(model.embedding.weight)


def _set_query(scores: nn.Module, place: int, weight: float) -> None:
    """Makes the score `weight` times the attribute at a place."""
    if isinstance(scores, AdditiveScores):
        scores.hidden.weight[0, place] = 1
        scores.query.weight[0, 0] = weight * scores.scale
    elif isinstance(scores, DotScores):
        scores.query.weight[0, place] = weight * scores.scale


def _set_head(head: nn.Linear, coded: _Coded, program: Program) -> None:
    layout = coded.layout
    for index in range(layout.classes):
        head.weight[index, layout.own[index]] = program.sharpness / coded.scale[layout.own[index]]
        for place in layout.remembered(index) if program.memory else ():
            height = coded.one if layout.encoder == "conv" else layout.height
            head.weight[index, place] = program.sharpness * program.memory / height


def _set_level(level: Level, coded: _Coded, remembers: bool) -> None:
    """Passes the attributes on and, if asked, writes what marks say into the other units."""
    layout, encoder = coded.layout, level.encoder
    match encoder:
        case Affine():
            for place in range(layout.attributes):
                encoder.linear.weight[place, place] = 1
        case Convolution():
            for place in range(layout.attributes):
                encoder.narrow.weight[place, place, 1] = 1
            for index, place in enumerate(layout.write):
                encoder.wide.weight[index, place, 1] = float(remembers)  # the unit before
        case Recurrent():
            directions = ["", "_reverse"] if layout.encoder.startswith("bi") else [""]
            for direction in directions:
                cells = _Cells(
                    *(
                        getattr(encoder.cells, f"{name}_l0{direction}")
                        for name in ("weight_ih", "weight_hh", "bias_ih")
                    )
                )
                if isinstance(encoder.cells, nn.LSTM):
                    _set_lstm(cells, coded, remembers)
                else:
                    _set_gru(cells, coded, remembers)


class _Cells(NamedTuple):
    """The weights of one direction; gate g of cell c is row g · cells + c."""

    reading: Float[Tensor, "gate_cell input"]
    before: Float[Tensor, "gate_cell cell"]
    bias: Float[Tensor, " gate_cell"]


def _set_lstm(cells: _Cells, coded: _Coded, remembers: bool) -> None:
    """Cells that forget at once pass attributes on; cells that write on a mark remember it."""
    layout = coded.layout
    write, forget, content, show = (gate * layout.cells for gate in range(4))
    cells.bias[write:forget], cells.bias[forget:content], cells.bias[show:] = SHUT, -SHUT, SHUT
    for index, cell in enumerate(layout.memory):
        cells.bias[write + cell], cells.bias[forget + cell] = -SHUT, SHUT
        cells.reading[write + cell, layout.mark] = 2 * SHUT / coded.one
        cells.reading[forget + cell, layout.mark] = -2 * SHUT / coded.one
        cells.reading[content + cell, layout.write[index]] = SHUT / coded.one
    _set_content(cells, content, coded, remembers)


def _set_gru(cells: _Cells, coded: _Coded, remembers: bool) -> None:
    """The same with a gate that keeps instead of two that forget and write."""
    layout = coded.layout
    see, keep, content = (gate * layout.cells for gate in range(3))
    cells.bias[see:keep], cells.bias[keep:content] = SHUT, -SHUT
    for index, cell in enumerate(layout.memory):
        cells.bias[keep + cell] = SHUT
        cells.reading[keep + cell, layout.mark] = -2 * SHUT / coded.one
        cells.reading[content + cell, layout.write[index]] = SHUT / coded.one
    _set_content(cells, content, coded, remembers)


def _set_content(cells: _Cells, content: int, coded: _Coded, remembers: bool) -> None:
    """What cells take in: attributes as they are, and 1 or -1 where a unit says what is remembered.

    Without remembering, what marks write is not taken in at all.
    """
    layout = coded.layout
    for place in range(layout.attributes):
        cells.reading[content + place, place] = 1
    for index, (memory, match) in enumerate(zip(layout.memory, layout.match, strict=True)):
        if not remembers:
            cells.reading[content + memory] = 0
            continue
        cells.before[content + match, memory] = SHUT / layout.height
        cells.reading[content + match, layout.says[index]] = SHUT / coded.one
        cells.bias[content + match] = -1.5 * SHUT
