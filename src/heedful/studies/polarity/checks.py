"""Checks of the polarity study, POL-A1 to POL-A3: is an effect what it seems?"""

from __future__ import annotations

import numpy as np

from heedful.reproduction.ledger import Parts, each_unchanged
from heedful.reproduction.view import View
from heedful.statistics import Estimate
from heedful.studies.polarity import steps
from heedful.studies.polarity.measures import (
    ScoredRun,
    accuracies,
    neutral_small,
    occurrences,
    points,
    right_signs,
    role_of,
    runs_of,
    separation,
    shares,
    weight_runs,
)

RULES = ("strict", "documents")
"""The other two ways to class words (POL-A2)."""


def not_frequency(view: View) -> Parts:
    """POL-A1: POL-2, POL-3 and POL-13 with frequent neutral words, and in pairs as frequent."""
    names = steps.class_names(view)
    kinds = {"score": ("attention", runs_of(view))}
    if view.corpus in ("sst", "planted"):
        kinds["weight"] = "weight", weight_runs(view)
    found = Parts({"neutral over class words": neutral_small(view, least=5)})
    for kind, (column, runs) in kinds.items():
        for name in names[::-1]:
            title = f"{kind} of {role_of(name, names)}"
            frequent = [separation(run, name, column, neutral=5).value for run in runs]
            found[f"{title}, frequent neutral"] = shares(frequent)
            found[f"{title}, pairs"] = shares([_paired(run, name, column) for run in runs])
    return found


def _paired(run: ScoredRun, name: str, column: str) -> float:
    """How often a class word scores above the neutral word nearest to it in frequency."""
    first, second = run.of(name), run.of("neutral")
    if not len(first) or not len(second):
        return float("nan")
    order = np.argsort(occurrences(second).to_numpy(), kind="stable")
    counts, scores = occurrences(second).to_numpy()[order], second[column].to_numpy()[order]
    wanted = occurrences(first).to_numpy()
    above = np.clip(np.searchsorted(counts, wanted), 1, len(counts) - 1) if len(counts) > 1 else 0
    nearer = np.abs(counts[above - 1] - wanted) <= np.abs(counts[above] - wanted)
    partner = scores[np.where(nearer, above - 1, above)]
    own = first[column].to_numpy()
    return float(np.mean((own > partner) + 0.5 * (own == partner)))


def classes_matter_not(view: View) -> Parts:
    """POL-A2: POL-1 and POL-3 with γ = ±1 left out and with documents counted."""

    def measured(rule: str) -> Parts:
        signs = right_signs(view, rule=rule)
        found = Parts({f"sign of {name}": part for name, part in signs.items()})
        names = steps.class_names(view)
        for name in names[::-1]:
            runs = runs_of(view)
            values = [separation(run, name, rule=rule).value for run in runs]
            found[f"AUC of {role_of(name, names)}"] = shares(values)
        return found

    before, found = measured("kind"), Parts()
    for rule in RULES:
        found |= each_unchanged(before, measured(rule), f", {rule}")
    return found


def unseen_words(view: View) -> Estimate:
    """POL-A3: accuracy with training words only minus the published recipe, in points."""
    other = view.of(steps.train_only)["runs"].set_index("seed")["accuracy"]
    return points(100 * other - accuracies(view, "dp")["10"])
