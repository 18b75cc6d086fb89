"""The shares of texts behind the verdict's word, from the rows of the exchange."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from heedful.statistics import Estimate, proportion


class Shares(NamedTuple):
    """Of all texts, and for the last two of those in which the decision goes with the words."""

    every: Estimate
    goes: Estimate
    matter: Estimate
    passes: Estimate


def shares(rows: pd.DataFrame) -> Shares:
    """All three hold; the decision goes with the words shown; they matter; they pass."""
    came = rows[rows["comes"] >= 5 / 6]
    many = came[~came["is_few"]]
    judged = came["mattering"].where(came["is_few"], many["mattering"].mean())
    matters, passes = judged >= 0.5, came["around"] < 0.5
    return Shares(
        _share((matters & passes).sum(), len(rows)),
        _share(len(came), len(rows)),
        _share(matters.sum(), len(came)),
        _share(passes.sum(), len(came)),
    )


def _share(hits: int, count: int) -> Estimate:
    if not count:
        return Estimate(np.nan, np.nan, np.nan, 0, "none")
    return proportion(int(hits), count)
