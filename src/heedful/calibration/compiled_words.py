"""Classifiers whose words carry their numbers openly: a score, and what they say of each class.

    logits = Σ α_i z_i + b,  α = softmax of the scores,

so that a mechanism is a table of words. A convolution adds what a word and its neighbours make
together, and a hierarchical one attends within sentences first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch

from heedful.corpora.encoded import EncodedCorpus
from heedful.models.classifier import AttentionClassifier
from heedful.models.parts import Convolution, DotScores
from heedful.models.recipe import parse


def weighing(
    corpus: EncodedCorpus,
    scores: Mapping[str, float],
    said: Mapping[str, Sequence[float]],
    *,
    bias: Sequence[float] | None = None,
    within: Mapping[str, float] | None = None,
) -> AttentionClassifier:
    """The model of a table: score and logits by word, 0 for words that are not named.

    With `within`, scores of words inside their sentence, the model is hierarchical; the score of a
    sentence is then what its words' scores average to.
    """
    classes = len(corpus.classes)
    recipe = "none+dot" if within is None else "han:none+dot"
    model = _empty(recipe, corpus, embedding_dim=classes + 2)
    with torch.no_grad():
        for word, place in corpus.vocabulary.ids.items():
            row = [scores.get(word, 0.0), (within or {}).get(word, 0.0)]
            model.embedding.weight[place] = torch.tensor([*row, *said.get(word, [0.0] * classes)])
        _query(model.level.attention, 0)
        if model.words is not None:
            _query(model.words.attention, 1)
        model.head.weight[:, 2:] = torch.eye(classes)
        if bias is not None:
            model.head.bias.copy_(torch.tensor(bias))
    return model.eval()


class Feature(NamedTuple):
    """max(0, Σ weight · [word at that distance] + bias) at every place of a text."""

    taps: Mapping[tuple[str, int], float]
    """Weight by word and distance, from two words before (-2) to two after (2)."""
    bias: float
    score: float
    """What it adds to the attention score of its place."""
    said: Sequence[float]
    """What it says of each class there."""


def windowed(corpus: EncodedCorpus, features: Sequence[Feature]) -> AttentionClassifier:
    """A convolution that computes these features; places are scored by them and say what they say.

    Words stand for themselves (one dimension each).
    """
    words = len(corpus.vocabulary)
    sizes = {"embedding_dim": words, "width": 2 * len(features)}
    model = _empty("conv+dot", corpus, **sizes)
    encoder, scores = model.level.encoder, model.level.attention
    assert isinstance(encoder, Convolution)
    assert isinstance(scores, DotScores)
    with torch.no_grad():
        model.embedding.weight.copy_(torch.eye(words))
        for number, feature in enumerate(features):
            for (word, distance), weight in feature.taps.items():
                encoder.wide.weight[number, corpus.vocabulary.ids[word], 2 + distance] = weight
            assert encoder.wide.bias is not None
            encoder.wide.bias[number] = feature.bias
            place = len(features) + number  # the wide windows come second
            scores.query.weight[0, place] = feature.score
            model.head.weight[:, place] = torch.tensor(list(feature.said))
    return model.eval()


def _empty(recipe: str, corpus: EncodedCorpus, **sizes: int) -> AttentionClassifier:
    config = parse(recipe, **sizes).model
    model = AttentionClassifier(config, corpus.vocabulary, corpus.classes, tokeniser="whitespace")
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
    return model


def _query(scores: torch.nn.Module, place: int) -> None:
    assert isinstance(scores, DotScores)
    scores.query.weight[0, place] = 1.0
