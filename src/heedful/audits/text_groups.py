"""In which texts attention may be believed: the group that is told apart best before reading on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool

from heedful.audits.tables import percent
from heedful.runs.randomness import keys
from heedful.statistics.estimates import Estimate, per_cent
from heedful.statistics.intervals import proportion

FEWEST = 20
"""Texts of a group and of the others at least, in each half."""


class TextGroup(NamedTuple):
    """Texts that can be told by what everybody sees of them."""

    name: str
    size: Estimate
    """Share of the texts."""
    inside: Estimate
    """Share of the group in which all three tests hold, in texts that did not choose it."""
    outside: Estimate

    @property
    def sentence(self) -> str:
        """What it says to a person."""
        return (
            f"It holds in {percent(self.inside)} of the texts {self.name} (these are "
            f"{per_cent(self.size.value)}), and in {percent(self.outside)} of the others."
        )

    def to_json(self) -> dict[str, Any]:
        """The group as plain data."""
        shares = {"size": self.size, "inside": self.inside, "outside": self.outside}
        return {"name": self.name, "sentence": self.sentence} | {
            name: share.to_json() for name, share in shares.items()
        }


def best_group(rows: pd.DataFrame, holds: Bool[np.ndarray, " text"]) -> TextGroup | None:
    """The group with the largest difference, found on half of the texts and told on the others.

    None where that difference is not certain.
    """
    first = keys(0, [str(name) for name in rows["instance"]], "groups") % 2 == 0
    found: list[tuple[float, str, Bool[np.ndarray, " text"]]] = []
    for name, group in _candidates(rows):
        sizes = [int((half & part).sum()) for half in (first, ~first) for part in (group, ~group)]
        if min(sizes) >= FEWEST:
            gain = holds[first & group].mean() - holds[first & ~group].mean()
            found.append((float(gain), name, group))
    if not found:
        return None
    _, name, group = max(found, key=lambda one: one[0])
    inside, outside = (
        proportion(int(holds[~first & part].sum()), int((~first & part).sum()))
        for part in (group, ~group)
    )
    size = proportion(int(group.sum()), len(group))
    return TextGroup(name, size, inside, outside) if inside.low > outside.high else None


def _candidates(rows: pd.DataFrame) -> Iterator[tuple[str, Bool[np.ndarray, " text"]]]:
    """Groups by what is decided, by the darkest word, by the words seen and by length."""
    for name in sorted(set(rows["decided"])):
        yield f"decided as {name}", rows["decided"].to_numpy() == name
    largest = rows["largest"].to_numpy(dtype=np.float64)
    for place in (0.25, 0.5, 0.75):
        border = float(np.quantile(largest, place))
        yield f"whose largest weight is at least {border:.2f}", largest >= border
    units = rows["units"].to_numpy(dtype=np.int64)
    count = (rows["seen"].to_numpy(dtype=np.float64) * units).round().astype(np.int64)
    for what, values in (("seen words", count), ("words", units)):
        for place in (0.25, 0.5, 0.75):
            border = int(np.quantile(values, place))
            yield f"of at most {border} {what}", values <= border
