"""Round numbers along an axis, and how they are written."""

from __future__ import annotations

import math
from collections.abc import Sequence

from heedful.statistics.estimates import per_cent

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
WHOLE = 0.01
"""One per cent."""
LARGE = 1e8
"""Numbers from here on are written with an exponent."""


def ticks(low: float, high: float, most: int, is_share: bool = False) -> list[float]:
    """Multiples of a round number between two ends, at most so many steps.

    Per cent are written without a point where there is room: a step is then at least one.

    >>> ticks(-0.1, 2.3, 5), ticks(0, 0.05, 9, is_share=True)[:3]
    ([0.0, 0.5, 1.0, 1.5, 2.0], [0.0, 0.01, 0.02])
    >>> ticks(0.002, 0.008, 3, is_share=True), ticks(0, 3e-13, 3)
    ([0.002, 0.004, 0.006, 0.008], [0.0, 1e-13, 2e-13, 3e-13])
    """
    if not high > low:
        return [low]
    least = (high - low) / max(most, 1)
    size = 10.0 ** math.floor(math.log10(least))
    step = next(part * size for part in STEPS if part * size >= least * (1 - 1e-9))
    if is_share and high - low >= 2 * WHOLE:
        step = max(step, WHOLE) if step != 0.025 else 0.05
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") + 0.0 for number in range(first, last + 1)]


def spelt(values: Sequence[float], is_share: bool = False) -> list[str]:
    r"""Numbers of an axis with as many digits as tell them apart.

    >>> spelt([-0.5, 0, 0.5]), spelt([0, 20_000]), spelt([0, 0.5], is_share=True)
    (['−0.5', '0.0', '0.5'], ['0', '20,000'], ['0\xa0%', '50\xa0%'])
    >>> spelt([0, 2e-8]), spelt([0, 3e9]), spelt([0.002, 0.004], is_share=True)
    (['0', '2e−08'], ['0', '3e+09'], ['0.2\xa0%', '0.4\xa0%'])
    """
    shown = [100 * value for value in values] if is_share else list(values)
    most = max((abs(value) for value in shown), default=0.0)
    digits = next((d for d in range(6) if all(_is_exact(value, d) for value in shown)), None)
    if is_share:
        names = [per_cent(value, digits or 0) for value in values]
    elif digits is None or most >= LARGE:
        names = [f"{value:.6g}" for value in values]
    else:
        names = [f"{value:,.{digits}f}" for value in values]
    return [name.replace("-", "−") for name in names]


def _is_exact(value: float, digits: int) -> bool:
    return abs(round(value, digits) - value) <= 1e-9 * max(abs(value), 1e-3)
