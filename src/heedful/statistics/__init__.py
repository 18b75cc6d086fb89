"""Intervals, resampling, divergences, agreement and scores: where numbers get their uncertainty."""

from heedful.statistics.agreement import (
    average_precision,
    kendall_tau_b,
    mass_on,
    token_f1,
    top_overlap,
    top_units,
)
from heedful.statistics.divergence import entropy, js_divergence, total_variation
from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import (
    Moments,
    bootstrap,
    bootstraps,
    deviation,
    mean,
    means,
    median,
    moments,
    over_seeds,
    paired,
    pooled,
    proportion,
    quantile,
    sign_test,
    widened,
)
from heedful.statistics.prediction import new_draw
from heedful.statistics.resampling import resampling_weights
from heedful.statistics.scores import (
    Scores,
    classification_scores,
    score_differences,
    score_estimates,
)

__all__ = [
    "Estimate",
    "Moments",
    "Scores",
    "average_precision",
    "bootstrap",
    "bootstraps",
    "classification_scores",
    "deviation",
    "entropy",
    "js_divergence",
    "kendall_tau_b",
    "mass_on",
    "mean",
    "means",
    "median",
    "moments",
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
    "token_f1",
    "top_overlap",
    "top_units",
    "total_variation",
    "widened",
]
