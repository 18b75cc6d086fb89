"""The models of the constructions, of every family: set by hand, or trained to their purpose."""

from __future__ import annotations

from typing import NamedTuple

from torch import nn

from heedful.calibration.hiding import fit_hiding
from heedful.calibration.known_classifiers import Program, hand_set
from heedful.calibration.known_documents import vocabulary_of
from heedful.calibration.known_pretrained import fresh, hand_set_pretrained
from heedful.calibration.known_transformers import hand_set_transformer
from heedful.corpora.encoded import EncodedCorpus
from heedful.errors import InputError
from heedful.jobs.decider import Decider
from heedful.models.huggingface import PretrainedClassifier
from heedful.models.recipe import parse
from heedful.models.saved import build as build_model
from heedful.models.transformer import TransformerClassifier
from heedful.models.transformer_config import TransformerConfig
from heedful.runs.randomness import seeded
from heedful.training import fit
from heedful.training.config import TrainConfig

TRANSFORMERS = ("transformer", "bert", "gpt2")
"""Recipes beside those of `models.recipe`: our own Transformer, and two of `transformers`."""
PRETRAINED = ("bert", "gpt2")
SMALL = TransformerConfig(
    embedding_dim=32,
    layers=2,
    heads=2,
    head_dim=16,
    feed_forward=32,
    pooling_dims=(16, 16),
    decider_dim=16,
    dropout=0.0,
    top_dropout=0.0,
    loss="cross-entropy",
)
"""Sizes of a Transformer that is trained."""


class RecipeParts(NamedTuple):
    """What a construction must know of a recipe: a Transformer's encoder is its whole family."""

    encoder: str
    attention: str


def parts_of(recipe: str) -> RecipeParts:
    """The parts of a recipe, of a Transformer too."""
    if recipe in TRANSFORMERS:
        return RecipeParts(recipe, "pooling" if recipe == "transformer" else "self")
    parts = parse(recipe).model
    return RecipeParts(parts.encoder, parts.attention)


def by_hand(recipe: str, classes: int, program: Program, *, is_around: bool = False) -> Decider:
    """The model of a recipe that runs a program; `is_around` as in `hand_set_pretrained`."""
    if recipe in PRETRAINED:
        return hand_set_pretrained(recipe, classes, program, is_around=is_around)
    if is_around:
        raise InputError(f"{recipe} has no residual stream around its audited attention.")
    if recipe == "transformer":
        return hand_set_transformer(classes, program)
    return hand_set(recipe, classes, program)


def learns_to_attend(
    recipe: str, classes: int, program: Program, corpus: EncodedCorpus, seed: int
) -> Decider:
    """A model by hand, except that its audited attention starts at random and is trained."""
    model = by_hand(recipe, classes, program)
    with seeded(seed):
        for name, weight in model.named_parameters():
            weight.requires_grad_(_scores(name, recipe))
            if weight.requires_grad:
                nn.init.normal_(weight, std=0.3 if recipe in TRANSFORMERS else 1.0)
    if recipe in TRANSFORMERS:
        fit_hiding(model, corpus, 0.0, epochs=20, learning_rate=0.1, seed=seed)
    else:
        assert not isinstance(model, PretrainedClassifier)
        fit(model, corpus, TrainConfig(epochs=15, learning_rate=0.5, patience=0), seed=seed)
    return model.eval()


def learns_evenly(recipe: str, classes: int, corpus: EncodedCorpus, seed: int) -> Decider:
    """A model trained from scratch with its audited attention frozen uniform."""
    model = _fresh(recipe, classes, corpus, seed)
    if recipe in TRANSFORMERS:
        for name, weight in model.named_parameters():
            if _scores(name, recipe):
                weight.requires_grad_(False).zero_()
        fit_hiding(model, corpus, 0.0, epochs=15, learning_rate=3e-3, seed=seed)
    else:
        assert not isinstance(model, PretrainedClassifier)
        fit(model, corpus, TrainConfig(epochs=15, learning_rate=0.02, patience=4), seed=seed)
    return model.eval()


def learns_to_hide(recipe: str, classes: int, corpus: EncodedCorpus, seed: int) -> Decider:
    """A model trained from scratch to keep attention off the evidence while deciding by it."""
    model = _fresh(recipe, classes, corpus, seed)
    rate = 3e-3 if recipe in TRANSFORMERS else 0.02
    fit_hiding(model, corpus, 2.0, epochs=30, learning_rate=rate, seed=seed)
    return model.eval()


def _scores(name: str, recipe: str) -> bool:
    """Whether a weight is part of how the audited attention scores units."""
    if recipe == "gpt2":
        raise InputError("GPT-2 keeps queries, keys and values in one weight; take bert.")
    if recipe == "bert":
        return "layer.1.attention.self" in name and "value" not in name
    return ("encoder.pooling" if recipe == "transformer" else "level.attention") in name


def _fresh(recipe: str, classes: int, corpus: EncodedCorpus, seed: int) -> Decider:
    if recipe in PRETRAINED:
        return fresh(recipe, classes, 32, seed)
    if recipe == "transformer":
        with seeded(seed):
            return TransformerClassifier(SMALL, vocabulary_of(classes), corpus.classes)
    config = parse(recipe, embedding_dim=16, width=16).model
    return build_model(config, corpus.vocabulary, corpus.classes, seed=seed)
