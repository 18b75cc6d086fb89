"""Statistics of the erasure study's models: from rows of documents to numbers with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from heedful.reproduction.ledger import NotMeasurable, Parts, Side
from heedful.reproduction.results import Skipped
from heedful.reproduction.view import View
from heedful.statistics import Estimate, draws
from heedful.statistics.draws import Draws
from heedful.statistics.shares import decided_share
from heedful.studies.erasure.examination import LEFT, Erased
from heedful.studies.erasure.models import MODELS
from heedful.studies.erasure.steps import erased

PerDocument = Callable[..., np.ndarray]
"""One number per document from a model's rows and what else it needs; nan leaves one out."""


def rows_of(view: View, model: str) -> list[Erased]:
    """One model's rows, for every seed."""
    table = view.of(erased, model)["rows"]
    if _SPLIT.get(id(table), (None,))[0] is not table:
        seeds = [Erased(own) for _, own in table.groupby("seed", sort=True)]
        _SPLIT[id(table)] = table, seeds
        if len(_SPLIT) > MOST_SPLIT:
            del _SPLIT[next(iter(_SPLIT))]
    return _SPLIT[id(table)][1]


MOST_SPLIT = 12
_SPLIT: dict[int, tuple[pd.DataFrame, list[Erased]]] = {}
"""The last tables, each with its seeds apart: every statistic asks for them again."""


def at_hand(view: View, models: Sequence[str] = MODELS) -> list[str]:
    """Those of the models that are trained, where not all are: a table has rows of these alone."""
    found, reason = [], ""
    for model in models:
        try:
            view.of(erased, model)
            found.append(model)
        except Skipped as skipped:
            reason = skipped.reason
    if not found:
        raise Skipped(reason)
    return found


def pooled(view: View, model: str) -> Erased:
    """One model's rows of all seeds, for counts and pictures."""
    return Erased(view.of(erased, model)["rows"])


def drawn(
    view: View,
    model: str,
    statistic: Callable[[Erased], Draws],
    least: float = -np.inf,
    most: float = np.inf,
) -> Draws:
    """A statistic of one architecture from the rows of each of its seeds, within its range."""
    found = [statistic(one) for one in rows_of(view, model)]
    return draws.over_trainings(found, f"{view.corpus} {model}", least, most)


def mean(view: View, model: str, of: PerDocument, *arguments: Any) -> Draws:
    """The mean of one number per document, `of(rows, *arguments)`."""
    seeds = rows_of(view, model)
    values = [of(one, *arguments).astype(np.float64) for one in seeds]
    if len({one.names for one in seeds}) == 1:
        found = draws.averages(values, seeds[0].names)
    else:
        found = [draws.average(v, one.names) for v, one in zip(values, seeds, strict=True)]
    return draws.over_trainings(found, f"{view.corpus} {model}", *_range(values))


def quantile(view: View, model: str, q: float, of: PerDocument, *arguments: Any) -> Draws:
    """A quantile of one number per document."""
    seeds = rows_of(view, model)
    values = [of(one, *arguments).astype(np.float64) for one in seeds]
    found = [draws.quantile(v, q, one.names) for v, one in zip(values, seeds, strict=True)]
    return draws.over_trainings(found, f"{view.corpus} {model}", *_range(values))


def _range(values: list[np.ndarray]) -> tuple[float, float]:
    """The least and the largest number, between which means and quantiles lie."""
    every = np.concatenate(values)
    every = every[~np.isnan(every)]
    return (float(every.min()), float(every.max())) if len(every) else (-np.inf, np.inf)


def median(view: View, model: str, of: PerDocument, *arguments: Any) -> Draws:
    """The median of one number per document."""
    return quantile(view, model, 0.5, of, *arguments)


def odds(view: View, model: str, first: PerDocument, second: PerDocument) -> Draws:
    """How many times as often one thing holds as another."""
    return drawn(view, model, lambda one: draws.odds(first(one), second(one), one.names), 0.0)


def wins(one: Erased, value: int, kept: np.ndarray | bool = True) -> np.ndarray:
    """Where the gradient is earlier (1) or attention is (-1), among the kept documents."""
    return np.asarray((one.earlier("gradient", "attention") == value) & kept)


def ratio(
    view: View,
    model: str,
    kept: Callable[[Erased], np.ndarray | bool] = lambda one: True,
    under: str = LEFT[0],
) -> Draws:
    """(gradient earlier) / (attention earlier), among the kept documents.

    `under` is what is left when nothing is left.
    """
    return odds(
        view,
        model,
        lambda one: wins(one.under(under), 1, kept(one)),
        lambda one: wins(one.under(under), -1, kept(one)),
    )


def measured(found: Estimate) -> Estimate | NotMeasurable:
    """The estimate; what has no value was not measured, which is more than undecided."""
    if math.isnan(found.value):
        return NotMeasurable("undefined" if found.n else "no document has what it speaks of")
    return found


def estimates(found: dict[str, Draws]) -> Parts:
    """Each statistic with its interval, as parts that must all hold."""
    return {name: measured(one.estimate()) for name, one in found.items()}


def share_of_models(several: Iterable[Draws], side: Side) -> Estimate | NotMeasurable:
    """The share of models on a side, from the least that is certain to the most that may be.

    Models are no sample: they are all there are. Each is decided by its own interval, over seeds
    and documents, so that the share is at least that of the models wholly on the side, and at most
    that of those not wholly off it. n counts models.
    """
    found = [one.estimate() for one in several if not math.isnan(one.value)]
    if not found:
        return NotMeasurable("no document has what it speaks of")
    words = [side.judge(one) for one in found]
    bare = [side.judge(replace(one, low=one.value, high=one.value)) for one in found]
    certain, likely = (list.count("confirmed") for list in (words, bare))
    return decided_share(certain, likely, len(words) - words.count("refuted"), len(words))
