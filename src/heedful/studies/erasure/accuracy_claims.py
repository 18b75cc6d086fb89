"""The erasure study's claim about accuracy, ERA-21: the conclusions do not depend on it."""

from __future__ import annotations

from itertools import product

import numpy as np

from heedful.reproduction.ledger import Parts, above, at_least, below
from heedful.reproduction.view import View, Views, alone
from heedful.statistics import draws
from heedful.statistics.draws import Draws
from heedful.studies.erasure.measures import estimates, mean
from heedful.studies.erasure.models import FAMILIES, MODELS, WITH_ENCODER
from heedful.studies.erasure.printed import PAPER
from heedful.studies.erasure.several_claims import gaps, ratio
from heedful.studies.erasure.steps import needs


def accuracy(view: View, model: str) -> Draws:
    """Test accuracy."""
    return mean(view, model, lambda one: one.right)


def accuracy_gaps(views: Views) -> dict[str, Draws]:
    """Accuracy of rnn - conv and conv - noenc in each family; the smallest over corpora."""
    return {
        f"{family}: {wide} - {narrow}": draws.smallest(
            draws.minus(accuracy(view, family + wide), accuracy(view, family + narrow))
            for view in views
        )
        for family, (wide, narrow) in product(FAMILIES, (("rnn", "conv"), ("conv", "noenc")))
    }


def accuracy_order(views: Views) -> Parts:
    """ERA-21: accuracy by encoder; ERA-8 and ERA-10 in the more and in the less accurate half."""
    cells = [(view, model) for view in views for model in WITH_ENCODER]
    accurate = [accuracy(view, model).value for view, model in cells]
    found = accuracy_gaps(views)
    for half, is_in in (("above", np.greater), ("below", np.less_equal)):
        chosen = [c for c, a in zip(cells, accurate, strict=True) if is_in(a, np.median(accurate))]
        worst = [draws.largest(gaps(view, model).values()) for view, model in chosen]
        found[f"ERA-8, accuracy {half} the median"] = draws.largest(worst)
        least = draws.smallest(ratio(view, model) for view, model in chosen)
        found[f"ERA-10, accuracy {half} the median"] = least
    return estimates(found)


GAPS = tuple(
    f"{family}: {wide} - {narrow}"
    for family, (wide, narrow) in product(FAMILIES, (("rnn", "conv"), ("conv", "noenc")))
)
HALVES = ("above", "below")

CLAIMS = (
    PAPER.claim(
        "ERA-21",
        alone(accuracy_order),
        needs(*MODELS),
        measure_all=accuracy_order,
        side={name: above(0) for name in GAPS}
        | {f"ERA-8, accuracy {half} the median": below(0) for half in HALVES}
        | {f"ERA-10, accuracy {half} the median": at_least(1.6) for half in HALVES},
    ),
)
