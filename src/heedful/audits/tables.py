"""Rows per instance and ranking: made from tensors, and laid side by side again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float64, Shaped
from torch import Tensor

from heedful.audits.finding import frame
from heedful.statistics.estimates import Estimate, per_cent
from heedful.statistics.intervals import means


def per_ranking(
    names: Sequence[str], rankings: Sequence[str], **columns: Shaped[Tensor, " batch #ranking"]
) -> pd.DataFrame:
    """One row per instance and ranking; a column with a single ranking is the same for all."""
    shape = (len(names), len(rankings))
    flat = {
        name: np.broadcast_to(column.cpu().numpy(), shape).ravel()
        for name, column in columns.items()
    }
    instance = np.repeat(np.asarray(names, dtype=object), len(rankings))
    return frame(instance.tolist(), ranking=np.tile(np.asarray(rankings), len(names)), **flat)


@dataclass(frozen=True)
class Wide:
    """One number per instance (row) and ranking (column), and what such a number can be."""

    table: pd.DataFrame
    least: float = -np.inf
    most: float = np.inf

    @property
    def rankings(self) -> list[str]:
        """Rankings in the order in which they were measured."""
        return [str(name) for name in self.table.columns]

    @property
    def names(self) -> list[str]:
        """Instances."""
        return [str(name) for name in self.table.index]

    def __getitem__(self, ranking: str) -> Float64[np.ndarray, " instance"]:
        return self.table[ranking].to_numpy(dtype=np.float64)

    def __contains__(self, ranking: str) -> bool:
        return ranking in self.table.columns

    def means(self) -> dict[str, Estimate]:
        """The mean of each ranking with its interval, all from one resampling."""
        values = self.table.to_numpy(dtype=np.float64)
        found = means(values, self.names, least=self.least, most=self.most)
        return dict(zip(self.rankings, found, strict=True))

    def minus(self, baseline: str) -> dict[str, Estimate]:
        """The mean paired difference of every other ranking to one of them, by `a - b`."""
        if baseline not in self:
            return {}
        others = self.table.drop(columns=baseline)
        difference = others.to_numpy(dtype=np.float64) - self[baseline][:, None]
        most = self.most - self.least
        found = means(difference, self.names, least=-most, most=most, is_difference=True)
        named = (f"{ranking} - {baseline}" for ranking in others.columns)
        return dict(zip(named, found, strict=True))


def wide(rows: pd.DataFrame, column: str, least: float = -np.inf, most: float = np.inf) -> Wide:
    """One column of per-ranking rows, laid out by instance and ranking."""
    order = list(rows["ranking"].unique())
    table = rows.pivot(index="instance", columns="ranking", values=column)[order]
    return Wide(table.astype(np.float64), least, most)


def histogram(
    values: Float64[np.ndarray, " instance"], bins: int = 20, low: float = 0.0, high: float = 1.0
) -> dict[str, Any]:
    """Counts on equal bins, the last one closed, as plain lists; undefined values are left out."""
    counts, edges = np.histogram(values[~np.isnan(values)], bins=bins, range=(low, high))
    return {"edges": edges.round(6).tolist(), "counts": counts.tolist()}


def percent(estimate: Estimate) -> str:
    """A share in words: `41 % [38, 45]`."""
    if np.isnan(estimate.value):
        return "an undefined share"
    digits = 1 if estimate.value and abs(estimate.value) < 0.095 else 0
    value = per_cent(estimate.value, digits)
    if np.isnan(estimate.low):
        return value
    return f"{value} [{100 * estimate.low:.{digits}f}, {100 * estimate.high:.{digits}f}]"


def in_points(difference: Estimate) -> str:
    """A difference of shares in words: `34 points [31, 37]`."""
    return percent(difference).replace("%", "points")


def counted(count: int, of: int, what: str) -> tuple[str, ...]:
    """A note such as `3 of 200 documents …`, or none when there is nothing to count."""
    return (f"{count} of {of} documents {what}",) if count else ()


def of_several_units(rows: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The rows of documents with more than one unit, and a note on the documents left out."""
    if not len(rows):
        return rows, ()
    kept = rows[rows["units"] > 1]
    every, left = (int(table["instance"].nunique()) for table in (rows, kept))
    return kept, counted(every - left, every, "have one unit and are left out.")
