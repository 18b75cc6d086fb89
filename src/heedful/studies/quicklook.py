"""A quick look: does attention tell what decides, without an encoder and with one?

Not a paper: the smallest study on the engine, on planted reviews in two and three classes. One
table, one figure, two claims.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from heedful.audits.erasure import five_numbers
from heedful.corpora import EncodedCorpus, planted
from heedful.reproduction import stages
from heedful.reproduction.ledger import Parts, above, below
from heedful.reproduction.measures import average, contrast, difference, per_instance
from heedful.reproduction.results import Step
from heedful.reproduction.study import Artifact, Claim, Made, Plan, Scale, Source, Study
from heedful.reproduction.tables import row
from heedful.reproduction.view import View, Views
from heedful.statistics import Estimate
from heedful.statistics.estimates import per_cent
from heedful.training import TrainConfig

if TYPE_CHECKING:
    from heedful.corpora import Corpus

RECIPES = ("none+additive", "bilstm+additive")
RANKINGS = ("random", "attention", "gradient")
SIZES: Mapping[str, Mapping[str, int]] = {
    "smoke": {"train": 800, "dev": 80, "test": 160},
    "paper": {"train": 4_000, "dev": 500, "test": 2_000},
}
TRAIN: Mapping[Scale, TrainConfig] = {
    "smoke": TrainConfig(epochs=6, learning_rate=5e-3),
    "paper": TrainConfig(epochs=12, learning_rate=1e-3),
}

Rows = Mapping[str, pd.DataFrame]


def _load(classes: int, plan: Plan) -> Corpus:
    return planted(classes, "short" if plan.scale == "smoke" else "long", sizes=SIZES[plan.scale])


def _text(plan: Plan, corpus: str) -> Step[EncodedCorpus]:
    return stages.prepared(plan, corpus)


def _rows(plan: Plan, corpus: str, recipe: str, seed: int) -> Step[Rows]:
    text = _text(plan, corpus)
    width = plan.pick(32, 128)
    model = stages.trained(
        plan, text, recipe, seed, TRAIN[plan.scale], embedding_dim=width, width=width
    )
    return stages.audited(plan, text, model, ("erasure", "substitution"), RANKINGS)


def _needs(plan: Plan, corpus: str) -> list[Step[Rows]]:
    return [_rows(plan, corpus, recipe, seed) for recipe in RECIPES for seed in plan.seeds]


def _tables(view: View, recipe: str, audit: str) -> list[pd.DataFrame]:
    """The rows of one audit for every seed; a decision that never flips counts as fraction 1."""
    tables = [view.of(_rows, recipe, seed)[audit] for seed in view.seeds]
    if audit == "erasure":
        tables = [table.assign(fraction=table["fraction"].fillna(1.0)) for table in tables]
    return tables


def _table(views: Views) -> Made:
    def of(view: View) -> Iterator[dict[str, Any]]:
        for recipe in RECIPES:
            erased = _tables(view, recipe, "erasure")
            changed = _tables(view, recipe, "substitution")
            right = [t.assign(right=t["decision"] == t["label"]) for t in changed]
            measured: dict[str, Estimate] = {
                "accuracy": average(right, "right"),
                "changed by shuffling": average(changed, "permuted_changes"),
            }
            measured |= {
                f"removed by {ranking}": average(erased, "fraction", {"ranking": ranking})
                for ranking in RANKINGS
            }
            yield row({"corpus": view.corpus, "model": recipe}, **measured)

    table = views.table(of)
    return Made(table, sentence=_said(table))


def _said(table: pd.DataFrame) -> str:
    parts = [
        f"{r['model']} on {r['corpus']}: {per_cent(r['removed by attention'])} of a text removed "
        f"by attention, {per_cent(r['removed by random'])} in random order, before the "
        "decision flips"
        for _, r in table.iterrows()
    ]
    return "; ".join(parts) + "." if parts else ""


def _figure(views: Views) -> Made:
    from heedful.report.panels import boxes

    def of(view: View) -> Iterator[dict[str, Any]]:
        for recipe in RECIPES:
            tables = _tables(view, recipe, "erasure")
            for ranking in RANKINGS:
                values = per_instance(tables, "fraction", {"ranking": ranking})
                keys = {"corpus": view.corpus, "model": recipe, "ranking": ranking}
                yield keys | five_numbers(values.to_numpy())

    table = views.table(of)
    draw = partial(boxes, x="model", hue="ranking", panel="corpus", label="fraction removed")
    return Made(table, draw, "How much of a text each ranking removes before the decision flips.")


def _attention_before_random(view: View) -> Estimate:
    tables = _tables(view, "none+additive", "erasure")
    return difference(tables, "fraction", {"ranking": "attention"}, {"ranking": "random"})


def _permuting_matters_less(view: View) -> Parts:
    without, with_encoder = (_tables(view, recipe, "substitution") for recipe in RECIPES)
    return {
        "changed without encoder": average(without, "permuted_changes"),
        "without minus with": contrast(without, with_encoder, "permuted_changes"),
    }


STUDY = Study(
    name="quicklook",
    title="A quick look: attention with and without an encoder",
    reference="Not a paper: two questions of the studies, asked on planted reviews.",
    sources=(
        Source("planted", "planted reviews, 2 classes", partial(_load, 2), inputs=SIZES),
        Source("planted-3", "planted reviews, 3 classes", partial(_load, 3), inputs=SIZES),
    ),
    seeds={"smoke": 2, "paper": 5},
    artifacts=(
        Artifact(
            "T1",
            "Accuracy, shuffled attention and the fraction removed before the decision flips",
            "ours",
            "table",
            _table,
            _needs,
        ),
        Artifact(
            "F1", "Fraction removed before the flip, by ranking", "ours", "figure", _figure, _needs
        ),
    ),
    claims=(
        Claim(
            "QL-1",
            "Without an encoder, erasing by attention flips the decision earlier than at random.",
            "erasure study, 5.6",
            "fraction removed, attention minus random, no encoder",
            "picture",
            below(0.0),
            _attention_before_random,
            _needs,
            over="all",
        ),
        Claim(
            "QL-2",
            "Shuffled attention changes decisions without an encoder, more than with a BiLSTM.",
            "faithful study, 4.1",
            "share of decisions that shuffled attention changes",
            "not given",
            {"changed without encoder": above(0.0), "without minus with": above(0.0)},
            _permuting_matters_less,
            _needs,
        ),
    ),
    deviations=lambda plan: ("No paper has these numbers; there is nothing to deviate from.",),
)
