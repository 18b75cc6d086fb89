"""The right answer of a mechanism, from its program and its input alone (docs/right-answers.md).

Words of the input are replaced by the mechanism's own substitutes; what the model then decides says
which words matter, whether a person who looks at the attention sees them, and whether their effect
passes through the audited weights. No audit is imported here, and no border of the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.calibration.flipping_sets import Flipping, Heard, Search, flipping_sets
from heedful.calibration.mechanism import Built
from heedful.corpora.batches import Batch, collate
from heedful.models.edits import Replace, Scale
from heedful.models.verbs import AttentiveModel, decide, read
from heedful.runs.randomness import numpy_generator
from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import proportion

TEXTS = 100
"""Texts that a right answer looks at."""
REDRAWN = 4
"""Texts in which neutral words are drawn anew."""
TOGETHER = 2048
"""Texts of one forward pass."""
HALF = 0.5
"""Of the mass, of the largest weight, of an effect: see docs/right-answers.md."""
YES, NO = 0.75, 0.25
"""Shares of texts from which on the right word is yes, and up to which it is no."""


WORSE = {"yes": 0, "partly": 1, "no": 2}


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
    still_flips: bool
    """Whether the change still flips the decision then; reported, and no part of the answer."""
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
    there: tuple[TextTruth, ...] = ()
    """The same with substitutes that stand in some text alone; empty where all do."""

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
    def word(self) -> Literal["yes", "partly", "no", "cannot tell"]:
        """The right word; cannot tell where it would be better but for words of no text."""
        word = _word(self.texts)
        if self.there and WORSE[_word(self.there)] < WORSE[word]:
            return "cannot tell"
        return word

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


def _word(texts: Sequence[TextTruth]) -> Literal["yes", "partly", "no"]:
    share = np.mean([text.points and text.mediates for text in texts])
    return "yes" if share >= YES else "no" if share <= NO else "partly"


def _share(holds: Sequence[bool]) -> Estimate:
    return proportion(sum(holds), len(holds))


def truth_of(built: Built, seed: int = 0, texts: int = TEXTS) -> Truth:
    """The right answer of a mechanism on a keyed sample of its test texts."""
    test = built.corpus.splits["test"]
    rows = np.sort(numpy_generator(seed, "truth").permutation(len(test))[:texts])
    found, right = _of_rows(built, rows, seed)
    standing = {built.corpus.vocabulary.words[number] for number in np.unique(test.ids)}
    there = {
        word: tuple(other for other in others if other in standing)
        for word, others in built.substitutes.items()
    }
    is_all = all(there[w] == built.substitutes[w] for w in standing & built.substitutes.keys())
    only_there = () if is_all else _of_rows(built._replace(substitutes=there), rows, seed)[0]
    return Truth(tuple(found), float(np.mean(right)), tuple(only_there))


def _of_rows(
    built: Built, rows: Int[np.ndarray, " text"], seed: int
) -> tuple[list[TextTruth], list[bool]]:
    """The right answers of some texts, and whether these are decided as they are labelled."""
    test = built.corpus.splits["test"]
    # Texts of one length are asked about together, which changes no decision.
    lengths = test.lengths[rows]
    found: list[TextTruth] = []
    right: list[bool] = []
    for length in np.unique(lengths):
        batch = collate(test, rows[lengths == length])
        found += _truths(built, batch, seed)
        right += (read(built.model, batch).decision == batch.labels).tolist()
    return found, right


class _Options:
    """What may stand in a text: substitutes at places that can matter, elsewhere neutral words."""

    def __init__(self, built: Built, ids: Int[np.ndarray, " token"]) -> None:
        words, encode = built.corpus.vocabulary.words, built.corpus.vocabulary.encode
        others = [built.substitutes.get(words[own], ()) for own in ids]
        self.ids = ids
        self.places = np.array([p for p, words in enumerate(others) if words], dtype=int)
        self.ways = [[int(ids[place]), *encode(others[place])] for place in self.places]
        self.counts = np.array([len(way) for way in self.ways], dtype=int)
        self.neutral = np.asarray(encode(built.neutral))

    def search(self, kept: Bool[np.ndarray, " place"], rng: np.random.Generator) -> Search:
        """What is asked to know which words matter, and whether the kept ones are sufficient."""
        return flipping_sets(self.counts, kept, rng)

    def written(self, ways: Int[np.ndarray, "way place"]) -> Int[np.ndarray, "way token"]:
        """The texts in which each place has its option of that number; 0 is the word itself."""
        texts = np.tile(self.ids, (len(ways), 1))
        for column, place in enumerate(self.places):
            texts[:, place] = np.asarray(self.ways[column])[ways[:, column]]
        return texts

    def redrawn(self, rng: np.random.Generator) -> Int[np.ndarray, "draw token"]:
        """The text with other neutral words wherever words cannot matter."""
        texts = np.tile(self.ids, (REDRAWN, 1))
        others = np.setdiff1d(np.arange(len(self.ids)), self.places)
        texts[:, others] = rng.choice(self.neutral, (REDRAWN, len(others)))
        return texts


def _truths(built: Built, batch: Batch, seed: int) -> list[TextTruth]:
    """The right answers of texts of one length."""
    model, reading = built.model, read(built.model, batch)
    options = [_Options(built, ids) for ids in batch.ids.numpy()]
    draws = [numpy_generator(seed, "truth", name) for name in batch.names]
    attention = reading.attention.numpy() * reading.mask.numpy()
    units = reading.unit_of_token.numpy()
    is_seen = [seen(row[:count]) for row, count in zip(attention, reading.units, strict=True)]
    found = _together(
        model,
        batch,
        options,
        [o.search(is_seen[row][units[row, o.places]], draws[row]) for row, o in enumerate(options)],
    )
    stable = [
        logits.argmax(1)
        for logits in _logits(
            model, batch, [o.redrawn(rng) for o, rng in zip(options, draws, strict=True)]
        )
    ]
    # A neutral word says nothing: what flips the decision there is the word that is put in.
    found = [
        ways._replace(relevant=ways.relevant & ~np.isin(o.ids[o.places], o.neutral))
        for o, ways in zip(options, found, strict=True)
    ]
    is_relevant = np.zeros(attention.shape, dtype=bool)
    for row, (o, ways) in enumerate(zip(options, found, strict=True)):
        is_relevant[row, units[row, o.places[ways.relevant]]] = True
    changed = [
        o.ids if ways.smallest is None else o.written(ways.smallest[None])[0]
        for o, ways in zip(options, found, strict=True)
    ]
    effects = _effects(model, batch, np.stack(changed), is_relevant)
    answers = []
    for row, (o, ways) in enumerate(zip(options, found, strict=True)):
        answers.append(
            TextTruth(
                relevant=tuple(o.places[ways.relevant].tolist()),
                seen=tuple(np.flatnonzero(is_seen[row][units[row]]).tolist()),
                seen_share=float(is_seen[row].mean()),
                mass=float(attention[row, is_relevant[row]].sum()),
                is_sufficient=ways.is_sufficient,
                around=float(effects.shares[0, row]),
                still_flips=bool(effects.still_flips[row]),
                by_input=float(effects.shares[1, row]),
                by_weights=float(effects.shares[2, row]),
                is_stable=bool((stable[row] == int(reading.decision[row])).all()),
            )
        )
    return answers


def seen(attention: Float[np.ndarray, " unit"]) -> Bool[np.ndarray, " unit"]:
    """The units that a person sees: half of the largest weight, and on to half of the mass.

    Units that weigh the same as one that is seen are seen too.
    """
    falling = np.sort(attention)[::-1]
    count = int(np.searchsorted(np.cumsum(falling), HALF))
    last = falling[min(count, len(falling) - 1)]
    return np.asarray(attention >= min(last, HALF * falling[0]) * (1 - 1e-9))


def _as_texts(
    batch: Batch, rows: Int[np.ndarray, " text"], texts: Int[np.ndarray, "text token"]
) -> Batch:
    """Other words in the place of those of some rows."""
    place = torch.from_numpy(np.ascontiguousarray(rows))
    ids = torch.from_numpy(np.ascontiguousarray(texts)).to(batch.ids)
    return Batch(
        ids=ids,
        mask=batch.mask[place],
        labels=batch.labels[place],
        sentence=batch.sentence[place],
        names=tuple(f"{batch.names[row]}/{number}" for number, row in enumerate(rows)),
        unknown=batch.unknown,
    )


def _logits(
    model: AttentiveModel, batch: Batch, texts: Sequence[Int[np.ndarray, "way token"]]
) -> list[Float[np.ndarray, "way class"]]:
    """The logits of some texts in place of each text of the batch."""
    counts = [len(rows) for rows in texts]
    row, every = np.repeat(np.arange(len(batch)), counts), np.concatenate(list(texts))
    found = [
        read(
            model, _as_texts(batch, row[start : start + TOGETHER], every[start : start + TOGETHER])
        ).logits.numpy()
        for start in range(0, len(every), TOGETHER)
    ]
    logits = np.concatenate(found) if found else np.zeros((0, len(model.classes)))
    return np.split(logits, np.cumsum(counts)[:-1])


def _margin(logits: Float[np.ndarray, "way class"], decided: int) -> Float[np.ndarray, " way"]:
    """By how much a class is ahead of the best other one."""
    others = np.delete(logits, decided, 1)
    return np.asarray(logits[:, decided] - others.max(1))


class _Effects(NamedTuple):
    """Shares of each change's effect, nan where nothing was changed."""

    shares: Float[np.ndarray, "3 batch"]
    """Around attention, by the input alone, by the weights alone."""
    still_flips: Bool[np.ndarray, " batch"]


