"""How much more would have to be measured to decide what is undecided."""

from __future__ import annotations

import math

from scipy.special import ndtri, stdtrit

from heedful.statistics.estimates import Estimate

CHANCE = 0.8
"""With which the larger sample decides: the usual power."""
MOST = 1_000_000
"""More than this is as good as never."""


def needed(estimate: Estimate, threshold: float, chance: float = CHANCE) -> int | None:
    """The n whose interval would leave out the threshold, should value and spread stay.

    The half of the interval that faces the threshold is q(n) s / √n, which gives s; n must then be
    the smallest with (q(n) + z) s / √n ≤ |value − threshold|. q is Student's quantile where the
    interval is Student's and the normal one elsewhere, z the normal quantile of the chance. None
    where no n would do: no interval, no width, a value at the threshold, or more than a million.
    """
    away = abs(estimate.value - threshold)
    is_above = estimate.value > threshold
    half = estimate.value - estimate.low if is_above else estimate.high - estimate.value
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


def _quantile(n: int, is_student: bool) -> float:
    return float(stdtrit(n - 1, 0.975)) if is_student else float(ndtri(0.975))
