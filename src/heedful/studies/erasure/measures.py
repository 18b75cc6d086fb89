"""Statistics of the erasure study's models: from rows of documents to numbers with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from heedful.reproduction.ledger import NotMeasurable, Parts
from heedful.reproduction.view import View
from heedful.statistics import Estimate, draws
from heedful.statistics.draws import Draws
from heedful.studies.erasure.examination import Erased
from heedful.studies.erasure.steps import erased

PerDocument = Callable[..., np.ndarray]
"""One number per document from a model's rows and what else it needs; nan leaves one out."""


def rows_of(view: View, model: str) -> list[Erased]:
    """One model's rows, for every seed."""
    return [Erased(view.of(erased, model, seed)) for seed in view.seeds]


def drawn(view: View, model: str, statistic: Callable[[Erased], Draws]) -> Draws:
    """A statistic of one architecture from the rows of each of its seeds."""
    return draws.over_seeds([statistic(one) for one in rows_of(view, model)])


def mean(view: View, model: str, of: PerDocument, *arguments: Any) -> Draws:
    """The mean of one number per document, `of(rows, *arguments)`."""
    return drawn(view, model, lambda one: draws.average(of(one, *arguments), one.names))


def quantile(view: View, model: str, q: float, of: PerDocument, *arguments: Any) -> Draws:
    """A quantile of one number per document."""
    return drawn(view, model, lambda one: draws.quantile(of(one, *arguments), q, one.names))


def median(view: View, model: str, of: PerDocument, *arguments: Any) -> Draws:
    """The median of one number per document."""
    return quantile(view, model, 0.5, of, *arguments)


def odds(view: View, model: str, first: PerDocument, second: PerDocument) -> Draws:
    """How many times as often one thing holds as another."""
    return drawn(view, model, lambda one: draws.odds(first(one), second(one), one.names))


def wins(one: Erased, value: int, kept: np.ndarray | bool = True) -> np.ndarray:
    """Where the gradient is earlier (1) or attention is (-1), among the kept documents."""
    return np.asarray((one.earlier("gradient", "attention") == value) & kept)


def ratio(
    view: View, model: str, kept: Callable[[Erased], np.ndarray | bool] = lambda one: True
) -> Draws:
    """(gradient earlier) / (attention earlier), among the kept documents."""
    return odds(
        view,
        model,
        lambda one: wins(one, 1, kept(one)),
        lambda one: wins(one, -1, kept(one)),
    )


def measured(found: Estimate) -> Estimate | NotMeasurable:
    """The estimate; what has no value was not measured, which is more than undecided."""
    if math.isnan(found.value):
        return NotMeasurable("undefined" if found.n else "no document has what it speaks of")
    return found


def estimates(found: dict[str, Draws]) -> Parts:
    """Each statistic with its interval, as parts that must all hold."""
    return {name: measured(one.estimate()) for name, one in found.items()}


def share_of_models(
    several: Iterable[Draws], holds: Callable[[np.ndarray], np.ndarray]
) -> Estimate | NotMeasurable:
    """The share of models that satisfy something, with its interval over documents.

    Few models are no small sample: they are all there are, and every replicate resamples the
    documents of each. So it is the number of documents that says whether an interval without width
    may be believed; n counts models.
    """
    found = [one for one in several if not math.isnan(one.value)]
    share = draws.holding(found, holds)
    documents = min((one.n for one in found), default=0)
    return measured(replace(share._replace(n=documents).estimate(), n=share.n))
