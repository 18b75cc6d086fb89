"""How well one series follows another in shape, height and spread."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def ccc(x: ArrayLike, y: ArrayLike) -> float:
    """Lin's concordance correlation coefficient, with population moments.

        2 cov(x, y) / (σ²_x + σ²_y + (μ_x - μ_y)²)

    1 only where both are equal everywhere; 0 where one of two different series is constant; nan
    where both are the same constant, or there is nothing.

    >>> ccc([1, 2, 3], [1, 2, 3]), ccc([1, 2, 3], [3, 2, 1])
    (1.0, -1.0)
    """
    first, second = (np.asarray(series, dtype=np.float64) for series in (x, y))
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(
            f"two series of one length are compared, got {first.shape}, {second.shape}"
        )
    if not len(first):
        return float("nan")
    a, b = first - first.mean(), second - second.mean()
    apart = float((a * a).mean() + (b * b).mean() + (first.mean() - second.mean()) ** 2)
    return 2 * float((a * b).mean()) / apart if apart > 0 else float("nan")
