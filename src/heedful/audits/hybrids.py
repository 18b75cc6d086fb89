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
FEW = 5
"""Up to so many seen units are tried one by one."""

Ids = Int[np.ndarray, "token"]
Units = Bool[np.ndarray, "unit"]


class ReadText(NamedTuple):
    """One text as it was read."""

    name: str
    units: list[Ids]
    side: Int[np.ndarray, "unit"]
    """Where the numbers of its words begin: 0, or by the text of a pair."""
    weights: Float64[np.ndarray, "unit"]
    """The attention that is shown; they sum to 1."""
    groups: Bool[np.ndarray, "group unit"]
    """As `groups_of` has them."""
    logits: Float64[np.ndarray, "class"]
    blocked: Float64[np.ndarray, "group class"]
    """Logits with attention to each group forbidden."""
    rest: Float64[np.ndarray, "class"]
    """Logits of the text without its seen units."""

    @property
    def decision(self) -> int:
        """The class decided on."""
        return int(self.logits.argmax())

    @property
    def seen(self) -> Units:
        """The units that a person sees."""
        return np.asarray(self.groups[0])

    @property
    def order(self) -> list[int]:
        """The seen units, heaviest first."""
        falling = np.argsort(-self.weights, kind="stable")
        return [int(unit) for unit in falling[: int(self.seen.sum())]]

    @property
    def is_few(self) -> bool:
        """Whether so few units are seen that each is tried."""
        return int(self.seen.sum()) <= FEW

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
    side: list[int]
    origin: list[int]
    """Which unit of the text each is; -1 for those of the other."""

    @property
    def is_new(self) -> Bool[np.ndarray, "1 unit"]:
        """The units of the other; one without any unit is read as a new one."""
        return np.array(self.origin or [-1])[None] < 0

    def without(self, unit: int) -> Hybrid:
        """The same without one unit of the text."""
        kept = [place for place, origin in enumerate(self.origin) if origin != unit]
        return Hybrid(
            [self.units[place] for place in kept],
            [self.side[place] for place in kept],
            [self.origin[place] for place in kept],
        )


def seen(weights: Float64[np.ndarray, "unit"]) -> Units:
    """The units that a person sees: half of the largest weight, and on to half of the mass.

    Units that weigh the same as one that is seen are seen too.
    """
    falling = np.sort(weights)[::-1]
    reached = int(np.searchsorted(np.cumsum(falling), HALF - 1e-9))
    last = falling[min(reached, len(falling) - 1)]
    return np.asarray(weights >= min(last, HALF * falling[0]) * (1 - 1e-9))


def groups_of(weights: Float64[np.ndarray, "unit"]) -> Bool[np.ndarray, "group unit"]:
    """The seen units, the others, then each seen one, or of many every second by weight."""
    is_seen = seen(weights)
    order = np.argsort(-weights, kind="stable")[: int(is_seen.sum())]
    chosen = order[:, None] if len(order) <= FEW else order[None, 1::2]
    found = np.zeros((2 + len(chosen), len(weights)), dtype=bool)
    found[0], found[1] = is_seen, ~is_seen
    np.put_along_axis(found[2:], chosen, True, 1)
    return found


def texts_in(
    reading: Reading,
    weights: Sequence[Float64[np.ndarray, "unit"]],
    groups: Sequence[Bool[np.ndarray, "group unit"]],
    blocked: Float64[np.ndarray, "batch group class"],
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
        kept = blocked[row, : len(groups[row])]
        unread = np.full_like(logits[row], np.nan)
        found.append(
            ReadText(name, units, side, weights[row], groups[row], logits[row], kept, unread)
        )
    return found


def partners(texts: Sequence[ReadText], seed: int) -> Int[np.ndarray, "text"]:
    """For each text the next longer one that was decided differently; -1 where none was.

    After the longest come the shortest. Two texts are seldom partners of each other, so that most
    are met in two different pairs.
    """
    drawn = keys(seed, [text.name for text in texts], "partner")
    order = np.lexsort((drawn, np.array([len(text.units) for text in texts])))
    decision = np.array([text.decision for text in texts])[order]
    found = np.full(len(order), -1)
    for label in np.unique(decision):
        others, here = np.flatnonzero(decision != label), np.flatnonzero(decision == label)
        if len(others):
            found[order[here]] = order[others[np.searchsorted(others, here) % len(others)]]
    return found


def exchanged(
    text: ReadText, other: ReadText, away: Units, put: Units, longest: int | None = None
) -> Hybrid:
    """The text with the units `away` replaced, in order, by the units `put` of the other.

    What is left over follows on the last of the places; places that are left over fall away. A
    hybrid of more than `longest` tokens loses its last units.
    """
    new = [other.units[unit] for unit in np.flatnonzero(put)]
    places = np.flatnonzero(away)
    hybrid, room = Hybrid([], [], []), longest or 2**31
    for unit, own in enumerate(text.units):
        pieces = [(own, unit)]
        if away[unit]:
            count = len(new) if unit == places[-1] else 1
            pieces, new = [(one, -1) for one in new[:count]], new[count:]
        for one, origin in pieces:
            room -= len(one)
            if room >= 0:
                hybrid.units.append(one)
                hybrid.side.append(int(text.side[unit]))
                hybrid.origin.append(origin)
    return hybrid


def encoded_hybrids(hybrids: Sequence[Hybrid], unknown: int) -> Encoded:
    """Hybrids as documents, named by their place; one without a unit is an unknown word."""
    ids: list[Ids] = []
    numbers: list[Ids] = []
    starts = [0]
    for hybrid in hybrids:
        units, side = hybrid.units or [np.array([unknown])], hybrid.side or [0]
        ids += units
        numbers += [
            np.full(len(unit), number + first)
            for number, (unit, first) in enumerate(zip(units, side, strict=True))
        ]
        starts.append(starts[-1] + sum(map(len, units)))
    return Encoded(
        ids=np.concatenate(ids),
        starts=np.array(starts),
        labels=np.full(len(hybrids), -1),
        sentence=np.concatenate(numbers),
        names=tuple(str(place) for place in range(len(hybrids))),
        unknown=unknown,
    )
