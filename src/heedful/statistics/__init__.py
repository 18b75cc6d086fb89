"""Intervals, resampling and scores: where numbers get their uncertainty.

What is computed on tensors, `agreement` and `divergence`, is imported by its own name.
"""

from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import (
    bootstrap,
    bootstraps,
    mean,
    means,
    paired,
    pooled,
    proportion,
    quantile,
    sign_test,
)
from heedful.statistics.resampling import resampling_weights
from heedful.statistics.scores import classification_scores, score_differences, score_estimates
from heedful.statistics.seeds import deviation, new_draw, over_seeds, widened

__all__ = [
    "Estimate",
    "bootstrap",
    "bootstraps",
    "classification_scores",
    "deviation",
    "mean",
    "means",
    "new_draw",
    "over_seeds",
    "paired",
    "pooled",
    "proportion",
    "quantile",
    "resampling_weights",
    "score_differences",
    "score_estimates",
    "sign_test",
    "widened",
]
