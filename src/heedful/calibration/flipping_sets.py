"""Words whose replacement flips a decision: all ways tried, or of many the strongest first."""

from __future__ import annotations

import math
from collections.abc import Generator
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

WAYS = 1000
"""Up to so many ways to replace words are all tried."""
ORDERS, MIXTURES = 24, 48
"""With more: orders in which words are replaced, and random mixtures of substitutes."""


class Flipping(NamedTuple):
    """What replacing words of a text has shown."""

    relevant: Bool[np.ndarray, " place"]
    smallest: Int[np.ndarray, " place"] | None
    """The smallest way to flip the decision; none where there is none."""
    is_sufficient: bool
    """Whether what is kept is."""


class Heard(NamedTuple):
    """What the model says of some ways to replace words."""

    flips: Bool[np.ndarray, " way"]
    margin: Float[np.ndarray, " way"]
    """By how much the old decision is ahead of the best other class."""


Search = Generator[Int[np.ndarray, "way place"], Heard, Flipping]
"""Asks what is decided when each word is its option of that number; 0 is the word itself."""


def flipping_sets(
    counts: Int[np.ndarray, " place"], kept: Bool[np.ndarray, " place"], rng: np.random.Generator
) -> Search:
    """What is asked to know which words matter, and whether the kept ones are sufficient."""
    if math.prod(counts.tolist()) <= WAYS:
        return _exhaustively(counts, kept)
    return _by_strength(counts, kept, rng)


def _in_minimal(sets: Bool[np.ndarray, "set place"]) -> Bool[np.ndarray, " place"]:
    """The places in a set that has no other one inside."""
    sets = np.unique(sets, axis=0)
    minimal: list[Bool[np.ndarray, " place"]] = []
    for one in sets[np.argsort(sets.sum(1), kind="stable")]:
        if not any((small <= one).all() for small in minimal):
            minimal.append(one)
    return np.any(minimal, axis=0) if minimal else np.zeros(sets.shape[1], dtype=bool)


def _exhaustively(counts: Int[np.ndarray, " place"], kept: Bool[np.ndarray, " place"]) -> Search:
    """All ways to replace words, tried."""
    every = list(product(*map(range, counts)))
    ways = np.array(every, dtype=int).reshape(len(every), len(counts))
    flipping = ways[(yield ways).flips]
    changed = flipping > 0
    smallest = flipping[changed.sum(1).argmin()] if len(flipping) else None
    return Flipping(_in_minimal(changed), smallest, bool((changed & kept).any(1).all()))


def _by_strength(
    counts: Int[np.ndarray, " place"], kept: Bool[np.ndarray, " place"], rng: np.random.Generator
) -> Search:
    """Some ways to replace words.

    Each word by the substitute that alone takes most from the decision, one after the other, until
    it flips; just before, every word that is left is tried. From these ways, and from all words
    replaced, words are restored as long as the decision stays flipped: what is left cannot be
    spared. Sufficiency is tried on the strongest substitutes of all other words, and on mixtures.
    """
    n = len(counts)
    single = [(place, way) for place in range(n) for way in range(1, counts[place])]
    ways = np.zeros((len(single) + 1, n), dtype=int)
    for row, (place, way) in enumerate(single):
        ways[row + 1, place] = way
    margin = (yield ways).margin
    taken = margin[0] - margin[1:]
    strongest, strength = np.zeros(n, dtype=int), np.full(n, -np.inf)
    for (place, way), much in zip(single, taken, strict=True):
        if much > strength[place]:
            strongest[place], strength[place] = way, much
    helping = np.flatnonzero(strength > 0)
    ways = np.stack([np.ones_like(counts), counts - 1, strongest] * (ORDERS // 6))
    ways = np.concatenate([ways, rng.integers(1, counts, (ORDERS - len(ways), n))])
    ways = ways[(yield ways).flips]
    order = np.array([rng.permutation(n) for _ in ways], dtype=int).reshape(len(ways), n)
    witnesses = yield from _witnesses(helping, strongest, strength, rng)
    # A word whose witness this is comes last, so that it stays if any of them must.
    drawn = [rng.permutation(n) for _ in witnesses]
    last = [np.append(o[o != place], place) for place, o in zip(witnesses, drawn, strict=True)]
    ways = np.concatenate([ways, *(way[None] for way in witnesses.values())])
    order = np.concatenate([order, *(one[None] for one in last)])
    for step in range(n if len(ways) else 0):
        restored = ways.copy()
        restored[np.arange(len(ways)), order[:, step]] = 0
        still = (yield restored).flips
        ways[still] = restored[still]
    smallest = ways[(ways > 0).sum(1).argmin()] if len(ways) else None
    others = rng.integers(0, counts, (MIXTURES, n))
    strong = np.where(strength > 0, strongest, 0)
    others = np.concatenate([np.ones_like(others[:1]), counts[None] - 1, strong[None], others])
    others[:, kept] = 0
    flips = (yield others).flips
    return Flipping(_in_minimal(ways > 0), smallest, not flips.any())


def _witnesses(
    helping: Int[np.ndarray, " some"],
    strongest: Int[np.ndarray, " place"],
    strength: Float[np.ndarray, " place"],
    rng: np.random.Generator,
) -> Generator[Int[np.ndarray, "way place"], Heard, dict[int, Int[np.ndarray, " place"]]]:
    """Words without which a way would not flip the decision, each with such a way."""
    n, found = len(strongest), dict[int, Int[np.ndarray, "place"]]()
    noise = rng.random((ORDERS, len(helping)))
    falling = 0.2 * noise - strength[helping] / strength[helping].max(initial=1e-12)
    by_noise = np.arange(ORDERS)[:, None] % 2 == 1
    orders = helping[np.argsort(np.where(by_noise, noise, falling))]

    def replaced(places: Int[np.ndarray, " some"]) -> Int[np.ndarray, "place"]:
        way = np.zeros(n, dtype=int)
        way[places] = strongest[places]
        return way

    if not (yield replaced(helping)[None]).flips[0]:
        return found
    low, high = np.zeros(ORDERS, dtype=int), np.full(ORDERS, len(helping))
    while (high - low > 1).any():
        middle = (low + high) // 2
        ways = [replaced(one[:count]) for one, count in zip(orders, middle, strict=True)]
        flips = (yield np.stack(ways)).flips
        low, high = np.where(flips, low, middle), np.where(flips, middle, high)
    tried = [
        (int(place), replaced(np.append(one[:count], place)))
        for one, count in zip(orders, low, strict=True)
        for place in one[count:]
    ]
    flips = (yield np.stack([way for _, way in tried])).flips
    for (place, way), does in zip(tried, flips, strict=True):
        if does:
            found.setdefault(place, way)
    return found
