"""Which of several shown units a decision needs, found where it turns.

A text's shown units stand in another text, decided otherwise, and decide there as they did. One
after the other they give way to the other's own, until the decision turns. There, at the brink, the
decision needs a unit if it turns when that unit is deleted, however often the same is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from heedful.audits.asking import Asked
from heedful.audits.hybrids import Hybrid, ReadText, Units, margin, mixed
from heedful.runs.randomness import keys, uniform_noise

FEW = 6
"""Up to so many shown units are all tried; of more, so many are drawn by weight."""
LEAST = 0.25
"""Of the step in which the decision turns, as much as a unit must have, times its weight by that of
the unit that turned it."""
HALF = 0.5


class Pair(NamedTuple):
    """A text whose shown units stand in another and keep its decision there."""

    text: int
    base: int
    border: float
    """The margin of the text's decision at which it counts as turned."""
    gives_back: bool
    """Whether the base has units to put back; else the text's are deleted."""


class _Brink:
    """One pair, and the state in which its decision turns."""

    def __init__(self, pair: Pair, text: ReadText, base: ReadText, key: int) -> None:
        self.pair, self.text, self.base = pair, text, base
        ranks = text.order
        chunks = np.array_split(base.order if pair.gives_back else [], len(ranks))
        self.owned = {
            unit: [int(o) for o in chunk] for unit, chunk in zip(ranks, chunks, strict=True)
        }
        noise = uniform_noise(np.array([key]), 2 * len(ranks)).numpy()[0]
        self.order = [ranks[place] for place in np.argsort(noise[: len(ranks)])]
        self.noise = noise[len(ranks) :]
        self.low, self.high = 0, len(ranks)
        self.margins = {0: np.nan, len(ranks): np.nan}

    def state(
        self, exchanged: Iterable[int], *, without: int | None = None, with_own: int | None = None
    ) -> tuple[Units, Units]:
        """Kept units of the text and put-back units of the base."""
        gone = set(exchanged)
        back = [unit for one in gone for unit in self.owned[one]]
        if with_own is not None:
            back += self.owned[with_own]
        kept = [u for u in self.order if u not in gone and u != without]
        return self.text.only(kept), self.base.only(back)

    @property
    def pivot(self) -> int:
        """The unit with which the decision turns."""
        return int(self.order[self.low])


def needed_mass(
    asked: Asked, pairs: Sequence[Sequence[Pair]], seed: int
) -> tuple[Float64[np.ndarray, " text"], list[bool]]:
    """Per text, given pairs to try in turn: the attention on shown units that its decision needs.

    The second says whether all shown units were tried; of more than `FEW` the mass is estimated.
    """
    texts = asked.texts
    needed: list[set[int]] = [set() for _ in pairs]
    mass = np.zeros(len(pairs))
    is_few = [int(texts[some[0].text].seen.sum()) <= FEW if some else True for some in pairs]
    for number, some in enumerate(pairs):
        if some and int(texts[some[0].text].seen.sum()) == 1:
            mass[number] = float(texts[some[0].text].weights.max())
    for turn in range(max(map(len, pairs), default=0)):
        open_ones = [
            number
            for number, some in enumerate(pairs)
            if turn < len(some) and mass[number] < HALF and (is_few[number] or turn == 0)
        ]
        if not open_ones:
            break
        chosen = [pairs[number][turn] for number in open_ones]
        names = [f"{texts[p.text].name}/{texts[p.base].name}" for p in chosen]
        drawn = keys(seed, names, "brink")
        brinks = [
            _Brink(p, texts[p.text], texts[p.base], int(key))
            for p, key in zip(chosen, drawn, strict=True)
        ]
        _approach(asked, brinks)
        for number, brink, found in zip(
            open_ones,
            brinks,
            _at_the_brink(asked, brinks, [needed[n] for n in open_ones]),
            strict=True,
        ):
            weights = brink.text.weights
            if is_few[number]:
                needed[number] |= found.needed
                mass[number] = weights[sorted(needed[number])].sum() if needed[number] else 0.0
            else:
                share = len(found.needed & found.tried) / max(len(found.tried), 1)
                mass[number] = weights[brink.text.seen].sum() * share
    return mass, is_few