def _effects(
    model: AttentiveModel,
    batch: Batch,
    changed: Int[np.ndarray, "batch token"],
    is_relevant: Bool[np.ndarray, "batch unit"],
) -> _Effects:
    """What each change does, as it is, with attention blocked, and with attention swapped."""
    n = len(batch)
    both = np.concatenate([batch.ids.numpy(), changed])
    reading = read(model, _as_texts(batch, np.tile(np.arange(n), 2), both))
    before, after = reading.decision[:n], reading.decision[n:]

    def odds(logits: Tensor) -> Tensor:
        pairs = logits.view(2, n, -1)
        old = pairs.gather(2, before.expand(2, n)[..., None])[..., 0]
        return old - pairs.gather(2, after.expand(2, n)[..., None])[..., 0]

    kept = torch.from_numpy(~is_relevant).double().repeat(2, 1)[:, None]
    swap = torch.cat([reading.attention[n:], reading.attention[:n]])[:, None]
    without = decide(model, reading, Scale(kept))[:, 0]
    own, blocked = odds(reading.logits), odds(without)
    swapped = odds(decide(model, reading, Replace(swap))[:, 0])
    shares = torch.stack([blocked[0] - blocked[1], own[0] - swapped[1], own[0] - swapped[0]])
    shares = (shares / (own[0] - own[1])).masked_fill(before == after, torch.nan)
    decided = without.argmax(-1)
    return _Effects(shares.numpy(), (decided[:n] != decided[n:]).numpy())


def _together(
    model: AttentiveModel, batch: Batch, options: Sequence[_Options], searches: Sequence[Search]
) -> list[Flipping]:
    """The searches of all texts in step, so that what they ask is asked in one pass."""
    decided = read(model, batch).decision.numpy()
    found: dict[int, Flipping] = {}
    asked = [next(search) for search in searches]
    while len(found) < len(searches):
        texts = [
            o.written(ways[:0] if row in found else ways)
            for row, (o, ways) in enumerate(zip(options, asked, strict=True))
        ]
        for row, logits in enumerate(_logits(model, batch, texts)):
            if row in found:
                continue
            old = int(decided[row])
            heard = Heard(logits.argmax(1) != old, _margin(logits, old))
            try:
                asked[row] = searches[row].send(heard)
            except StopIteration as stop:
                found[row] = stop.value
    return [found[row] for row in range(len(searches))]
