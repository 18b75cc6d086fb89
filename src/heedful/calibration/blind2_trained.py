"""The opponent's models that were learnt, as a practitioner would train them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from heedful.calibration.blind2_streams import DOUBLE, double_negation
from heedful.calibration.blind2_tables import CRIMES, DESKS, POLITE, observed, paragraphs
from heedful.calibration.blind2_windows import FIRST, SECOND
from heedful.calibration.blind_texts import Build, Substitutes, among, counterparts, one_of
from heedful.calibration.blind_trained import Start, recipe
from heedful.calibration.hiding import Trainable, fit_hiding
from heedful.calibration.mechanism import (
    NEUTRAL,
    SAYING,
    Built,
    Text,
    Writer,
    corpus_of,
    fillers,
    says,
)
from heedful.calibration.mechanisms_trained import SIZES, SMALL
from heedful.calibration.mechanisms_words import one_word, vocabulary
from heedful.corpora.encoded import EncodedCorpus
from heedful.models.transformer import TransformerClassifier
from heedful.runs.randomness import seeded

VOICES = counterparts(*SAYING[:2])
IDIOMS = counterparts(*[(w,) for w in FIRST], neutral=False) | counterparts(
    *[(w,) for w in SECOND], neutral=False
)


def _own(corpus: EncodedCorpus, seed: int) -> Trainable:
    with seeded(seed):
        return TransformerClassifier(SMALL, corpus.vocabulary, corpus.classes, "whitespace")


def _learnt(
    start: Start,
    write: Writer,
    substitutes: Substitutes = VOICES,
    *,
    classes: int = 2,
    shares: Sequence[float] | None = None,
    epochs: int = 8,
    rate: float = 0.02,
    hiding: float = 0.0,
) -> Build:
    """Trained on 600 texts, with a penalty on attention to the evidence if asked for."""

    def build(seed: int, documents: int) -> Built:
        words = (*vocabulary(), *POLITE, *(w for own, o in substitutes.items() for w in (own, *o)))
        sizes = {**SIZES, "test": documents}
        corpus = corpus_of(write, sizes, seed, words=words, classes=classes, shares=shares)
        model = start(corpus, seed)
        fit_hiding(model, corpus, hiding, epochs=epochs, learning_rate=rate, seed=seed)
        return Built(model, corpus, substitutes, NEUTRAL)

    return build


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


MECHANISMS = [
    observed(
        "four desks learnt without an encoder",
        "none+additive, trained to send mails with one keyword and two polite words to four desks.",
        "learnt topics",
        _learnt(
            recipe("none+additive"), among(_routed), counterparts(*DESKS[:4]), classes=4, epochs=15
        ),
    ),
    observed(
        "four desks learnt by a GRU",
        "bigru+additive, trained on the same mails; its states spread the keyword.",
        "learnt topics",
        _learnt(recipe("bigru+additive"), among(_routed), counterparts(*DESKS[:4]), classes=4),
    ),
    observed(
        "three desks learnt by our own Transformer",
        "Our own Transformer of two layers, trained on the same mails for three desks.",
        "learnt topics",
        _learnt(_own, among(_routed), counterparts(*DESKS[:3]), classes=3, rate=6e-3, epochs=10),
    ),
    observed(
        "one label in five wrong, affine",
        "affine-tanh+dot, trained on texts whose voice says the other class in one text of five.",
        "learnt with noise",
        _learnt(recipe("affine-tanh+dot"), among(_mislabelled(0.2)), epochs=12),
    ),
    observed(
        "fifteen texts in a hundred, recurrent",
        "bilstm+dot, trained on one word, with class 1 in fifteen texts of a hundred.",
        "learnt imbalance",
        _learnt(recipe("bilstm+dot"), one_word(), shares=(0.85, 0.15)),
    ),
    observed(
        "an idiom learnt by a convolution",
        "conv+dot, trained on adjacent pairs that are idioms or not: both words are needed, and "
        "one place can hold them.",
        "learnt idioms",
        _learnt(recipe("conv+dot"), _idiom, IDIOMS, epochs=12),
    ),
    observed(
        "long texts learnt by a GRU",
        "gru+additive, trained on one word in texts of 35 to 45: states after the word remember "
        "it, and attention may lie on any of them.",
        "learnt long texts",
        _learnt(recipe("gru+additive"), one_word(others=(34, 45))),
    ),
    observed(
        "opinions learnt without an encoder",
        "none+additive, trained on four to six opinions of which one is against the label.",
        "learnt votes",
        _learnt(recipe("none+additive"), among(_opinions), epochs=12),
    ),
    observed(
        "sentences learnt without an encoder",
        "A hierarchical none+additive, trained on documents of five sentences, one of which has a "
        "word for the class: it attends within sentences and to sentences.",
        "learnt sentences",
        _learnt(recipe("han:none+additive"), paragraphs(5, lambda r, c: [says(c, r)]), epochs=15),
    ),
    observed(
        "one class by what is absent, learnt",
        "none+dot, trained on texts with a crime (class 1) or a polite word (class 0): it may read "
        "either, or only the crime.",
        "learnt absence",
        _learnt(recipe("none+dot"), among(_crime), counterparts(CRIMES, POLITE[:1]), epochs=15),
    ),
    observed(
        "half hidden, a convolution",
        "conv+additive, trained on one word with a mild penalty on attention to it: neighbours "
        "hold the word, and attention may go to them.",
        "learnt hiding",
        _learnt(recipe("conv+additive"), one_word(), hiding=0.5),
    ),
    observed(
        "three desks, attention kept off the keyword",
        "gru+dot, trained on mails for three desks with a penalty on attention to what is planted: "
        "later states hold the keyword.",
        "learnt hiding",
        _learnt(recipe("gru+dot"), among(_routed), counterparts(*DESKS[:3]), classes=3, hiding=1.0),
    ),
    observed(
        "double negation learnt by a BiGRU",
        "bigru+dot, trained on a voice with two modifiers; one `not` turns it around, two do not.",
        "learnt parity",
        _learnt(recipe("bigru+dot"), among(double_negation), DOUBLE, epochs=12),
    ),
    observed(
        "a crime in long texts, own Transformer",
        "Our own Transformer, trained on texts of 25 to 35 words with a crime or a polite word.",
        "learnt long texts",
        _learnt(_own, among(_crime, (24, 34)), counterparts(CRIMES, POLITE[:1]), rate=6e-3),
    ),
]