def _margins(
    asked: Asked, brinks: Sequence[_Brink], states: Sequence[tuple[Units, Units]]
) -> Float64[np.ndarray, " state"]:
    """By how much the text's decision is ahead of where it counts as turned."""
    hybrids: list[Hybrid] = [
        mixed(b.base, b.text, *state, asked.longest)
        for b, state in zip(brinks, states, strict=True)
    ]
    said = asked(hybrids, [b.pair.text for b in brinks])
    label = np.array([b.text.decision for b in brinks], dtype=int)
    return np.asarray(margin(said.logits, label) - np.array([b.pair.border for b in brinks]))


def _approach(asked: Asked, brinks: Sequence[_Brink]) -> None:
    """Halves the way from the text's units to the base's until one step is left."""
    while far := [b for b in brinks if b.high - b.low > 1]:
        middle = [(b.low + b.high) // 2 for b in far]
        states = [b.state(b.order[:m]) for b, m in zip(far, middle, strict=True)]
        for b, m, value in zip(far, middle, _margins(asked, far, states), strict=True):
            b.margins[m] = float(value)
            if value > 0:
                b.low = m
            else:
                b.high = m
    ends = [(b, end) for b in brinks for end in (b.low, b.high) if np.isnan(b.margins[end])]
    states = [b.state(b.order[:end]) for b, end in ends]
    for (b, end), value in zip(ends, _margins(asked, [b for b, _ in ends], states), strict=True):
        b.margins[end] = float(value)


class _Tried(NamedTuple):
    needed: set[int]
    tried: set[int]


def _at_the_brink(
    asked: Asked, brinks: Sequence[_Brink], known: Sequence[set[int]]
) -> list[_Tried]:
    """The units that the decision needs there."""
    tries: list[tuple[int, int, str]] = []
    found = [_Tried(set(), set()) for _ in brinks]
    for number, b in enumerate(brinks):
        before, after = b.order[: b.low], b.order[b.low :]
        if len(b.order) > FEW:
            waiting = -np.log1p(-b.noise[: len(after)]) / b.text.weights[after].clip(1e-300)
            after, before = [after[place] for place in np.argsort(waiting)[:FEW]], []
        tries += [(number, unit, "delete") for unit in after if unit not in known[number]]
        tries += [(number, unit, "restore") for unit in before if unit not in known[number]]
    _try(asked, brinks, tries, found)
    # What says nothing by itself may still have to be what it is: it is exchanged for the other's
    # unit of its rank, if that is more than to put the other's unit beside it.
    more = []
    for number, b in enumerate(brinks):
        known_now = found[number].needed | known[number]
        mass = b.text.weights[sorted(known_now)].sum()
        if len(b.order) <= FEW and mass < HALF and b.pair.gives_back:
            left = [unit for unit in b.order[b.low :] if unit not in known_now]
            more += [(number, unit) for unit in left if b.owned[unit]]
    values = _values(asked, brinks, [(*one, "beside") for one in more])
    kept = [one for one, value in zip(more, values, strict=True) if value > 0]
    _try(asked, brinks, [(*one, "exchange") for one in kept], found)
    return found


def _values(
    asked: Asked, brinks: Sequence[_Brink], tries: Sequence[tuple[int, int, str]]
) -> Float64[np.ndarray, "try"]:
    states = []
    for number, unit, what in tries:
        b = brinks[number]
        low, high = b.order[: b.low], b.order[: b.high]
        if what == "delete":
            states.append(b.state(low, without=unit))
        elif what == "restore":
            states.append(b.state([u for u in high if u != unit], with_own=unit))
        elif what == "beside":
            states.append(b.state(low, with_own=unit))
        else:
            states.append(b.state([*low, unit]))
    return _margins(asked, [brinks[number] for number, _, _ in tries], states)


def _try(
    asked: Asked,
    brinks: Sequence[_Brink],
    tries: Sequence[tuple[int, int, str]],
    found: Sequence[_Tried],
) -> None:
    for (number, unit, what), value in zip(tries, _values(asked, brinks, tries), strict=True):
        b = brinks[number]
        found[number].tried.add(unit)
        stays, turned = b.margins[b.low], b.margins[b.high]
        weights = b.text.weights
        least = LEAST * (stays - turned) * min(1.0, weights[unit] / weights[b.pivot])
        if what == "restore":
            is_needed = value > 0
        elif what == "delete":
            is_needed = value <= 0 or stays - value >= least
        else:
            is_needed = value <= 0
        if is_needed:
            found[number].needed.add(unit)
