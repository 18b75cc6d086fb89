"""The erasure study's claim about accuracy, ERA-21: the conclusions do not depend on it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from heedful.reproduction.ledger import Parts, above, at_least, below
from heedful.reproduction.results import Results
from heedful.reproduction.study import Claim, Plan
from heedful.statistics import draws
from heedful.statistics.draws import Draws
from heedful.studies.erasure.models import FAMILIES, MODELS, WITH_ENCODER, View, needs, views
from heedful.studies.erasure.several_claims import gaps, listed, ratio
from heedful.studies.erasure.single_claims import estimates


def accuracy(view: View, model: str) -> Draws:
    """Test accuracy."""
    return view.mean(model, lambda one: one.right)


def accuracy_gaps(results: Results, plan: Plan, corpora: Sequence[str] | str) -> dict[str, Draws]:
    """Accuracy of rnn - conv and conv - noenc in each family; the smallest over corpora."""
    at_hand = views(results, plan, listed(corpora))
    return {
        f"{family}: {wide} - {narrow}": draws.smallest(
            draws.minus(accuracy(view, family + wide), accuracy(view, family + narrow))
            for view in at_hand
        )
        for family, (wide, narrow) in product(FAMILIES, (("rnn", "conv"), ("conv", "noenc")))
    }


def accuracy_order(results: Results, plan: Plan, corpora: Sequence[str] | str) -> Parts:
    """ERA-21: accuracy by encoder; ERA-8 and ERA-10 in the more and in the less accurate half."""
    at_hand = views(results, plan, listed(corpora))
    cells = [(view, model) for view in at_hand for model in WITH_ENCODER]
    accurate = [accuracy(view, model).value for view, model in cells]
    found = accuracy_gaps(results, plan, corpora)
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
    Claim(
        "ERA-21",
        "Accuracy falls with less contextualisation, but the conclusions do not depend on it.",
        "A.1, Table 3",
        "accuracy rnn - conv and conv - noenc > 0 (over all corpora: the smallest); worst "
        "difference of ERA-8 < 0 and least ratio of ERA-10 ≥ 1.6 in both halves by accuracy",
        "holds in 7 of 8 rows of Table 3 read by family",
        {name: above(0) for name in GAPS}
        | {f"ERA-8, accuracy {half} the median": below(0) for half in HALVES}
        | {f"ERA-10, accuracy {half} the median": at_least(1.6) for half in HALVES},
        accuracy_order,
        needs(*MODELS),
        measure_all=accuracy_order,
    ),
)
