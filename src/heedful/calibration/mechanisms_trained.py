"""Mechanisms that were learnt: the data are planted, the right answer is the trained model's.

The open ones, the blind ones whose attention was taught, misled, frozen or left to itself, and the
opponent's, trained as a practitioner would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from heedful.calibration.blind2_streams import DOUBLE, double_negation
from heedful.calibration.blind2_tables import CRIMES, DESKS, FIRST, POLITE, SECOND, paragraphs
from heedful.calibration.blind_texts import VOICES, Substitutes, among, counterparts, one_of
from heedful.calibration.blind_windows import SIGNS, signs
from heedful.calibration.compiled_stream import words_between_spaces
from heedful.calibration.hiding import DecisionPass, Trainable, fit_attended, fit_hiding
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
from heedful.calibration.mechanisms_counts import voting
from heedful.calibration.mechanisms_words import DECOY, among_voices, one_word, vocabulary
from heedful.corpora.encoded import EncodedCorpus
from heedful.jobs.decider import Decider
from heedful.models.huggingface import PretrainedClassifier
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

Start = Callable[[EncodedCorpus, int], Trainable]
"""A model before training."""
Learn = Callable[[EncodedCorpus, int], Decider]
"""A trained model."""


def learnt(
    learn: Learn,
    write: Writer,
    substitutes: Substitutes = VOICES,
    *,
    also: Sequence[str] = (),
    classes: int = 2,
    shares: Sequence[float] | None = None,
) -> Build:
    """A model that learns from 600 texts and is looked at on others; `also` are words it knows."""

    def build(seed: int, documents: int) -> Built:
        replaced = (word for own, others in substitutes.items() for word in (own, *others))
        words, sizes = (*vocabulary(), *also, *replaced), {**SIZES, "test": documents}
        corpus = corpus_of(write, sizes, seed, words=words, classes=classes, shares=shares)
        return Built(learn(corpus, seed), corpus, substitutes, NEUTRAL)

    return build


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


def fitted(start: Start, epochs: int = 12, rate: float = 0.01) -> Learn:
    """As users train."""

    def learn(corpus: EncodedCorpus, seed: int) -> Decider:
        model = start(corpus, seed)
        fit(model, corpus, TrainConfig(epochs=epochs, learning_rate=rate, patience=0), seed=seed)
        return model.eval()

    return learn


def hiding(start: Start, strength: float = 0.0, *, epochs: int = 20, rate: float = 0.02) -> Learn:
    """Trained with a penalty on attention to the evidence, if asked for."""

    def learn(corpus: EncodedCorpus, seed: int) -> Decider:
        model = start(corpus, seed)
        fit_hiding(model, corpus, strength, epochs=epochs, learning_rate=rate, seed=seed)
        return model

    return learn


def taught(start: Start, teaching: float = 0.0, *, epochs: int = 12, rate: float = 0.01) -> Learn:
    """Trained with `teaching` times -log of the attention on what is marked."""

    def added(found: DecisionPass) -> torch.Tensor:
        shown = (found.attention * found.known).sum(-1)
        return -teaching * shown.clamp_min(1e-6).log().mean()

    def learn(corpus: EncodedCorpus, seed: int) -> Decider:
        model = start(corpus, seed)
        fit_attended(model, corpus, added if teaching else None, "learnt", epochs, rate, seed)
        return model

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


def _routed(rng: np.random.Generator, label: int) -> list[str]:
    return [one_of(DESKS[label], rng), *POLITE]


def _mislabelled(share: float) -> Callable[[np.random.Generator, int], list[str]]:
    """A voice for the label, but in that share of the texts for the other class."""
    return lambda rng, label: [says(label if rng.random() >= share else 1 - label, rng)]


def _idiom(rng: np.random.Generator, label: int) -> Text:
    """An idiom or a pair that is none, adjacent, amid neutral words."""
    kind, before = int(rng.integers(2)), fillers(rng, int(rng.integers(3, 6)))
    pair = [FIRST[kind], SECOND[kind if label else 1 - kind]]
    return Text([*before, *pair, *fillers(rng, 3)], label, [len(before), len(before) + 1])


def _opinions(rng: np.random.Generator, label: int) -> list[str]:
    """Four to six opinions, one of them against the label."""
    return [says(1 - label, rng)] + [says(label, rng) for _ in range(int(rng.integers(3, 6)))]


def _crime(rng: np.random.Generator, label: int) -> list[str]:
    """Class 1 has a crime; class 0 has nothing in its place."""
    return [one_of(CRIMES, rng)] if label else [POLITE[0]]


EITHER = other_class()
NEGATION = {**EITHER, NOT: (QUITE, NEUTRAL[0]), QUITE: (NOT, NEUTRAL[0])}
SHORTCUT = {
    **EITHER,
    SHORTCUTS[0]: (SHORTCUTS[1], NEUTRAL[0]),
    SHORTCUTS[1]: (SHORTCUTS[0], NEUTRAL[0]),
}
IDIOMS = counterparts(*[(w,) for w in FIRST], neutral=False) | counterparts(
    *[(w,) for w in SECOND], neutral=False
)
BESIDE = _marking(DECOY, one_word(beside=(DECOY,)))
_open = partial(learnt, also=(QUITE, *SHORTCUTS))
_opponent = partial(learnt, also=POLITE)
_usual = partial(hiding, epochs=8)

MECHANISMS: dict[str, Build] = {
    **{
        f"negation learnt by {name}": _open(
            fitted(recipe(name), epochs=20), negated(always=True), NEGATION
        )
        for name in ("conv+additive", "bilstm+additive", "gru+dot")
    },
    "negation learnt by a Transformer": _open(
        hiding(own, rate=6e-3), negated(always=True), NEGATION
    ),
    "one word learnt without an encoder": _open(
        fitted(recipe("none+additive"), epochs=15, rate=0.03), one_word(), EITHER
    ),
    "verdicts learnt by a recurrent model": _open(
        fitted(recipe("bilstm+additive")), among_voices(), EITHER
    ),
    "a shortcut learnt without an encoder": _open(
        fitted(recipe("none+additive"), epochs=15, rate=0.03), _shortcut(0.8), SHORTCUT
    ),
    "a shortcut learnt by a recurrent model": _open(
        fitted(recipe("bigru+dot")), _shortcut(0.8), SHORTCUT
    ),
    "trained with frozen even attention": _open(
        fitted(recipe("bilstm+uniform")), among_voices(), EITHER
    ),
    "trained to hide, without an encoder": _open(
        hiding(recipe("none+additive"), 0.2), one_word(), EITHER
    ),
    "trained to hide in a recurrent model": _open(
        hiding(recipe("bilstm+additive"), 2.0), one_word(), EITHER
    ),
    "taught to look at the verdict, recurrent": learnt(
        taught(recipe("bilstm+additive"), 1.0), among_voices(), EITHER
    ),
    "taught to look at the word, own Transformer": learnt(taught(own, 1.0, rate=3e-3), one_word()),
    "taught to look at a bystander, recurrent": learnt(taught(recipe("bigru+dot"), 1.0), BESIDE),
    "taught to look at a bystander, without an encoder": learnt(
        taught(recipe("none+additive"), 1.0, epochs=20, rate=0.02), BESIDE
    ),
    "frozen random attention": learnt(
        taught(recipe("bigru+dot", frozen=True)), among_voices(), EITHER
    ),
    "a vote learnt by attention without an encoder": learnt(
        taught(recipe("affine-tanh+additive"), epochs=20), voting(5, 0.4, 6)
    ),
    "the first voice learnt by an LSTM": learnt(
        taught(recipe("lstm+additive"), epochs=20), among(_first_wins, in_order=True)
    ),
    "two signs learnt without an encoder": learnt(
        taught(recipe("none+scaled-dot"), epochs=20, rate=0.02), among(signs), SIGNS
    ),
    "learnt from noise": learnt(taught(recipe("conv+additive")), among(_noise)),
    "one word learnt by a small BERT": learnt(taught(_bert, epochs=10, rate=3e-3), one_word()),
    "four desks learnt without an encoder": _opponent(
        hiding(recipe("none+additive"), epochs=15),
        among(_routed),
        counterparts(*DESKS[:4]),
        classes=4,
    ),
    "four desks learnt by a GRU": _opponent(
        _usual(recipe("bigru+additive")), among(_routed), counterparts(*DESKS[:4]), classes=4
    ),
    "three desks learnt by our own Transformer": _opponent(
        hiding(own, epochs=10, rate=6e-3), among(_routed), counterparts(*DESKS[:3]), classes=3
    ),
    "one label in five wrong, affine": _opponent(
        hiding(recipe("affine-tanh+dot"), epochs=12), among(_mislabelled(0.2))
    ),
    "fifteen texts in a hundred, recurrent": _opponent(
        _usual(recipe("bilstm+dot")), one_word(), shares=(0.85, 0.15)
    ),
    "an idiom learnt by a convolution": _opponent(
        hiding(recipe("conv+dot"), epochs=12), _idiom, IDIOMS
    ),
    "long texts learnt by a GRU": _opponent(
        _usual(recipe("gru+additive")), one_word(others=(34, 45))
    ),
    "opinions learnt without an encoder": _opponent(
        hiding(recipe("none+additive"), epochs=12), among(_opinions)
    ),
    "sentences learnt without an encoder": _opponent(
        hiding(recipe("han:none+additive"), epochs=15), paragraphs(5, lambda r, c: [says(c, r)])
    ),
    "one class by what is absent, learnt": _opponent(
        hiding(recipe("none+dot"), epochs=15), among(_crime), counterparts(CRIMES, POLITE[:1])
    ),
    "half hidden, a convolution": _opponent(_usual(recipe("conv+additive"), 0.5), one_word()),
    "three desks, attention kept off the keyword": _opponent(
        _usual(recipe("gru+dot"), 1.0), among(_routed), counterparts(*DESKS[:3]), classes=3
    ),
    "double negation learnt by a BiGRU": _opponent(
        hiding(recipe("bigru+dot"), epochs=12), among(double_negation), DOUBLE
    ),
    "a crime in long texts, own Transformer": _opponent(
        _usual(own, rate=6e-3), among(_crime, (24, 34)), counterparts(CRIMES, POLITE[:1])
    ),
}
