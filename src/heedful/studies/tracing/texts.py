"""What a trace says of each text, in one row: all that a study of many models has to keep.

From the token table and the table of cells (layer, head, text) of a traced corpus.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Float64, Shaped
from scipy.stats import rankdata

from heedful.audits.word_means import normalised, percentiles
from heedful.statistics.association import products

TOGETHER, RANKED = "together", "ranked"
"""Columns of summed products: of LAT, gradient and 1/N; of the ranks of LAT and gradient."""


def summaries(
    tokens: pd.DataFrame, cells: pd.DataFrame, kind_of_token: Shaped[np.ndarray, " token"]
) -> pd.DataFrame:
    """One row per text, in the order of the tokens.

    `tagged`: how many strongly valued tokens it has, `percentile`: their mean place among all
    tokens by LAT, nan without any;
    `entropy l`: of layer l's rows over log N, mean over heads; `gain l.h`: peak share of A^l of a
    head minus that of A^(l+1); `lost`: the most that any head and layer lost of its unit;
    `together i`, `ranked i`: sums over tokens of what correlations of LAT and gradient need.
    """
    place, instances = pd.factorize(tokens["instance"])
    is_tagged = kind_of_token != 0
    count = np.bincount(place, is_tagged.astype(np.float64))
    total = np.bincount(place, np.where(is_tagged, percentiles(tokens, "lat"), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        found: dict[str, object] = {
            "instance": instances,
            "length": np.bincount(place),
            "tagged": count,
            "percentile": np.where(count > 0, total / count, np.nan),
        }
    found |= _summed(tokens, place)
    table = pd.DataFrame(found).set_index("instance")
    entropy = cells.pivot_table("entropy", "instance", "layer", dropna=False)
    table = table.join(entropy.rename(columns=lambda layer: f"entropy {layer}"))
    where = cells["layer"].astype(str) + "." + (cells["head"] + 1).astype(str)
    gains = cells.assign(gain=cells["peak"] - cells["peak_above"], cell=where)
    gains = gains.pivot(index="instance", columns="cell", values="gain")
    table = table.join(gains.rename(columns=lambda cell: f"gain {cell}")).join(
        cells.groupby("instance")["lost"].max()
    )
    return table.reset_index()


def sums_of(table: pd.DataFrame, name: str) -> Float64[np.ndarray, "text product"]:
    """The summed products of that name, for `association.correlated`."""
    columns = sorted((c for c in table if str(c).startswith(f"{name} ")), key=_number)
    return table[columns].to_numpy(dtype=np.float64)


def _summed(
    tokens: pd.DataFrame, place: Shaped[np.ndarray, " token"]
) -> dict[str, Float64[np.ndarray, " text"]]:
    """Products of the published token scores, summed over each text."""
    traced, gradient = normalised(tokens, "lat"), normalised(tokens, "gradient")
    inverse = 1 / tokens["length"].to_numpy(dtype=np.float64)
    kinds = {
        TOGETHER: products(traced, gradient, inverse),
        RANKED: products(rankdata(traced), rankdata(gradient)),
    }
    return {
        f"{name} {number}": np.bincount(place, column)
        for name, table in kinds.items()
        for number, column in enumerate(table.T)
    }


def _number(column: object) -> int:
    return int(str(column).rsplit(" ", 1)[1])
