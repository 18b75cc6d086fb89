"""What words get on average: importances of tokens normalised within their text, then averaged.

The input is a token table: one row per token with `instance`, `word`, `length` (tokens in its text)
and a column per importance. Three ways to compare texts of different lengths:

    softmax   exp(a_i) / Σ exp(a_j)   as published; has a strong 1/N component
    share     a_i / Σ a_j             has one too
    ratio     N a_i / Σ a_j           how many times an even share: none
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from jaxtyping import Float64, Int

if TYPE_CHECKING:
    import pandas as pd

Tokens = Float64[np.ndarray, "token"]
Way: TypeAlias = Literal["softmax", "share", "ratio", "softmax ratio"]


def normalised(
    tokens: pd.DataFrame, column: str, way: Way = "softmax", mass: float | None = None
) -> Tokens:
    """Each token's importance made comparable within its text, in float64.

    `mass` scales a text's importances to that sum before a softmax, so that methods whose sums
    differ (one per head, one in all) are softened alike; without it they are taken as they are.
    `softmax ratio` is N times the softmax. A text whose importances sum to zero shares evenly.
    """
    place = _text_of(tokens)
    values = tokens[column].to_numpy(dtype=np.float64)
    length = np.bincount(place)[place].astype(np.float64)
    if way in ("share", "ratio") or mass is not None:
        total = np.bincount(place, values)[place]
        share: Tokens = np.divide(values, total, out=1 / length, where=total > 0)
        if way in ("share", "ratio"):
            return np.asarray(share * length if way == "ratio" else share)
        values = share * mass if mass is not None else values
    # A softmax does not change when the largest is taken off, and cannot overflow then.
    largest = np.full(len(length), -np.inf)
    np.maximum.at(largest, place, values)
    raised = np.exp(values - largest[place])
    soft = raised / np.bincount(place, raised)[place]
    return np.asarray(soft * length if way == "softmax ratio" else soft)


def word_means(tokens: pd.DataFrame, scores: Mapping[str, Tokens]) -> pd.DataFrame:
    """One row per word: count, mean and sample s.d. of every score, mean 1/N of its texts.

    The s.d. of a word seen once is 0. Words are in order of their names.
    """
    import pandas as pd

    codes, words = pd.factorize(tokens["word"], sort=True)
    count = np.bincount(codes)
    found: dict[str, object] = {"word": words.astype(str), "count": count}
    for name, values in scores.items():
        mean = np.bincount(codes, values) / count
        apart = np.bincount(codes, (values - mean[codes]) ** 2)
        found[name] = mean
        found[f"{name} sd"] = np.sqrt(apart / np.maximum(count - 1, 1))
    inverse = 1 / tokens["length"].to_numpy(dtype=np.float64)
    found["inverse length"] = np.bincount(codes, inverse) / count
    return pd.DataFrame(found)


def percentiles(tokens: pd.DataFrame, column: str) -> Tokens:
    """The share of its text that a token's importance exceeds; ties and itself count half."""
    ranks = tokens.groupby("instance", sort=False)[column].rank(method="average")
    lengths = tokens.groupby("instance", sort=False)[column].transform("size")
    return ((ranks - 0.5) / lengths).to_numpy(dtype=np.float64)


def _text_of(tokens: pd.DataFrame) -> Int[np.ndarray, " token"]:
    """The number of each token's text."""
    import pandas as pd

    return np.asarray(pd.factorize(tokens["instance"])[0])
