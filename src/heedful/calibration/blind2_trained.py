"""The opponent's models that were learnt, as a practitioner would train them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from heedful.calibration.blind2_streams import DOUBLE, double_negation
from heedful.calibration.blind2_tables import CRIMES, DESKS, POLITE, paragraphs
from heedful.calibration.blind2_windows import FIRST, SECOND
from heedful.calibration.blind_texts import VOICES, Substitutes, among, counterparts, one_of
from heedful.calibration.blind_trained import Start, own, recipe
from heedful.calibration.hiding import fit_hiding
from heedful.calibration.mechanism import (
    NEUTRAL,
    Build,
    Built,
    Text,
    Writer,
    corpus_of,
    fillers,
    says,
)
from heedful.calibration.mechanisms_trained import SIZES
from heedful.calibration.mechanisms_words import one_word, vocabulary

IDIOMS = counterparts(*[(w,) for w in FIRST], neutral=False) | counterparts(
    *[(w,) for w in SECOND], neutral=False
)


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


MECHANISMS: dict[str, Build] = {
    "four desks learnt without an encoder": _learnt(
        recipe("none+additive"), among(_routed), counterparts(*DESKS[:4]), classes=4, epochs=15
    ),
    "four desks learnt by a GRU": _learnt(
        recipe("bigru+additive"), among(_routed), counterparts(*DESKS[:4]), classes=4
    ),
    "three desks learnt by our own Transformer": _learnt(
        own, among(_routed), counterparts(*DESKS[:3]), classes=3, rate=6e-3, epochs=10
    ),
    "one label in five wrong, affine": _learnt(
        recipe("affine-tanh+dot"), among(_mislabelled(0.2)), epochs=12
    ),
    "fifteen texts in a hundred, recurrent": _learnt(
        recipe("bilstm+dot"), one_word(), shares=(0.85, 0.15)
    ),
    "an idiom learnt by a convolution": _learnt(recipe("conv+dot"), _idiom, IDIOMS, epochs=12),
    "long texts learnt by a GRU": _learnt(recipe("gru+additive"), one_word(others=(34, 45))),
    "opinions learnt without an encoder": _learnt(
        recipe("none+additive"), among(_opinions), epochs=12
    ),
    "sentences learnt without an encoder": _learnt(
        recipe("han:none+additive"), paragraphs(5, lambda r, c: [says(c, r)]), epochs=15
    ),
    "one class by what is absent, learnt": _learnt(
        recipe("none+dot"), among(_crime), counterparts(CRIMES, POLITE[:1]), epochs=15
    ),
    "half hidden, a convolution": _learnt(recipe("conv+additive"), one_word(), hiding=0.5),
    "three desks, attention kept off the keyword": _learnt(
        recipe("gru+dot"), among(_routed), counterparts(*DESKS[:3]), classes=3, hiding=1.0
    ),
    "double negation learnt by a BiGRU": _learnt(
        recipe("bigru+dot"), among(double_negation), DOUBLE, epochs=12
    ),
    "a crime in long texts, own Transformer": _learnt(
        own, among(_crime, (24, 34)), counterparts(CRIMES, POLITE[:1]), rate=6e-3
    ),
}
