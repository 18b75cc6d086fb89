"""A simulated reader, who knows attention alone, foresees what the model says of mixed texts.

Every text is mixed with one that was decided otherwise: each of its units stays with even odds, and
units of the other, drawn anywhere in it, take the free places. Neither looks at attention, so these
are not the exchanges of the audit, which move exactly the units shown. The reader sees which units
stayed and came, and what they weighed where they came from, and expects the decision of the text
whose units bring more attention; where neither brings clearly more, the reader says nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heedful.audits.asking import Asked
from heedful.audits.hybrids import Hybrid, ReadText
from heedful.runs.randomness import numpy_generator
from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import proportion

CLEAR = 0.5
"""Of all attention, by which one text's units must bring more than the other's."""
FEWEST = 20
"""Mixed texts about which the reader says something, at least."""


class ReaderSuccess(NamedTuple):
    """Shares of mixed texts whose decision was foreseen."""

    attention: Estimate
    even: Estimate
    """Of the same, by a reader who gives every unit of a text the same weight."""


def reader_success(asked: Asked, seed: int = 0, each: int = 3) -> ReaderSuccess | None:
    """How often the reader is right, on so many mixtures of each text; none of too few."""
    texts, rng = asked.texts, numpy_generator(seed, "reader")
    decision = np.array([text.decision for text in texts])
    pairs = [
        (row, int(rng.choice(others)))
        for row in range(len(texts))
        for others in [np.flatnonzero(decision != decision[row])]
        for _ in range(each)
        if len(others)
    ]
    hybrids, expected, rows = [], [], []
    for row, other in pairs:
        hybrid, brought = _mixture(texts[row], texts[other], rng)
        if abs(np.subtract(*brought[0])) >= CLEAR:
            hybrids.append(hybrid)
            rows.append(row)
            expected.append([decision[row if own >= new else other] for own, new in brought])
    if len(rows) < FEWEST:
        return None
    said = asked(hybrids, rows).logits.argmax(1)
    right = np.array(expected) == said[:, None]
    shares = (proportion(int(column.sum()), len(column)) for column in right.T)
    return ReaderSuccess(*shares)


def _mixture(
    text: ReadText, other: ReadText, rng: np.random.Generator
) -> tuple[Hybrid, list[tuple[float, float]]]:
    """A mixed text, and the weight that units of both bring: by attention, and all alike."""
    stays = rng.random(len(text.units)) < 0.5
    free = np.flatnonzero(~stays)
    count = min(len(free), len(other.units))
    taken = np.sort(rng.choice(len(other.units), count, replace=False))
    at = dict(zip(free[:count].tolist(), taken.tolist(), strict=True))
    places = [place for place in range(len(text.units)) if stays[place] or place in at]
    units = [other.units[at[p]] if p in at else text.units[p] for p in places]
    hybrid = Hybrid(units, text.side[places], np.array([place in at for place in places]))
    weighed = float(text.weights[stays].sum()), float(other.weights[taken].sum())
    return hybrid, [weighed, (float(stays.mean()), count / len(other.units))]
