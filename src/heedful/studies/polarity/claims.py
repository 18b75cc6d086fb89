"""The claims of the polarity study, and what its checks POL-A1 to POL-A3 measure.

See docs/studies/polarity.md, "Claims".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from heedful.reproduction.ledger import Parts, each_unchanged
from heedful.reproduction.results import Step
from heedful.reproduction.study import Plan
from heedful.reproduction.view import View
from heedful.statistics import Estimate
from heedful.studies.polarity import corpora, measures, steps
from heedful.studies.polarity import flow_measures as flows
from heedful.studies.polarity.figures import needs_grid, needs_path
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
from heedful.studies.polarity.printed import PAPER
from heedful.studies.polarity.synthetic import needs_balance

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


SST = ("sst", "planted")
"""The paper's corpus, and what stands in for it at smoke scale."""
DP = needs_grid(["dp"])
PATH = needs_path("dp")


def _seeds_of(*models: str) -> Callable[[Plan, str], int]:
    """How many trainings of each kind a claim about these models rests on."""
    return lambda plan, corpus: min(len(steps.seeds_of(plan, corpus, model)) for model in models)


def _path_seeds(plan: Plan, corpus: str) -> int:
    return len(steps.path_seeds(plan, corpus))


def _fewer(plan: Plan, corpus: str) -> int:
    return len(steps.fewer(plan, corpus))


DP_SEEDS = _seeds_of("dp")


def _penalty_needs(plan: Plan, corpus: str) -> list[Step[Any]]:
    if corpus == "data1":
        return list(PATH(plan, corpus))
    return list(needs_grid(["dp"], steps.penalised)(plan, corpus))


def _penalty(view: View) -> Any:
    measure = measures.penalty_closes_made if view.corpus == "data1" else measures.penalty_closes
    return measure(view)


def _alignment_needs(plan: Plan, corpus: str) -> list[Step[Any]]:
    grid = [] if corpus == "data1" else list(DP(plan, corpus))
    return grid + (list(PATH(plan, corpus)) if corpus in (*SST, "data1") else [])


def _alignment(view: View) -> Any:
    found = Parts()
    if view.corpus != "data1":
        found |= measures.follows_alignment(view)
    if view.corpus in (*SST, "data1"):
        found |= flows.alignment_term(view)
    return found


_claim = partial(PAPER.claim, seeds=DP_SEEDS)
CLAIMS = (
    _claim("POL-1", measures.right_signs, DP, corpora.BINARY),
    _claim("POL-2", measures.neutral_small, DP, corpora.BINARY),
    _claim("POL-3", measures.above_neutral, DP, corpora.BINARY),
    _claim("POL-4", measures.small_scale_hurts, DP, corpora.TEXTS),
    _claim(
        "POL-5",
        measures.large_scale_is_free,
        needs_grid(steps.MODELS),
        corpora.TEXTS,
        seeds=_seeds_of(*steps.MODELS),
    ),
    _claim("POL-6", measures.is_mean_pooling, DP, corpora.TEXTS),
    _claim(
        "POL-7",
        measures.scale_is_crucial,
        needs_grid(["dp-l", "dp-a", "ad"]),
        corpora.TEXTS,
        seeds=_seeds_of("dp-l", "dp-a", "ad"),
    ),
    _claim("POL-8", measures.unreadable, DP, SST),
    _claim("POL-9", measures.scores_shrink, DP, SST),
    _claim("POL-10", _penalty, _penalty_needs, (*SST, "data1")),
    _claim("POL-11", measures.above_neutral, DP, corpora.SEVERAL),
    _claim(
        "POL-12",
        partial(measures.same_patterns, model="ad"),
        needs_grid(["ad"]),
        ("sst", "imdb", "planted"),
        seeds=_seeds_of("ad"),
    ),
    _claim("POL-13", measures.weights_above, DP, SST),
    _claim("POL-14", measures.same_order, DP, SST),
    _claim("POL-15", measures.short_texts, DP, SST),
    _claim("POL-16", flows.signs, PATH, ("data1", *SST), seeds=_path_seeds),
    _claim("POL-17", flows.query_term, PATH, ("data1", *SST), seeds=_path_seeds),
    _claim(
        "POL-18",
        _alignment,
        _alignment_needs,
        (*corpora.BINARY, "data1"),
    ),
    _claim("POL-19", flows.embeddings_align, PATH, ("data1",)),
    PAPER.claim(
        "POL-20",
        None,
        needs_balance,
        tuple(corpora.RATIOS),
        measure_all=flows.imbalance_decides,
    ),
    _claim("POL-21", measures.every_seed, DP, corpora.BINARY),
    _claim("POL-A1", not_frequency, DP, corpora.BINARY),
    _claim("POL-A2", classes_matter_not, DP, corpora.BINARY),
    _claim(
        "POL-A3",
        unseen_words,
        needs_grid(["dp"], steps.train_only),
        corpora.TEXTS,
        seeds=_fewer,
    ),
    PAPER.claim(
        "POL-A4",
        flows.formulas,
        lambda plan, corpus: [steps.words(plan, corpus), steps.identities(plan, corpus)],
        ("data1", "three"),
    ),
)
