"""Statistics of claims from per-instance rows and from seeds.

The rows of several seeds are averaged per instance first; the interval is then over instances.
Where a claim is about any training, `trained_average` and `trained_contrast` widen it by how far
the seeds differ; where nothing else matters, take one number per seed: `over_seeds`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from heedful.statistics import Estimate, mean, over_seeds, paired, widened

Chosen = Mapping[str, Any]
"""Which rows: a value for each named column, e.g. {"ranking": "attention"}."""


def per_instance(
    tables: Iterable[pd.DataFrame], column: str, rows: Chosen | None = None
) -> pd.Series[float]:
    """The column's mean over the tables (seeds) for each instance; nan where any is undefined."""
    parts = []
    for table in tables:
        for name, value in (rows or {}).items():
            table = table[table[name] == value]
        part = table.set_index("instance")[column].astype(float)
        if not part.index.is_unique:
            raise ValueError(f"several rows per instance for {column!r}: choose rows by a column")
        parts.append(part)
    # An instance that is undefined for one seed has no mean over the same seeds as the others.
    return pd.concat(parts, axis=1).mean(axis=1, skipna=False)


def average(tables: Iterable[pd.DataFrame], column: str, rows: Chosen | None = None) -> Estimate:
    """The mean over instances with its bootstrap interval."""
    values = per_instance(tables, column, rows)
    return mean(values.to_numpy(), _names(values))


def difference(
    tables: Sequence[pd.DataFrame], column: str, first: Chosen, second: Chosen
) -> Estimate:
    """First minus second kind of rows of the same tables, paired by instance."""
    return contrast(tables, tables, column, first, second)


def contrast(
    first: Iterable[pd.DataFrame],
    second: Iterable[pd.DataFrame],
    column: str,
    first_rows: Chosen | None = None,
    second_rows: Chosen | None = None,
) -> Estimate:
    """The column's mean in the first tables minus that in the second, paired by instance."""
    one = per_instance(first, column, first_rows)
    two = per_instance(second, column, second_rows)
    one, two = one.align(two, join="inner")
    return paired(one.to_numpy(), two.to_numpy(), _names(one))


def trained_average(tables: Sequence[pd.DataFrame], column: str) -> Estimate:
    """`average` of a share over documents and trainings: the interval carries both."""
    each = [float(per_instance([one], column).mean()) for one in tables]
    return widened(average(tables, column), each, 0, 1)


def trained_contrast(
    first: Sequence[pd.DataFrame],
    second: Sequence[pd.DataFrame],
    column: str,
    most: float = math.inf,
) -> Estimate:
    """`contrast` over documents and trainings, paired by both; no larger than `most` can be."""
    apart = [
        float((per_instance([one], column) - per_instance([two], column)).mean())
        for one, two in zip(first, second, strict=True)
    ]
    return widened(contrast(first, second, column), apart, -most, most)


def over_alike_seeds(
    values: Iterable[float], least: float = -math.inf, most: float = math.inf
) -> Estimate:
    """`over_seeds` of a count of the same documents or words in every seed.

    Seeds that all give the same number, as a whole count can, estimate it: the interval has width
    0, where other numbers without spread have none.
    """
    given = [float(value) for value in values]
    if len(given) > 1 and min(given) == max(given):
        return exact(given[0], len(given))
    return over_seeds(given, least, most)


def exact(value: float, n: int) -> Estimate:
    """A number without uncertainty (an identity, a count): its interval has width 0."""
    return Estimate(value, value, value, n, "constant")


def _names(values: pd.Series[float]) -> list[str]:
    return [str(name) for name in values.index]
