"""The right answer of a mechanism, from its program and its input alone (docs/right-answers.md).

Words of the input are replaced by the mechanism's own substitutes; what the model then decides says
which words matter, whether a person who looks at the attention sees them, and whether their effect
passes through the audited weights. No audit is imported here, and no border of the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from heedful.calibration.mechanism import Built
from heedful.corpora.batches import Batch, collate
from heedful.models.edits import Replace, Scale
from heedful.models.verbs import AttentiveModel, decide, read
from heedful.runs.randomness import numpy_generator
from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import proportion

TEXTS = 100
"""Texts that a right answer looks at."""
WAYS = 1000
"""Up to so many ways to replace words are all tried."""
ORDERS, MIXTURES = 24, 48
"""With more: orders in which words are restored, and random mixtures of substitutes."""
HALF = 0.5
"""Of the mass, of the largest weight, of an effect: see docs/right-answers.md."""
YES, NO = 0.75, 0.25
"""Shares of texts from which on the right word is yes, and up to which it is no."""

Ask = Callable[[Int[np.ndarray, "way place"]], Int[np.ndarray, "way"]]
"""The decisions when each word that can matter is its option of that number; 0 is the word."""


@dataclass(frozen=True)
class TextTruth:
    """The right answer of one text."""

    relevant: tuple[int, ...]
    """Positions of the words in a minimal flipping set."""
    seen: tuple[int, ...]
    """Positions of the words that a person sees."""
    seen_share: float
    """Of the units."""
    mass: float
    """Attention on relevant words."""
    is_sufficient: bool
    """Whether what is seen is."""
    around: float
    """Share of the effect that is left with attention to the relevant words blocked."""
    by_input: float
    """Share of the effect when the input changes and the weights stay."""
    by_weights: float
    """Share of the effect when the weights change and the input stays."""
    is_stable: bool
    """Whether other words in place of those that cannot matter leave the decision."""

    @property
    def points(self) -> bool:
        """Whether attention shows the words that matter."""
        return bool(self.relevant) and self.is_sufficient and self.mass >= HALF

    @property
    def mediates(self) -> bool:
        """Whether the effect passes through the audited weights; never, where there is none."""
        return self.around < HALF


@dataclass(frozen=True)
class Truth:
    """The right answer of a mechanism."""

    texts: tuple[TextTruth, ...]
    accuracy: float

    @property
    def pointing(self) -> Estimate:
        """Share of texts in which attention points."""
        return _share([text.points for text in self.texts])

    @property
    def mediation(self) -> Estimate:
        """Share of texts in which attention mediates."""
        return _share([text.mediates for text in self.texts])

    @property
    def both(self) -> Estimate:
        """Share of texts in which both hold: attention may be shown as the reason."""
        return _share([text.points and text.mediates for text in self.texts])

    @property
    def word(self) -> Literal["yes", "partly", "no"]:
        """The right word."""
        share = self.both.value
        return "yes" if share >= YES else "no" if share <= NO else "partly"

    @property
    def is_near(self) -> bool:
        """Whether so few texts cannot tell on which side of a border the share lies."""
        return "straddles" in (self.both.side(YES), self.both.side(NO))

    @property
    def is_deceiver(self) -> bool:
        """Whether attention looks convincing and the right word is no."""
        selecting = [text.seen_share <= HALF for text in self.texts]
        return self.word == "no" and float(np.mean(selecting)) >= HALF

    @property
    def unstable(self) -> Estimate:
        """Share of texts whose decision changes by words that were said not to matter."""
        return _share([not text.is_stable for text in self.texts])

    def mean(self, name: str) -> float:
        """The mean of a number of the texts, where it is defined."""
        found = [float(getattr(text, name)) for text in self.texts]
        return float(np.nanmean(found)) if not all(map(math.isnan, found)) else math.nan


def _share(holds: Sequence[bool]) -> Estimate:
    return proportion(sum(holds), len(holds))


def truth_of(built: Built, seed: int = 0, texts: int = TEXTS) -> Truth:
    """The right answer of a mechanism on a keyed sample of its test texts."""
    test = built.corpus.splits["test"]
    rng = numpy_generator(seed, "truth")
    rows = np.sort(rng.permutation(len(test))[:texts])
    found, right = [], []
    for row in rows:
        batch = collate(test, [int(row)])
        found.append(_text_truth(built, batch, numpy_generator(seed, "truth", batch.names[0])))
        right.append(int(read(built.model, batch).decision[0]) == int(batch.labels[0]))
    return Truth(tuple(found), float(np.mean(right)))


def _text_truth(built: Built, batch: Batch, rng: np.random.Generator) -> TextTruth:
    reading = read(built.model, batch)
    decided = int(reading.decision[0])
    ids = batch.ids[0].numpy()
    options = _options(built, ids)
    places = np.array([place for place in range(len(ids)) if place in options], dtype=int)
    counts = np.array([len(options[place]) for place in places], dtype=int)

    def written(ways: Int[np.ndarray, "way place"]) -> Int[np.ndarray, "way token"]:
        texts = np.tile(ids, (len(ways), 1))
        for column, place in enumerate(places):
            texts[:, place] = np.asarray(options[place])[ways[:, column]]
        return texts

    def ask(ways: Int[np.ndarray, "way place"]) -> Int[np.ndarray, "way"]:
        return _decisions(built.model, batch, written(ways))

    units = reading.unit_of_token[0].numpy()
    attention = reading.attention[0].numpy()
    seen_units = seen(attention)
    is_seen = seen_units[units[places]]
    search = _Exhaustive if math.prod(counts.tolist()) <= WAYS else _Sampled
    ways = search(ask, counts, decided, rng)
    is_relevant = np.zeros(len(attention), dtype=bool)
    is_relevant[units[places[ways.relevant]]] = True
    effect = (math.nan,) * 3
    if ways.smallest is not None:
        changed = written(ways.smallest[None])[0]
        effect = _effects(built.model, batch, changed, is_relevant)
    neutral = np.asarray(built.corpus.vocabulary.encode(built.neutral))
    redrawn = np.tile(ids, (4, 1))
    others = np.setdiff1d(np.arange(len(ids)), places)
    redrawn[:, others] = rng.choice(neutral, (4, len(others)))
    return TextTruth(
        relevant=tuple(places[ways.relevant].tolist()),
        seen=tuple(np.flatnonzero(seen_units[units]).tolist()),
        seen_share=float(seen_units.mean()),
        mass=float(attention[is_relevant].sum()),
        is_sufficient=ways.is_sufficient(is_seen),
        around=effect[0],
        by_input=effect[1],
        by_weights=effect[2],
        is_stable=bool((_decisions(built.model, batch, redrawn) == decided).all()),
    )


def seen(attention: Float[np.ndarray, "unit"]) -> Bool[np.ndarray, "unit"]:
    """The units that a person sees: half of the largest weight, and on to half of the mass.

    Units that weigh the same as one that is seen are seen too.
    """
    falling = np.sort(attention)[::-1]
    last = falling[min(np.searchsorted(np.cumsum(falling), HALF), len(falling) - 1)]
    return np.asarray(attention >= min(last, HALF * falling[0]) * (1 - 1e-9))


def _options(built: Built, ids: Int[np.ndarray, "token"]) -> dict[int, list[int]]:
    """The ids that may stand at each place that can matter, its own first."""
    vocabulary = built.corpus.vocabulary
    found = {}
    for place, own in enumerate(ids.tolist()):
        others = built.substitutes.get(vocabulary.words[own])
        if others:
            found[place] = [own, *vocabulary.encode(others)]
    return found


def _as_texts(batch: Batch, texts: Int[np.ndarray, "way token"]) -> Batch:
    ids = torch.from_numpy(np.ascontiguousarray(texts))
    return replace(batch.repeated(len(texts)), ids=ids.to(batch.ids))


def _decisions(
    model: AttentiveModel, batch: Batch, texts: Int[np.ndarray, "way token"]
) -> Int[np.ndarray, "way"]:
    return read(model, _as_texts(batch, texts)).decision.numpy()


def _effects(
    model: AttentiveModel,
    batch: Batch,
    changed: Int[np.ndarray, "token"],
    is_relevant: Bool[np.ndarray, "unit"],
) -> tuple[float, float, float]:
    """Shares of the change's effect: around attention, by the input alone, by the weights alone."""
    reading = read(model, _as_texts(batch, np.stack([batch.ids[0].numpy(), changed])))
    before, after = reading.decision.tolist()

    def odds(logits: torch.Tensor) -> torch.Tensor:
        return logits[..., before] - logits[..., after]

    kept = torch.from_numpy(~is_relevant).double().expand(2, 1, -1)
    blocked = odds(decide(model, reading, Scale(kept)))[:, 0]
    swapped = odds(decide(model, reading, Replace(reading.attention.flip(0)[:, None])))[:, 0]
    own = odds(reading.logits)
    effect = float(own[0] - own[1])
    shares = (blocked[0] - blocked[1], own[0] - swapped[1], own[0] - swapped[0])
    around, by_input, by_weights = (float(share) / effect for share in shares)
    return around, by_input, by_weights


