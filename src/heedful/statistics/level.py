"""How sure an interval is meant to be: 95 %, unless it is one of several looks at growing data.

Whoever looks at the same documents again and again, and stops when an interval says enough, is
misled more often than one in twenty times by 95 % intervals. With the 5 % shared out among all the
looks there may be (Bonferroni), the intervals of the look that was stopped at miss the truth in one
of twenty audits at most, however the stop was chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from jaxtyping import Float64
from scipy.special import ndtri

MISSED = 0.05
_looks: ContextVar[int] = ContextVar("looks", default=1)


@contextmanager
def among_looks(count: int) -> Iterator[None]:
    """Inside, an interval is one of so many that the 5 % are shared out among.

    >>> with among_looks(4):
    ...     tails().tolist()
    [0.00625, 0.99375]
    """
    token = _looks.set(count)
    try:
        yield
    finally:
        _looks.reset(token)


def tails() -> Float64[np.ndarray, "2"]:
    """The shares of a distribution below the lower and below the upper end of an interval."""
    outside = MISSED / _looks.get() / 2
    return np.array([outside, 1 - outside])


def deviations() -> float:
    """Half the width of a normal interval, in standard errors."""
    return float(ndtri(tails()[1]))
