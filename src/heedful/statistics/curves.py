"""Curves given by a few points, and the distance between two of them."""

import numpy as np
from jaxtyping import Float64


def mean_gap(
    x: Float64[np.ndarray, "curve point"],
    y: Float64[np.ndarray, "curve point"],
    other_x: Float64[np.ndarray, "curve other"],
    other_y: Float64[np.ndarray, "curve other"],
    grid: int = 101,
) -> Float64[np.ndarray, " curve"]:
    """Mean height of the first curve above the second over the x that both have.

    The area between the curves divided by the width of their common range, so that ranges of
    different width compare. Points are joined in the order of x; nan where no x is common.
    """
    gaps = np.full(len(x), np.nan)
    for row in range(len(x)):
        low = max(x[row].min(), other_x[row].min())
        high = min(x[row].max(), other_x[row].max())
        if high > low:
            places = np.linspace(low, high, grid)
            height = _joined(x[row], y[row], places) - _joined(other_x[row], other_y[row], places)
            gaps[row] = np.trapezoid(height, places) / (high - low)
    return gaps


def _joined(
    x: Float64[np.ndarray, " point"],
    y: Float64[np.ndarray, " point"],
    places: Float64[np.ndarray, " place"],
) -> Float64[np.ndarray, " place"]:
    order = np.argsort(x, kind="stable")
    return np.asarray(np.interp(places, x[order], y[order]))
