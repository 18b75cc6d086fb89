"""The shares of texts behind the verdict's word, from the rows of the exchange."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from tests.docs.intervals_again import Told, share


class Shares(NamedTuple):
    """Of all texts, and for the last two of those in which the decision goes with the words."""

    every: Told
    goes: Told
    matter: Told
    passes: Told


def shares(rows: pd.DataFrame) -> Shares:
    """All three hold; the decision goes with the words shown; they matter; they pass."""
    came = rows[rows["comes"] >= 5 / 6]
    many = came[~came["is_few"]]
    judged = came["mattering"].where(came["is_few"], many["mattering"].mean())
    matters, passes = judged >= 0.5, came["around"] < 0.5
    return Shares(
        share((matters & passes).sum(), len(rows)),
        share(len(came), len(rows)),
        share(matters.sum(), len(came)),
        share(passes.sum(), len(came)),
    )