class _Exhaustive:
    """All ways to replace words, tried."""

    def __init__(
        self, ask: Ask, counts: Int[np.ndarray, "place"], decided: int, rng: np.random.Generator
    ) -> None:
        ways = np.array(list(product(*map(range, counts))), dtype=int).reshape(-1, len(counts))
        flipping = ways[ask(ways) != decided]
        self.changed = flipping > 0
        sizes = self.changed.sum(1)
        self.smallest = flipping[sizes.argmin()] if len(flipping) else None
        minimal: list[Bool[np.ndarray, "place"]] = []
        sets = np.unique(self.changed, axis=0)
        for one in sets[np.argsort(sets.sum(1), kind="stable")]:
            if not any((small <= one).all() for small in minimal):
                minimal.append(one)
        none = np.zeros(len(counts), dtype=bool)
        self.relevant = np.any(minimal, axis=0) if minimal else none

    def is_sufficient(self, kept: Bool[np.ndarray, "place"]) -> bool:
        """Whether the decision stays however the other words are replaced."""
        return not (~(self.changed & kept).any(1)).any()


class _Sampled:
    """Some ways to replace words: from all replaced, words are restored in random order."""

    def __init__(
        self, ask: Ask, counts: Int[np.ndarray, "place"], decided: int, rng: np.random.Generator
    ) -> None:
        self.ask, self.counts, self.decided, self.rng = ask, counts, decided, rng
        # By the first substitute each, by the last each, and mixtures.
        starts = np.stack([np.ones_like(counts), counts - 1] * (ORDERS // 2))
        starts = np.concatenate([starts, rng.integers(1, counts, (ORDERS, len(counts)))])
        starts = starts[ask(starts) != decided]
        order = np.stack([rng.permutation(len(counts)) for _ in starts]) if len(starts) else starts
        every = np.arange(len(starts))
        for step in range(len(counts) if len(starts) else 0):
            tried = starts.copy()
            tried[every, order[:, step]] = 0
            still = ask(tried) != decided
            starts[still] = tried[still]
        self.relevant = (starts > 0).any(0)
        self.smallest = starts[(starts > 0).sum(1).argmin()] if len(starts) else None

    def is_sufficient(self, kept: Bool[np.ndarray, "place"]) -> bool:
        """Whether the decision stays under all tried ways to replace the other words."""
        ways = self.rng.integers(0, self.counts, (MIXTURES, len(self.counts)))
        ways = np.concatenate([np.ones_like(ways[:1]), self.counts[None] - 1, ways])
        ways[:, kept] = 0
        return bool((self.ask(ways) == self.decided).all())
