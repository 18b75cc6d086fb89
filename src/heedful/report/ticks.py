"""Round numbers along an axis, and how they are written."""

from __future__ import annotations

import math
from collections.abc import Sequence

from heedful.statistics.estimates import per_cent

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


def ticks(low: float, high: float, most: int, is_share: bool = False) -> list[float]:
    """Multiples of a round number between two ends, at most so many steps.

    Per cent are written without a point, so that a step is at least one.

    >>> ticks(-0.1, 2.3, 5), ticks(0, 0.05, 9, is_share=True)[:3]
    ([0.0, 0.5, 1.0, 1.5, 2.0], [0.0, 0.01, 0.02])
    """
    if not high > low:
        return [low]
    least = (high - low) / max(most, 1)
    size = 10.0 ** math.floor(math.log10(least))
    step = next(part * size for part in STEPS if part * size >= least * (1 - 1e-9))
    if is_share:
        step = max(step, 0.01) if step != 0.025 else 0.05
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 12) + 0.0 for number in range(first, last + 1)]


def spelt(values: Sequence[float], is_share: bool = False) -> list[str]:
    r"""Numbers of an axis with as many digits as tell them apart.

    >>> spelt([-0.5, 0, 0.5]), spelt([0, 20_000]), spelt([0, 0.5], is_share=True)
    (['−0.5', '0.0', '0.5'], ['0', '20,000'], ['0\xa0%', '50\xa0%'])
    """
    if is_share:
        return [per_cent(value).replace("-", "−") for value in values]
    digits = next(
        (
            d
            for d in range(6)
            if all(abs(round(v, d) - v) <= 1e-9 * max(abs(v), 1e-3) for v in values)
        ),
        6,
    )
    return [f"{value:,.{digits}f}".replace("-", "−") for value in values]
