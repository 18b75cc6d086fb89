"""How much more would have to be measured to decide what is undecided."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri, stdtrit
from scipy.stats import binom

from heedful.statistics.estimates import Estimate
from heedful.statistics.shares import DECIDED, EXACT

CHANCE = 0.8
"""With which the larger sample decides: the usual power."""
MOST = 1_000_000
"""More than this is as good as never."""
COUNTED = 2_000
"""Up to this n the chance of a share of few trainings is counted."""


def needed(estimate: Estimate, threshold: float, chance: float = CHANCE) -> int | None:
    """The n whose interval would leave out the threshold, should value and spread stay.

    The half of the interval that faces the threshold is q(n) s / √n, which gives s; n must then be
    the smallest with (q(n) + z) s / √n ≤ |value − threshold|. q is Student's quantile where the
    interval is Student's and the normal one elsewhere, z the normal quantile of the chance. None
    where no n would do: no interval, no width, a value at the threshold, or more than a million. Of
    a share with an exact interval the samples that decide are counted instead.
    """
    away = abs(estimate.value - threshold)
    is_above = estimate.value > threshold
    half = estimate.value - estimate.low if is_above else estimate.high - estimate.value
    if estimate.method == DECIDED:  # what is undecided there hangs on each case's own n
        return None
    if estimate.method == EXACT and 0 < threshold < 1 and away > 0:
        found = _counted(estimate.value, threshold, chance)
        if found is not None:
            return found
    if estimate.n < 2 or not (half > 0 and away > 0 and math.isfinite(half)):
        return None
    is_student = "student-t" in estimate.method
    spread = half * math.sqrt(estimate.n) / _quantile(estimate.n, is_student)

    def is_enough(n: int) -> bool:
        reach = _quantile(n, is_student) + float(ndtri(chance))
        return reach * spread / math.sqrt(n) <= away

    if not is_enough(MOST):
        return None
    low, high = 1, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _counted(share: float, threshold: float, chance: float) -> int | None:
    """The smallest n whose exact interval leaves the threshold out so often, if it is small."""
    if share < threshold:
        share, threshold = 1 - share, 1 - threshold
    n = np.arange(1, COUNTED + 1)
    # The least number of hits that a share at the threshold reaches in at most 2.5 % of samples.
    hits = binom.isf(0.025, n, threshold) + 1
    enough = np.flatnonzero(binom.sf(hits - 1, n, share) >= chance)
    return int(n[enough[0]]) if len(enough) else None


def _quantile(n: int, is_student: bool) -> float:
    return float(stdtrit(n - 1, 0.975)) if is_student else float(ndtri(0.975))
