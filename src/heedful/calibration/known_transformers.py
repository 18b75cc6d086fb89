"""Transformers with weights set by hand, so that what they decide by is known.

They run the same `Program` as the classifiers of `known`: words carry attributes, a lower layer may
write what the marked word says into all others (it attends to marks alone), a feed-forward part may
find the words that say it, and the audited attention weighs what is left. Attributes stand in the
residual stream twice, once with a minus, beside a filler: every layer norm then sees mean 0 and
variance 1, and gives back what it was given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.calibration.known_classifiers import Program
from heedful.calibration.known_documents import Unit, vocabulary_of, words_of
from heedful.models.transformer import EPSILON, TransformerClassifier
from heedful.models.transformer_config import TransformerConfig

SURE = 60.0
"""What marks score in the layer that copies them: exp(-60) is nothing beside 1."""
STEEP = 40.0
"""How steeply the feed-forward part says that a word says what is remembered."""


@dataclass(frozen=True)
class Places:
    """Where attributes stand: one, score, mark, special, match, filler, then five per class."""

    classes: int
    one: int = 0
    score: int = 1
    mark: int = 2
    special: int = 3
    match: int = 4
    filler: int = 5

    def _of(self, number: int) -> range:
        first = 6 + number * self.classes
        return range(first, first + self.classes)

    @property
    def own(self) -> range:
        """What a word says of each class, as loud as it says it."""
        return self._of(0)

    @property
    def write(self) -> range:
        """The class that a mark writes."""
        return self._of(1)

    @property
    def says(self) -> range:
        """The class a word says, loud or not."""
        return self._of(2)

    @property
    def memory(self) -> range:
        """The class that was written."""
        return self._of(3)

    @property
    def context(self) -> range:
        """What the audited attention of a pretrained model hands on."""
        return self._of(4)

    @property
    def count(self) -> int:
        """Attributes; the residual stream is twice as wide."""
        return 6 + 5 * self.classes


@dataclass(frozen=True)
class Coded:
    """The attributes of every word for one program, and what brings them back to its numbers."""

    classes: int
    program: Program
    places: Places = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", Places(self.classes))

    @cached_property
    def words(self) -> list[Unit]:
        """Every word."""
        return list(words_of(self.classes).values())

    @cached_property
    def loudest(self) -> float:
        """What an `own` of 1 stands for."""
        return max(self.program.said(word) for word in self.words if word.says >= 0)

    @cached_property
    def range(self) -> float:
        """What a `score` of 1 stands for; softmax does not see where scores begin."""
        scores = [self.program.score(word) for word in self.words]
        return max(max(scores) - min(scores), 1e-9)

    @property
    def remembers(self) -> bool:
        """Whether anything is passed between words."""
        return self.program.memory > 0 or self.program.match > 0

    @property
    def growth(self) -> float:
        """By how much a memory of 1 lengthens the residual stream."""
        return math.sqrt(1 + self.remembers / self.places.count)

    def vectors(self) -> Float[np.ndarray, "word dim"]:
        """The residual stream of every word, mirrored and filled up to variance 1."""
        places, program = self.places, self.program
        lowest = min(program.score(word) for word in self.words)
        found = np.zeros((len(self.words), places.count))
        for row, word in zip(found, self.words, strict=True):
            row[places.one] = 1
            row[places.score] = (program.score(word) - lowest) / self.range
            if word.says >= 0:
                row[places.own[word.says]] = program.said(word) / self.loudest
                row[places.says[word.says]] = 1
            if word.role == "marked":
                row[places.mark] = row[places.write[word.says]] = 1
        return self.filled(found)

    def nothing(self, is_special: bool) -> Float[np.ndarray, "1 dim"]:
        """The residual stream of an unknown word, or of a special token."""
        found = np.zeros((1, self.places.count))
        found[0, self.places.one], found[0, self.places.special] = 1, is_special
        return self.filled(found)

    def filled(self, attributes: Float[np.ndarray, "word attribute"]) -> np.ndarray:
        """Attributes with the filler that makes their squares add up, mirrored."""
        room = self.places.count - (attributes**2).sum(1)
        attributes[:, self.places.filler] = np.sqrt(room)
        return np.hstack([attributes, -attributes])

    def mirrored(self, place: int, weight: float) -> Float[Tensor, "dim"]:
        """What writes an attribute into the residual stream: once as it is, once with a minus."""
        column = torch.zeros(2 * self.places.count)
        column[place], column[place + self.places.count] = weight, -weight
        return column

    @property
    def matching(self) -> tuple[float, float]:
        """Bias and output of the part that finds words that say what is remembered.

        It reads STEEP (says + memory - mark): 2 STEEP where both are 1 and the word is no mark.
        """
        return -1.5 * STEEP, 1 / (0.5 * STEEP)


def hand_set_transformer(
    classes: int, program: Program, layers: int = 2, norm: str = "query"
) -> TransformerClassifier:
    """Our own Transformer running a program; its pooling attention is the audited one.

    The head's hidden units are never negative, so that the decision is a plain weighted sum.
    """
    coded, vocabulary = Coded(classes, program), vocabulary_of(classes)
    places = coded.places
    config = TransformerConfig(
        embedding_dim=2 * places.count,
        layers=layers,
        heads=1,
        head_dim=classes,
        feed_forward=classes,
        pooling_dims=(16, 16),
        decider_dim=classes,
        dropout=0.0,
        top_dropout=0.0,
        norm=norm,
        loss="cross-entropy",
    )
    names = tuple(f"class {index}" for index in range(classes))
    model = TransformerClassifier(config, vocabulary, names, tokeniser="whitespace")
    table = np.zeros((len(vocabulary), 2 * places.count))
    table[: len(vocabulary) - len(coded.words)] = coded.nothing(is_special=False)
    table[len(vocabulary) - len(coded.words) :] = coded.vectors()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.fill_(math.sqrt(1 + EPSILON) if _is_norm(name, weight) else 0.0)
        model.set_vectors(table.astype(np.float32))
        if coded.remembers:
            _copy_marks(model, coded)
        if program.match:
            _find_matches(model, coded)
        model.encoder.norm.weight.mul_(coded.growth)
        _score(model, coded)
        first, last = _linear(model.head[0]), _linear(model.head[-1])
        for index in range(classes):
            first.weight[index, places.own[index]] = coded.loudest
            first.weight[index, places.memory[index]] = program.memory
            last.weight[index, index] = program.sharpness
    return model.eval()


def _linear(module: nn.Module) -> nn.Linear:
    assert isinstance(module, nn.Linear)
    return module


def _is_norm(name: str, weight: Tensor) -> bool:
    return name.endswith("weight") and weight.dim() == 1


def _copy_marks(model: TransformerClassifier, coded: Coded) -> None:
    """The lowest layer attends to marks alone and writes what they say into every word."""
    layer: Any = model.encoder.layers[0]
    places = coded.places
    layer.query.weight[0, places.one] = SURE * math.sqrt(coded.classes)
    layer.key.weight[0, places.mark] = 1
    for index in range(coded.classes):
        layer.value.weight[index, places.write[index]] = 1
        layer.out.weight[:, index] = coded.mirrored(places.memory[index], 1.0)


def _find_matches(model: TransformerClassifier, coded: Coded) -> None:
    """The same layer's feed-forward part finds the words that say what was written."""
    layer: Any = model.encoder.layers[0]
    norm, inner, _, outer = layer.feed_forward
    norm.weight.mul_(coded.growth)
    bias, height = coded.matching
    for index in range(coded.classes):
        inner.weight[index, coded.places.says[index]] = STEEP
        inner.weight[index, coded.places.memory[index]] = STEEP
        inner.weight[index, coded.places.mark] = -STEEP
        inner.bias[index] = bias
        outer.weight[:, index] = coded.mirrored(coded.places.match, height)


def _score(model: TransformerClassifier, coded: Coded) -> None:
    """The pooling attention reads the score of a word, and whether it matches."""
    pooling: Any = model.encoder.pooling
    first, _, _, second, _, _, last = pooling
    for hidden, (place, weight) in enumerate(
        ((coded.places.score, coded.range), (coded.places.match, coded.program.match))
    ):
        first.weight[hidden, place] = second.weight[hidden, hidden] = 1
        last.weight[0, hidden] = weight
