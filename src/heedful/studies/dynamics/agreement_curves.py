"""Agreement over training as a curve with its uncertainty: maxima over checkpoints, honest ones.

Every statistic is resampled by item (a document, a translated sentence), with the checkpoint chosen
anew in each resample where the statistic chooses one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int

from heedful.runs.randomness import keys
from heedful.statistics.draws import Draws, draws


@dataclass(frozen=True, eq=False)
class Curve:
    """A per-row quantity at every checkpoint, summed by item; rows that are nan are left out."""

    sums: Float64[np.ndarray, "item checkpoint"]
    counts: Float64[np.ndarray, "item checkpoint"]
    """Defined rows."""
    names: tuple[str, ...]

    @property
    def means(self) -> Float64[np.ndarray, " checkpoint"]:
        """The mean over rows at each checkpoint: pooled, not per item."""
        return np.asarray(_over(self.sums.sum(0), self.counts.sum(0)))

    def __sub__(self, other: Curve) -> Curve:
        """The difference row by row; both must be defined for the same rows."""
        if self.sums.shape != other.sums.shape or not np.array_equal(self.counts, other.counts):
            raise ValueError("curves that are subtracted share their checkpoints and defined rows")
        return Curve(self.sums - other.sums, self.counts, self.names)

    def repeated(self, checkpoints: int) -> Curve:
        """A curve of one checkpoint as one of several that never changes."""
        sums, counts = (np.repeat(one, checkpoints, 1) for one in (self.sums, self.counts))
        return Curve(sums, counts, self.names)

    def at(self, checkpoint: int) -> Draws:
        """The mean at one checkpoint."""
        sums, counts = self.sums[:, checkpoint], self.counts[:, checkpoint]

        def statistic(weights: np.ndarray) -> np.ndarray:
            return _over(weights @ sums, weights @ counts)

        return draws(statistic, self.names)

    def highest(self, chooser: Curve | None = None) -> Draws:
        """The value where the chooser (the curve itself) is highest, chosen anew in each resample.

        With a chooser this is, say, agreement minus chance where agreement is highest.
        """
        guide = self if chooser is None else chooser

        def statistic(weights: np.ndarray) -> np.ndarray:
            guided = _over(weights @ guide.sums, weights @ guide.counts)
            chosen = np.nan_to_num(guided, nan=-np.inf).argmax(1)[:, None]
            means = _over(weights @ self.sums, weights @ self.counts)
            return np.take_along_axis(means, chosen, 1)[:, 0]

        return draws(statistic, self.names)

    def crossed(self, chooser: Curve | None = None) -> Draws:
        """The value at the checkpoint that the other half of the items would choose.

        Items fall into two halves by their names; each is measured where the other's mean is
        highest, so no item helps to choose its own checkpoint.
        """
        sums, counts = self._crossed(self if chooser is None else chooser)

        def statistic(weights: np.ndarray) -> np.ndarray:
            return _over(weights @ sums, weights @ counts)

        return draws(statistic, self.names)

    def fall(self) -> Draws:
        """The last checkpoint minus the highest: below 0 where agreement falls again.

        The highest is the one that the other half of the items would choose: the highest of its own
        noise lies above the last one even where nothing ever falls.
        """
        sums, counts = self._crossed(self)

        def statistic(weights: np.ndarray) -> np.ndarray:
            last = _over(weights @ self.sums[:, -1], weights @ self.counts[:, -1])
            return np.asarray(last - _over(weights @ sums, weights @ counts))

        return draws(statistic, self.names)

    def _crossed(
        self, guide: Curve
    ) -> tuple[Float64[np.ndarray, " item"], Float64[np.ndarray, " item"]]:
        """Sums and counts of each item at the checkpoint where the other half's guide is highest.

        Where all items fall into one half there is no other: none is measured.
        """
        half = np.asarray(keys(0, self.names, "half") & 1, dtype=bool)
        sums, counts = np.zeros(len(half)), np.zeros(len(half))
        for is_mine in (half, ~half):
            if not is_mine.any() or is_mine.all():
                continue
            other = _over(guide.sums[~is_mine].sum(0), guide.counts[~is_mine].sum(0))
            chosen = int(np.nanargmax(other))
            sums[is_mine] = self.sums[is_mine, chosen]
            counts[is_mine] = self.counts[is_mine, chosen]
        return sums, counts


def curve_of(
    values: np.ndarray, item: Int[np.ndarray, " row"], rows: Int[np.ndarray, " row"] | None = None
) -> Curve:
    """A curve from values [checkpoint row]; `rows` are those of `item` that the values speak of."""
    values = np.atleast_2d(np.asarray(values, dtype=np.float64))
    owners = item if rows is None else item[rows]
    known, place = np.unique(item, return_inverse=True)
    place = place if rows is None else place[rows]
    if len(owners) != values.shape[1]:
        raise ValueError(f"{values.shape[1]} values for {len(owners)} rows")
    is_defined: Bool[np.ndarray, "checkpoint row"] = ~np.isnan(values)
    sums = np.zeros((len(known), len(values)))
    counts = np.zeros_like(sums)
    np.add.at(sums, place, np.where(is_defined, values, 0.0).T)
    np.add.at(counts, place, is_defined.T.astype(np.float64))
    return Curve(sums, counts, tuple(str(number) for number in known.tolist()))


def _over(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(count > 0, total / count, np.nan))


def contextual(pair: Curve, context: Curve, performance: Curve, reference: Curve) -> Draws:
    """ξ of a pair's highest agreement, resampled: see `agreement.contextualised`.

    `context` and `performance` are the comparison runs' mean agreement with the reference and mean
    right answers; the reference's best performance stands in where none agrees more.
    """

    def statistic(weights: np.ndarray) -> np.ndarray:
        agreed, passing, performed, best = (
            np.nan_to_num(_over(weights @ one.sums, weights @ one.counts), nan=-np.inf)
            for one in (pair, context, performance, reference)
        )
        is_past = passing > agreed.max(1)[:, None]
        first = np.take_along_axis(performed, is_past.argmax(1)[:, None], 1)[:, 0]
        return np.where(is_past.any(1), first, best.max(1))

    return draws(statistic, pair.names)


def is_inside(curve: Curve) -> Draws:
    """1 where the highest checkpoint is neither the first nor the last, resample by resample."""

    def statistic(weights: np.ndarray) -> np.ndarray:
        means = _over(weights @ curve.sums, weights @ curve.counts)
        highest = np.nan_to_num(means, nan=-np.inf).argmax(1)
        return np.asarray((highest > 0) & (highest < means.shape[1] - 1), dtype=np.float64)

    return draws(statistic, curve.names)
