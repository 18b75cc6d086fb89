"""Mechanisms that were learnt: the data are planted, the right answer is the trained model's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from heedful.calibration.hiding import fit_hiding
from heedful.calibration.mechanism import (
    NEUTRAL,
    Build,
    Built,
    Text,
    Writer,
    corpus_of,
    fillers,
    other_class,
    says,
    scattered,
)
from heedful.calibration.mechanisms_composition import NOT, QUITE, negated
from heedful.calibration.mechanisms_words import among_voices, one_word, vocabulary
from heedful.corpora.encoded import EncodedCorpus
from heedful.jobs.decider import Decider
from heedful.models.recipe import parse
from heedful.models.saved import build as build_model
from heedful.models.transformer import TransformerClassifier
from heedful.models.transformer_config import TransformerConfig
from heedful.runs.randomness import seeded
from heedful.training import fit
from heedful.training.config import TrainConfig

SHORTCUTS = ("sequel", "classic")
"""Words that come with a label in the training texts, and say nothing."""
SIZES = {"train": 600, "dev": 100}
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

Learn = Callable[[EncodedCorpus, int], Decider]


def trained(
    learn: Learn, write: Writer, substitutes: Mapping[str, Sequence[str]] | None = None
) -> Build:
    """A model that learns from 600 texts and is looked at on others."""
    replaced = {word: tuple(others) for word, others in (substitutes or other_class()).items()}

    def build(seed: int, documents: int) -> Built:
        words = (*vocabulary(), QUITE, *SHORTCUTS)
        corpus = corpus_of(write, {**SIZES, "test": documents}, seed, words=words)
        return Built(learn(corpus, seed), corpus, replaced, NEUTRAL)

    return build


def _of(recipe: str, epochs: int = 12, rate: float = 0.01) -> Learn:
    """Trains a recipe from scratch."""

    def learn(corpus: EncodedCorpus, seed: int) -> Decider:
        config = parse(recipe, embedding_dim=16, width=16).model
        model = build_model(config, corpus.vocabulary, corpus.classes, seed=seed)
        model.tokeniser = "whitespace"
        fit(model, corpus, TrainConfig(epochs=epochs, learning_rate=rate, patience=0), seed=seed)
        return model.eval()

    return learn


def _transformer(corpus: EncodedCorpus, seed: int) -> Decider:
    """Trains our own Transformer from scratch."""
    with seeded(seed):
        model = TransformerClassifier(SMALL, corpus.vocabulary, corpus.classes, "whitespace")
    fit_hiding(model, corpus, 0.0, epochs=20, learning_rate=6e-3, seed=seed)
    return model.eval()


def _hiding(recipe: str, strength: float) -> Learn:
    """Trains a recipe with a penalty on attention to the evidence."""

    def learn(corpus: EncodedCorpus, seed: int) -> Decider:
        config = parse(recipe, embedding_dim=16, width=16).model
        model = build_model(config, corpus.vocabulary, corpus.classes, seed=seed)
        model.tokeniser = "whitespace"
        fit_hiding(model, corpus, strength, epochs=20, learning_rate=0.02, seed=seed)
        return model.eval()

    return learn


def _shortcut(correct: float) -> Writer:
    """Texts with a voice that is right so often, and a word that comes with the label."""

    def write(rng: np.random.Generator, label: int) -> Text:
        said = label if rng.random() < correct else 1 - label
        kept = [SHORTCUTS[label if rng.random() < 0.97 else 1 - label], says(said, rng)]
        order = [str(word) for word in rng.permutation(kept)]
        words, places = scattered(rng, order, fillers(rng, int(rng.integers(6, 11))))
        return Text(words, label, places)

    return write


NEGATION = {**other_class(), NOT: (QUITE, NEUTRAL[0]), QUITE: (NOT, NEUTRAL[0])}
SHORTCUT = {
    **other_class(),
    SHORTCUTS[0]: (SHORTCUTS[1], NEUTRAL[0]),
    SHORTCUTS[1]: (SHORTCUTS[0], NEUTRAL[0]),
}

MECHANISMS: dict[str, Build] = {
    **{
        f"negation learnt by {recipe}": trained(
            _of(recipe, epochs=20), negated(always=True), NEGATION
        )
        for recipe in ("conv+additive", "bilstm+additive", "gru+dot")
    },
    "negation learnt by a Transformer": trained(_transformer, negated(always=True), NEGATION),
    "one word learnt without an encoder": trained(
        _of("none+additive", epochs=15, rate=0.03), one_word()
    ),
    "verdicts learnt by a recurrent model": trained(_of("bilstm+additive"), among_voices()),
    "a shortcut learnt without an encoder": trained(
        _of("none+additive", epochs=15, rate=0.03), _shortcut(0.8), SHORTCUT
    ),
    "a shortcut learnt by a recurrent model": trained(_of("bigru+dot"), _shortcut(0.8), SHORTCUT),
    "trained with frozen even attention": trained(_of("bilstm+uniform"), among_voices()),
    "trained to hide, without an encoder": trained(_hiding("none+additive", 0.2), one_word()),
    "trained to hide in a recurrent model": trained(_hiding("bilstm+additive", 2.0), one_word()),
}
