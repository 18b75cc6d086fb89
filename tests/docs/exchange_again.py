"""The shares of texts behind the verdict's word, from the rows of the exchange."""

from __future__ import annotations

import numpy as np
import pandas as pd


def shares(rows: pd.DataFrame) -> tuple[float, float, float, float]:
    """All three hold; the decision goes with the words shown; they matter; they pass.

    In words: the decision follows the words shown on average over both exchanges, less what one
    pair shows and another belies; where they keep the decision, most attention lies on words that
    matter; attention mediates more than half of their effect.
    """
    if "comes" in rows:
        return _in_each_text(rows)
    by_name = rows.set_index("instance")
    followed, luck = [], []
    for name, row in by_name.iterrows():
        followed.append((row["goes"] + row["stays"]) / 2)
        others = [
            other["goes"]
            for _, other in by_name.iterrows()
            if other["partner"] == name and other.name != row["partner"]
        ]
        if others:
            luck.append(max(2 * (abs(row["stays"] - np.mean(others)) - 0.5), 0))
    goes = max(np.mean(followed) - (np.mean(luck) if luck else 0), 0)
    kept = rows[rows["stays"] >= 0.75]
    few, many = kept[kept["is_few"]], kept[~kept["is_few"]]
    hits = (few["mattering"] >= 0.5).sum() + len(many) * (
        len(many) > 0 and many["mattering"].mean() >= 0.5
    )
    matter = hits / len(kept) if len(kept) else np.nan
    passing = (kept["around"] < 0.5).mean() if len(kept) else 0.0
    every = float((rows["around"] < 0.5).mean())
    return float(goes * np.nan_to_num(matter) * passing), float(goes), float(matter), every


def _in_each_text(rows: pd.DataFrame) -> tuple[float, float, float, float]:
    """The same by the rule that asks all three of one text: the latter two among the first."""
    came = rows[rows["comes"] >= 5 / 6]
    many = came[~came["is_few"]]
    judged = came["mattering"].where(came["is_few"], many["mattering"].mean())
    matters, passes = judged >= 0.5, came["around"] < 0.5
    both = float((matters & passes).sum() / len(rows))
    each = (float(one.mean()) if len(came) else np.nan for one in (matters, passes))
    return (both, len(came) / len(rows), *each)  # type: ignore[return-value]


def share_of(rows: pd.DataFrame) -> float:
    """The share of texts in which all three hold."""
    return shares(rows)[0]
