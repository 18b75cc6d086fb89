"""Accuracy and F1 of many predictions under many weightings at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64, Int, Shaped

from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import bootstraps, proportion
from heedful.statistics.weighted import Weights


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of each prediction (a draw) under each weighting of the instances (a replicate)."""

    accuracy: Float64[np.ndarray, "replicate draw"]
    """Weighted share of right predictions; nan where no instance has weight."""
    f1: Float64[np.ndarray, "replicate draw class"]
    """F1 of each class; nan where the class is neither present nor predicted."""

    @property
    def macro_f1(self) -> Float64[np.ndarray, "replicate draw"]:
        """Unweighted mean of the F1 of the classes that have one; nan where none has."""
        return mean_of_defined(self.f1, -1)


def classification_scores(
    predicted: Int[np.ndarray, "draw instance"],
    gold: Int[np.ndarray, " instance"],
    classes: int,
    weights: Shaped[np.ndarray, "replicate instance"] | None = None,
) -> Scores:
    """Accuracy and F1 of every draw under every weighting; without weights, each instance once.

    F1 of class c = 2 TP / (predicted c + gold c), undefined where that is 0 / 0. Instances of
    unknown class (gold −1) do not count. The work is one matrix product per class, never a
    [replicate draw instance] array.
    """
    if weights is None:
        weights = np.ones((1, len(gold)))
    weights = weights.astype(np.float64) * (gold >= 0)
    right = weights @ (predicted == gold).astype(np.float64).T
    f1 = np.full((*right.shape, classes), np.nan)
    for c in range(classes):
        is_gold, is_predicted = gold == c, predicted == c
        both = weights @ (is_predicted & is_gold).astype(np.float64).T
        either = weights @ is_predicted.astype(np.float64).T + (weights @ is_gold)[:, None]
        np.divide(2 * both, either, out=f1[..., c], where=either > 0)
    total = weights.sum(-1, keepdims=True)
    accuracy = np.divide(right, total, out=np.full_like(right, np.nan), where=total > 0)
    return Scores(accuracy, f1)


def score_estimates(
    predicted: Int[np.ndarray, "draw instance"],
    gold: Int[np.ndarray, " instance"],
    classes: Sequence[str],
    names: Sequence[str],
    seed: int = 0,
    replicates: int = 1000,
) -> dict[str, Estimate]:
    """`accuracy`, `macro_f1` and `f1:CLASS` for each class, averaged over draws, with intervals.

    The accuracy of a single draw is a proportion (Wilson); all else is a BCa bootstrap over
    instances. Instances of unknown class are left out and counted. The F1 of a class that a draw
    neither holds nor predicts is undefined: the mean is over the other draws, and over the other
    classes; where no draw has it, F1 is nan and all instances count as undefined.
    """
    return _estimates([(1.0, predicted)], gold, classes, names, seed, replicates)


def score_differences(
    first: Int[np.ndarray, "draw instance"],
    second: Int[np.ndarray, "other instance"],
    gold: Int[np.ndarray, " instance"],
    classes: Sequence[str],
    names: Sequence[str],
    seed: int = 0,
    replicates: int = 1000,
) -> dict[str, Estimate]:
    """Scores of `first` minus those of `second` on the same instances, with paired intervals."""
    return _estimates([(1.0, first), (-1.0, second)], gold, classes, names, seed, replicates)


def _estimates(
    signed: list[tuple[float, Int[np.ndarray, "_ instance"]]],
    gold: Int[np.ndarray, " instance"],
    classes: Sequence[str],
    names: Sequence[str],
    seed: int,
    replicates: int,
) -> dict[str, Estimate]:
    """Signed sums of scores; one pass over the resamples serves every score."""
    known = gold >= 0
    kept = [name for name, is_known in zip(names, known, strict=True) if is_known]
    gold = gold[known]
    signed = [(sign, predicted[:, known]) for sign, predicted in signed]
    labels = ["accuracy", "macro_f1", *(f"f1:{name}" for name in classes)]

    def table(weights: Weights) -> Float64[np.ndarray, "replicate score"]:
        total = np.zeros((len(weights), len(labels)))
        for sign, predicted in signed:
            scores = classification_scores(predicted, gold, len(classes), weights)
            columns = [scores.accuracy[..., None], scores.macro_f1[..., None], scores.f1]
            total += sign * mean_of_defined(np.concatenate(columns, axis=-1), 1)
        return total

    estimates = bootstraps(table, kept, seed, replicates, "bca")
    if len(signed) == 1 and len(signed[0][1]) == 1:
        estimates[0] = proportion(int((signed[0][1][0] == gold).sum()), len(gold))
    found = {}
    for label, estimate in zip(labels, estimates, strict=True):
        used = 0 if np.isnan(estimate.value) else len(kept)
        found[label] = replace(estimate, n=used, undefined=len(known) - used)
    return found


def mean_of_defined(values: Float64[np.ndarray, "..."], axis: int) -> Float64[np.ndarray, "..."]:
    """The mean over an axis of the values that are not nan; nan where all are."""
    is_defined = ~np.isnan(values)
    total = np.where(is_defined, values, 0.0).sum(axis)
    count = is_defined.sum(axis)
    return np.asarray(np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0))
