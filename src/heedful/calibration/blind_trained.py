"""Blind mechanisms that were learnt: attention taught, misled, frozen, or left to itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from heedful.calibration.blind_texts import VOICES, Substitutes, among
from heedful.calibration.blind_windows import SIGNS, signs
from heedful.calibration.compiled_stream import words_between_spaces
from heedful.calibration.hiding import DecisionPass, Trainable, fit_attended
from heedful.calibration.mechanism import (
    NEUTRAL,
    Build,
    Built,
    Text,
    Writer,
    corpus_of,
    other_class,
    says,
)
from heedful.calibration.mechanisms_counts import voting
from heedful.calibration.mechanisms_trained import SIZES, SMALL
from heedful.calibration.mechanisms_words import DECOY, among_voices, one_word, vocabulary
from heedful.corpora.encoded import EncodedCorpus
from heedful.models.huggingface import PretrainedClassifier
from heedful.models.recipe import parse
from heedful.models.saved import build as build_model
from heedful.models.transformer import TransformerClassifier
from heedful.runs.randomness import seeded

Start = Callable[[EncodedCorpus, int], Trainable]
"""A model before training."""


def recipe(name: str, *, frozen: bool = False) -> Start:
    """A recipe with random weights; frozen attention stays as it starts."""

    def start(corpus: EncodedCorpus, seed: int) -> Trainable:
        config = parse(name, embedding_dim=16, width=16).model
        model = build_model(config, corpus.vocabulary, corpus.classes, seed=seed)
        model.tokeniser = "whitespace"
        if frozen:
            with torch.no_grad():
                for weight in model.level.attention.parameters():
                    weight.mul_(4.0).requires_grad_(False)
        return model

    return start


def own(corpus: EncodedCorpus, seed: int) -> Trainable:
    """A small Transformer of our own with random weights."""
    with seeded(seed):
        return TransformerClassifier(SMALL, corpus.vocabulary, corpus.classes, "whitespace")


def _bert(corpus: EncodedCorpus, seed: int) -> Trainable:
    """Two layers of BERT with random weights."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    config = AutoConfig.for_model(
        "bert",
        vocab_size=len(corpus.vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=40,
        num_labels=len(corpus.classes),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.1,
        attn_implementation="eager",
    )
    with seeded(seed):
        make: Any = AutoModelForSequenceClassification.from_config
        module = make(config).eval()
    words = words_between_spaces(corpus.vocabulary, has_frame=True)
    model = PretrainedClassifier(
        module, words, corpus.classes, site="pooled", max_pieces=40, recipe="bert"
    )
    model.tokeniser = "whitespace"
    return model


def _learnt(
    start: Start,
    write: Writer,
    substitutes: Substitutes = VOICES,
    *,
    teaching: float = 0.0,
    epochs: int = 12,
    rate: float = 0.01,
) -> Build:
    """Trained on 600 texts, with `teaching` times -log of the attention on what is marked."""

    def added(found: DecisionPass) -> torch.Tensor:
        shown = (found.attention * found.known).sum(-1)
        return -teaching * shown.clamp_min(1e-6).log().mean()

    def build(seed: int, documents: int) -> Built:
        words = (*vocabulary(), *(w for own, o in substitutes.items() for w in (own, *o)))
        corpus = corpus_of(write, {**SIZES, "test": documents}, seed, words=words)
        model = start(corpus, seed)
        fit_attended(model, corpus, added if teaching else None, "learnt", epochs, rate, seed)
        return Built(model, corpus, substitutes, NEUTRAL)

    return build


def _marking(word: str, write: Writer) -> Writer:
    """Marks that word, instead of what carries the label."""

    def written(rng: np.random.Generator, label: int) -> Text:
        text = write(rng, label)
        return text._replace(evidence=[p for p, w in enumerate(text.words) if w == word])

    return written


def _first_wins(rng: np.random.Generator, label: int) -> list[str]:
    return [says(label, rng), says(int(rng.integers(2)), rng)]


def _noise(rng: np.random.Generator, label: int) -> list[str]:
    """A word for any class: the label is noise."""
    return [says(int(rng.integers(2)), rng)]


BESIDE = _marking(DECOY, one_word(beside=(DECOY,)))

MECHANISMS: dict[str, Build] = {
    "taught to look at the verdict, recurrent": _learnt(
        recipe("bilstm+additive"), among_voices(), other_class(), teaching=1.0
    ),
    "taught to look at the word, own Transformer": _learnt(
        own, one_word(), teaching=1.0, rate=3e-3
    ),
    "taught to look at a bystander, recurrent": _learnt(recipe("bigru+dot"), BESIDE, teaching=1.0),
    "taught to look at a bystander, without an encoder": _learnt(
        recipe("none+additive"), BESIDE, teaching=1.0, epochs=20, rate=0.02
    ),
    "frozen random attention": _learnt(
        recipe("bigru+dot", frozen=True), among_voices(), other_class()
    ),
    "a vote learnt by attention without an encoder": _learnt(
        recipe("affine-tanh+additive"), voting(5, 0.4, 6), epochs=20
    ),
    "the first voice learnt by an LSTM": _learnt(
        recipe("lstm+additive"), among(_first_wins, in_order=True), epochs=20
    ),
    "two signs learnt without an encoder": _learnt(
        recipe("none+scaled-dot"), among(signs), SIGNS, epochs=20, rate=0.02
    ),
    "learnt from noise": _learnt(recipe("conv+additive"), among(_noise)),
    "one word learnt by a small BERT": _learnt(_bert, one_word(), epochs=10, rate=3e-3),
}
