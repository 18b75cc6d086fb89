"""Texts with words of other texts in them: what a person sees of one put into another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int

from heedful.corpora.encoded import Encoded
from heedful.models.huggingface.pieces import FIRST, SECOND
from heedful.models.reading import Reading
from heedful.runs.randomness import keys

HALF = 0.5
"""Of the largest weight and of the mass: what a person sees."""

Ids = Int[np.ndarray, "token"]
Units = Bool[np.ndarray, "unit"]


class ReadText(NamedTuple):
    """One text as it was read."""

    name: str
    units: list[Ids]
    side: Int[np.ndarray, " unit"]
    """Where the numbers of its words begin: 0, or by the text of a pair."""
    weights: Float64[np.ndarray, " unit"]
    """The attention that is shown; they sum to 1."""
    seen: Units
    """The units that a person sees."""
    logits: Float64[np.ndarray, "class"]
    blocked: Float64[np.ndarray, "class"]
    """Logits with attention to the seen units forbidden."""
    rest: Float64[np.ndarray, "class"]
    """Logits of the text without its seen units."""

    @property
    def decision(self) -> int:
        """The class decided on."""
        return int(self.logits.argmax())

    @property
    def order(self) -> list[int]:
        """The seen units, heaviest first; those that weigh the same in the order of the text."""
        falling = np.argsort(-self.weights.round(6), kind="stable")
        return [int(unit) for unit in falling if self.seen[unit]]

    @property
    def length(self) -> int:
        """Tokens."""
        return sum(map(len, self.units))

    def only(self, units: Sequence[int]) -> Units:
        """These units alone."""
        found = np.zeros(len(self.units), dtype=bool)
        found[list(units)] = True
        return found


class Hybrid(NamedTuple):
    """A text some of whose units come from another."""

    units: list[Ids]
    side: Int[np.ndarray, " unit"]
    is_new: Units
    """Which units come from the other."""


def margin(
    logits: Float64[np.ndarray, "*any class"], label: Int[np.ndarray, "*any"]
) -> Float64[np.ndarray, "*any"]:
    """How far the label is ahead of the best other class."""
    own = np.take_along_axis(logits, label[..., None], -1)[..., 0]
    others = np.where(np.arange(logits.shape[-1]) == label[..., None], -np.inf, logits)
    return np.asarray(own - others.max(-1))


def seen(weights: Float64[np.ndarray, " unit"]) -> Units:
    """The units that a person sees: half of the largest weight, and on to half of the mass.

    Units that weigh the same as one that is seen are seen too.
    """
    falling = np.sort(weights)[::-1]
    reached = int(np.searchsorted(np.cumsum(falling), HALF - 1e-9))
    last = falling[min(reached, len(falling) - 1)]
    return np.asarray(weights >= min(last, HALF * falling[0]) * (1 - 1e-9))


def texts_in(
    reading: Reading,
    weights: Sequence[Float64[np.ndarray, " unit"]],
    blocked: Float64[np.ndarray, "batch class"],
) -> list[ReadText]:
    """The texts of a reading, unit by unit; what their rest says is not read yet."""
    batch, found = reading.batch, []
    unit, ids, numbers, logits = (
        one.cpu().numpy()
        for one in (reading.unit_of_token, batch.ids, batch.sentence, reading.logits)
    )
    lengths = batch.lengths.tolist()
    for row, name in enumerate(reading.names):
        length = lengths[row]
        starts = np.searchsorted(unit[row, :length], np.arange(len(weights[row])))
        first = numbers[row, starts]
        side = np.where(first >= SECOND, SECOND, np.where(first >= FIRST, FIRST, 0))
        units = np.split(ids[row, :length], starts[1:])
        unread = np.full_like(logits[row], np.nan)
        own, kept = weights[row], blocked[row]
        found.append(ReadText(name, units, side, own, seen(own), logits[row], kept, unread))
    return found


def contexts(
    texts: Sequence[ReadText], seed: int, most: int, alike: bool = False
) -> list[list[int]]:
    """For each text the next longer ones that were decided differently, or `alike`.

    After the longest come the shortest; a text is never its own context.
    """
    drawn = keys(seed, [text.name for text in texts], "partner")
    order = np.lexsort((drawn, np.array([len(text.units) for text in texts])))
    decision = np.array([text.decision for text in texts])[order]
    found: list[list[int]] = [[] for _ in texts]
    for label in np.unique(decision):
        here = np.flatnonzero(decision == label)
        others = here if alike else np.flatnonzero(decision != label)
        count = min(most, len(others) - alike)
        for place, start in zip(here, np.searchsorted(others, here) + alike, strict=True):
            next_ones = others[(start + np.arange(count)) % max(len(others), 1)]
            found[order[place]] = [int(one) for one in order[next_ones]]
    return found


def mixed(
    base: ReadText, text: ReadText, kept: Units, put_back: Units, longest: int | None = None
) -> Hybrid:
    """The base with these seen units of the text in the places of its own seen ones.

    The text's first seen unit stands in the first place, and so on; what is left over follows on
    the last one. Units of the base that are `put_back` stand where they stood. A hybrid of more
    than `longest` tokens loses its last units.
    """
    places = np.flatnonzero(base.seen)
    own = np.flatnonzero(~base.seen | put_back)
    shown = np.flatnonzero(text.seen)
    new = np.flatnonzero(kept[shown])
    at = places[np.minimum(new, len(places) - 1)]
    order = np.argsort(np.concatenate([2 * own, 2 * at + 1]), kind="stable")
    units = [base.units[unit] for unit in own.tolist()]
    units += [text.units[unit] for unit in shown[new].tolist()]
    units = [units[place] for place in order.tolist()]
    if longest is not None:
        order = order[: int((np.cumsum(lengths_of(units)) <= longest).sum())]
    side = base.side[np.concatenate([own, at])[order]]
    return Hybrid(units[: len(order)], side, order >= len(own))


def lengths_of(units: Sequence[Ids]) -> Int[np.ndarray, " unit"]:
    """Tokens of each unit."""
    return np.fromiter(map(len, units), dtype=np.int64, count=len(units))


def encoded_hybrids(hybrids: Sequence[Hybrid], unknown: int) -> Encoded:
    """Hybrids as documents, named by their place; one without a unit is an unknown word."""
    alone = Hybrid([np.array([unknown])], np.zeros(1, dtype=int), np.zeros(1, dtype=bool))
    whole = [hybrid if hybrid.units else alone for hybrid in hybrids]
    units = [unit for hybrid in whole for unit in hybrid.units]
    counts = np.array([len(hybrid.units) for hybrid in whole])
    first = np.cumsum(counts) - counts
    numbers = np.arange(len(units)) - np.repeat(first, counts)
    numbers += np.concatenate([hybrid.side for hybrid in whole])
    lengths = lengths_of(units)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    return Encoded(
        ids=np.concatenate(units),
        starts=ends[np.concatenate([first, [len(units)]])],
        labels=np.full(len(hybrids), -1),
        sentence=np.repeat(numbers, lengths),
        names=tuple(str(place) for place in range(len(hybrids))),
        unknown=unknown,
    )
