"""Where one more draw of the same kind would lie, from a few."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from heedful.statistics.estimates import Estimate


def new_draw(values: ArrayLike) -> Estimate:
    """The mean of a few draws, with the interval in which one more lies with a chance of 95 %.

    mean ± t s √(1 + 1/n), for normal draws; fewer than two, or draws without spread, have none.
    """
    given = np.asarray(values, dtype=np.float64)
    defined = given[~np.isnan(given)]
    n, undefined = len(defined), len(given) - len(defined)
    value = float(defined.mean()) if n else math.nan
    spread = float(defined.std(ddof=1)) if n > 1 else 0.0
    if not spread > 0:
        return Estimate(value, math.nan, math.nan, n, "none", undefined)
    half = float(stdtrit(n - 1, 0.975)) * spread * math.sqrt(1 + 1 / n)
    return Estimate(value, value - half, value + half, n, "prediction", undefined)
