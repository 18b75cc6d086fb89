"""Models whose right verdict is known, by construction: what calibration is made of.

*Known reliance* is the probability that the decision changes when the attention weights are dealt
out anew to random units of the document, as a share of what drawing the class anew would change
(1 - 1 / classes). It follows from how documents and weights are built, never from an audit:

* `reason`: what a random unit says is independent of the label, so it is 1;
* the leaked ones remember the label in every unit louder than any unit speaks, so it is 0;
* the dial `leak` remembers it louder than a share 1 - r of the strengths: a unit overrules the
  memory with probability r, so it is r;
* the dial `crowd` lets only a share r (1 - 1 / classes) of the units speak against the label: r.

The right word, fixed before anything was fitted: `no` up to a reliance of 1/4, `yes` from 3/4 on,
`partly` between; a model that deceives gets `no` however much its decisions depend on attention.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from heedful.audits.verdict import Word
from heedful.calibration.known_classifiers import REMEMBERING, Program
from heedful.calibration.known_documents import LEVELS, Shape, known, vocabulary_of
from heedful.calibration.known_models import (
    PRETRAINED,
    TRANSFORMERS,
    RecipeParts,
    by_hand,
    learns_evenly,
    learns_to_attend,
    learns_to_hide,
    parts_of,
)
from heedful.corpora.encoded import EncodedCorpus, encode
from heedful.jobs.decider import Decider
from heedful.runs.randomness import numpy_generator

Kind = Literal["reason", "irrelevant", "deceiving", "dial"]

NO, YES = 0.25, 0.75
"""Known reliance up to which the right word is no, and from which on it is yes."""
MARGIN = 0.05
"""A model whose known reliance is nearer than this to one of them is reported apart."""
DIAL = (0.0, 0.1, 0.15, 0.25, 0.35, 0.4, 0.5, 0.6, 0.65, 0.75, 0.85, 0.9, 1.0)

FAMILIES: dict[str, Shape] = {
    "short": Shape(units=(8, 14)),
    "long": Shape(units=(12, 18), marks=2, weak=0.3),
}
"""Corpus families: few units with one mark, and many units with two marks and weak fillers."""


@dataclass(frozen=True)
class ConstructedModel:
    """One constructed model: which construction, of which parts, on which documents."""

    construction: str
    recipe: str
    classes: int
    family: str
    seed: int = 0
    reliance: float | None = None
    """Where the dial stands; none for what is not a dial."""

    @property
    def name(self) -> str:
        """What its step is called."""
        recipe = self.recipe.replace(":", "-").replace("+", "-")
        dial = "" if self.reliance is None else f"-{self.reliance:.2f}"
        start = self.construction.replace(" ", "-") + dial
        return f"{start}/{recipe}-{self.classes}-{self.family}-{self.seed}"

    @property
    def encoder(self) -> str:
        """The encoder of the recipe."""
        return parts_of(self.recipe).encoder

    @property
    def shape(self) -> Shape:
        """The documents of the family, as sentences for a hierarchical recipe.

        An encoder that reads one way can tell the units after a mark only, so marks come first.
        """
        return replace(
            FAMILIES[self.family],
            classes=self.classes,
            words=2 if self.recipe.startswith("han:") else 1,
            is_marked_first=self.encoder in ("lstm", "gru", "gpt2"),
        )

    def vary(self, low: float, high: float, what: str) -> float:
        """A number between two others that depends on the seed alone."""
        rng = numpy_generator(self.seed, "construction", what, self.recipe, self.classes)
        return float(rng.uniform(low, high))


class Plan(NamedTuple):
    """What a construction consists of before any document is written."""

    kind: Kind
    shape: Shape
    reliance: float
    make: Callable[[EncodedCorpus], Decider]
    is_limit: bool = False
    """Whether no audit here can see through it: listed, never counted."""


class Known(NamedTuple):
    """A constructed model with its documents and its right word."""

    setting: ConstructedModel
    kind: Kind
    model: Decider
    corpus: EncodedCorpus
    reliance: float
    word: Word
    apart: str
    """Why it is listed apart and not counted: `near a border`, `known limit`, or nothing."""


def is_near(reliance: float) -> bool:
    """Whether a known reliance lies within the margin of a border."""
    return min(abs(reliance - NO), abs(reliance - YES)) < MARGIN - 1e-9


def right_word(kind: Kind, reliance: float) -> Word:
    """What the verdict should be."""
    if kind == "deceiving" or reliance <= NO:
        return "no"
    return "yes" if reliance >= YES else "partly"


def construct(setting: ConstructedModel, documents: int) -> Known:
    """The model of a setting with so many test documents."""
    built = CONSTRUCTIONS[setting.construction].build(setting)
    sizes = {"test": documents}
    if setting.construction.startswith("trained"):
        sizes |= {"train": 600, "dev": 100}
    corpus = encode(known(built.shape, sizes, setting.seed), vocabulary_of(setting.classes))
    word = right_word(built.kind, built.reliance)
    apart = "known limit" if built.is_limit else ""
    if built.kind == "dial" and is_near(built.reliance):
        apart = "near a border"
    model = built.make(corpus)
    return Known(setting, built.kind, model, corpus, built.reliance, word, apart)


def _set(
    setting: ConstructedModel, program: Program, *, is_around: bool = False
) -> Callable[[EncodedCorpus], Decider]:
    return lambda corpus: by_hand(setting.recipe, setting.classes, program, is_around=is_around)


def reason(s: ConstructedModel) -> Plan:
    """Marked units get nearly all attention and decide by what they say."""
    program = Program({"marked": s.vary(5.5, 9, "score")}, sharpness=s.vary(3, 8, "sharpness"))
    return Plan("reason", s.shape, 1.0, _set(s, program))


def chorus(s: ConstructedModel) -> Plan:
    """Three marked units share the attention and vote, two against one."""
    return _vote(s, 3, 1)


def choir(s: ConstructedModel) -> Plan:
    """Five marked units share the attention and vote, three against two."""
    return _vote(s, 5, 2)


def _vote(s: ConstructedModel, marks: int, dissenting: int) -> Plan:
    fewest = max(s.shape.units[0], (marks - dissenting) * s.classes)
    units = (fewest, max(s.shape.units[1], fewest + 4))
    shape = replace(s.shape, marks=marks, dissenting=dissenting, units=units, is_marked_first=False)
    program = Program({"marked": s.vary(6.5, 9, "score")}, sharpness=s.vary(6, 12, "sharpness"))
    return Plan("reason", shape, 1.0, _set(s, program))


def leaked(s: ConstructedModel) -> Plan:
    """Attention lies on the mark, but every unit remembers the label louder than it speaks."""
    program = Program({"marked": s.vary(3, 9, "score")}, memory=s.vary(2, 4, "memory"))
    return Plan("irrelevant", s.shape, 0.0, _set(s, program))


def whimsical(s: ConstructedModel) -> Plan:
    """As leaked, with attention on words that have nothing to do with the label."""
    program = Program(whim=s.vary(3, 8, "whim"), memory=s.vary(2, 4, "memory"))
    return Plan("irrelevant", s.shape, 0.0, _set(s, program))


def even(s: ConstructedModel) -> Plan:
    """As leaked, with the same attention on every unit."""
    return Plan("irrelevant", s.shape, 0.0, _set(s, Program(memory=s.vary(2, 4, "memory"))))


def bypassed(s: ConstructedModel) -> Plan:
    """Attention lies on the mark; what is read knows the label already, around attention."""
    program = Program({"marked": s.vary(3, 9, "score")}, memory=s.vary(2, 4, "memory"))
    return Plan("irrelevant", s.shape, 0.0, _set(s, program, is_around=True))


def bag(s: ConstructedModel) -> Plan:
    """The same attention on every unit, and no memory: all units vote."""
    against = s.vary(0.3, 0.45, "against")
    shape = replace(s.shape, disagreeing=against * 2 * (1 - 1 / s.classes))
    return Plan("irrelevant", shape, 0.0, _set(s, Program(sharpness=20)))


def hidden(s: ConstructedModel) -> Plan:
    """The mark has next to no attention, and speaks so loud that it decides all the same."""
    score = s.vary(3, 6, "score")
    loud = 8 * s.shape.units[1] * np.exp(score)
    program = Program({"plain": score, "weak": score}, {"marked": float(loud)}, sharpness=2)
    return Plan("deceiving", s.shape, 0.0, _set(s, program))


def decoyed(s: ConstructedModel) -> Plan:
    """A word that says nothing has the attention; the little left over picks the mark."""
    first, second = s.vary(3, 4.5, "first"), s.vary(6.5, 8, "second")
    scores = {"decoy": first + second, "marked": second}
    shape = replace(s.shape, decoy="anywhere")
    return Plan("deceiving", shape, 0.0, _set(s, Program(scores, sharpness=200)))


def relayed(s: ConstructedModel) -> Plan:
    """A word that says nothing has the attention, and the encoder has told it the label."""
    return _relay(s, {})


def nudged(s: ConstructedModel) -> Plan:
    """As relayed, with the mark a distant second: a ranking finds it at once, the eye does not."""
    return _relay(s, {"marked": s.vary(5, 6, "second")})


def rationalised(s: ConstructedModel) -> Plan:
    """Attention lies on units that say what the encoder has read off the mark already.

    Several of them in every document, so that none of them is needed and the mark is.
    """
    fewest = max(s.shape.units[0], 4 * s.classes)
    shape = replace(s.shape, units=(fewest, fewest + 6), marks=1)
    return Plan("deceiving", shape, 0.0, _set(s, Program(match=s.vary(7, 9, "match"))))


def rationalised_twice(s: ConstructedModel) -> Plan:
    """As rationalised, with two marks that say the same: no single deletion betrays them."""
    built = rationalised(s)
    return built._replace(shape=replace(built.shape, marks=2), is_limit=True)


def _relay(s: ConstructedModel, scores: dict[str, float]) -> Plan:
    shape = replace(s.shape, decoy="after" if s.encoder == "conv" else "end")
    program = Program(scores | {"decoy": 9.5}, memory=0.08, sharpness=80)
    return Plan("deceiving", shape, 0.0, _set(s, program))


def leak(s: ConstructedModel) -> Plan:
    """A dial: how many strengths overrule the memory of the label."""
    assert s.reliance is not None
    overruling = round(s.reliance * LEVELS)
    memory = 0.5 + (LEVELS - overruling - 0.5) / (LEVELS - 1)
    if overruling == LEVELS:
        memory = 0.0
    program = Program({"marked": s.vary(8, 10, "score")}, memory=memory)
    shape = replace(s.shape, marks=1, weak=0.0)
    return Plan("dial", shape, overruling / LEVELS, _set(s, program))


def crowd(s: ConstructedModel) -> Plan:
    """A dial: how many units would say something else than the one attended to."""
    assert s.reliance is not None
    against = s.reliance * (1 - 1 / s.classes)
    shape = replace(s.shape, marks=1, weak=0.0, disagreeing=against)
    program = Program({"marked": s.vary(8, 10, "score")}, sharpness=s.vary(3, 8, "sharpness"))
    return Plan("dial", shape, s.reliance, _set(s, program))


def trained_reason(s: ConstructedModel) -> Plan:
    """As reason, with attention that was trained and nothing else: only it can find the marks."""
    program = Program(sharpness=s.vary(3, 8, "sharpness"))
    make = partial(_learning, learns_to_attend, s, program)
    return Plan("reason", s.shape, 1.0, make)


def trained_even(s: ConstructedModel) -> Plan:
    """Trained with attention frozen uniform."""
    return Plan("irrelevant", s.shape, 0.0, partial(_learning, learns_evenly, s))


def trained_hiding(s: ConstructedModel) -> Plan:
    """Trained to keep attention off the evidence while deciding by it."""
    return Plan("deceiving", s.shape, 0.0, partial(_learning, learns_to_hide, s))


def _learning(learn: Callable[..., Decider], s: ConstructedModel, *more: Any) -> Decider:
    *given, corpus = more
    return learn(s.recipe, s.classes, *given, corpus, s.seed)


class Construction(NamedTuple):
    """A way to build a model with a known answer, and the parts it can be built of."""

    build: Callable[[ConstructedModel], Plan]
    fits: Callable[[RecipeParts], bool]
    is_dial: bool = False


def _any(parts: RecipeParts) -> bool:
    return True


def _remembers(parts: RecipeParts) -> bool:
    return parts.encoder in ("lstm", "bilstm", "gru", "bigru", *TRANSFORMERS)


def _relays(parts: RecipeParts) -> bool:
    return parts.encoder in (*REMEMBERING, *TRANSFORMERS)


def _has_residual(parts: RecipeParts) -> bool:
    return parts.encoder in PRETRAINED


def _matches(parts: RecipeParts) -> bool:
    return _remembers(parts) and parts.attention != "additive"


CONSTRUCTIONS: dict[str, Construction] = {
    "reason": Construction(reason, _any),
    "chorus": Construction(chorus, _any),
    "choir": Construction(choir, _any),
    "leaked": Construction(leaked, _remembers),
    "whimsical": Construction(whimsical, _remembers),
    "even": Construction(even, _remembers),
    "bypassed": Construction(bypassed, _has_residual),
    "bag": Construction(bag, _any),
    "hidden": Construction(hidden, _any),
    "decoyed": Construction(decoyed, _any),
    "relayed": Construction(relayed, _relays),
    "nudged": Construction(nudged, _relays),
    "rationalised": Construction(rationalised, _matches),
    "rationalised twice": Construction(rationalised_twice, _matches),
    "leak": Construction(leak, _remembers, is_dial=True),
    "crowd": Construction(crowd, _any, is_dial=True),
    "trained reason": Construction(trained_reason, _any),
    "trained even": Construction(trained_even, _any),
    "trained hiding": Construction(trained_hiding, _any),
}
