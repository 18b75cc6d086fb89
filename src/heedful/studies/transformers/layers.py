"""Attention of every layer, not of the one row that the decision is read from."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd

from heedful.audits.examination import Portion, examine
from heedful.audits.substitution import rows as substituted
from heedful.corpora.samples import sampled
from heedful.models.huggingface import PretrainedClassifier
from heedful.report.panels import bars
from heedful.reproduction.ledger import Measured
from heedful.reproduction.measures import trained_average
from heedful.reproduction.results import Results, Step
from heedful.reproduction.study import Made, Plan
from heedful.reproduction.tables import row, row_by_row
from heedful.reproduction.view import View, Views
from heedful.runs.steps import TABLE
from heedful.studies.transformers import steps

DOCUMENTS = 200
"""Test documents whose attention is edited layer by layer."""
DRAWS = 20
"""Shuffles of each of them."""
POOLED, ALL = "pooled", "all"


def layered(plan: Plan, name: str, strength: float, seed: int) -> Step[pd.DataFrame]:
    """Decisions of some test documents with the attention edited at each site, one after another:
    the pooled row, every layer with all its rows, all layers at once."""
    model, text = steps.tuned(plan, name, strength, seed), steps.pieces(plan, name)
    documents = min(DOCUMENTS, steps.AUDITED[name])

    def compute(results: Results) -> pd.DataFrame:
        opened, test = results[model].to(results.device), results[text].splits["test"]
        among = {"substitution": sampled(test.names, documents, 0)}
        found = []
        for site in sites_of(opened):
            read = PretrainedClassifier(
                opened.model, opened.subwords, opened.classes, site=site,
                max_pieces=opened.max_pieces,
            ).eval()  # fmt: skip
            table = examine(
                read, test, {"substitution": partial(substituted, draws=DRAWS)}, ("random",),
                device=results.device, among=among, at_once=Portion(tokens=steps.TOKENS),
            )["substitution"]  # fmt: skip
            flat = (table["uniform"] != table["decision"]).astype(float)
            kept = table[["instance", "permuted_changes"]]
            found.append(kept.assign(site=site, flat=flat))
        return pd.concat(found, ignore_index=True)

    inputs = {"documents": documents, "draws": DRAWS}
    return Step(model.beside("layers"), compute, inputs, TABLE, (text, model))


def sites_of(model: PretrainedClassifier) -> tuple[str, ...]:
    """The pooled row, each layer, all layers."""
    return (POOLED, *(f"layer:{k}" for k in range(len(model.layout.layers))), ALL)


def needs_layers(plan: Plan, name: str) -> list[Step[Any]]:
    """The plain models' layers, and those of the models tied with strength 1."""
    kinds = (0.0, steps.TIED_AT)
    return [layered(plan, name, strength, seed) for strength in kinds for seed in plan.seeds]


def _at(view: View, strength: float, site: str) -> list[pd.DataFrame]:
    tables = [view.of(layered, strength, seed) for seed in view.seeds]
    return [table[table["site"] == site] for table in tables]


def by_layer(views: Views) -> Made:
    """Decisions changed by flat and by shuffled attention at every site."""

    def of(view: View) -> Iterator[dict[str, Any]]:
        for strength in (0.0, steps.TIED_AT):
            sites = dict.fromkeys(view.of(layered, strength, view.seeds[0])["site"])
            for site in sites:
                tables = _at(view, strength, site)
                keys = {"corpus": view.corpus, "δ": strength, "site": site}
                keys |= {"model": f"δ = {strength:g}"}
                changed = trained_average(tables, "permuted_changes")
                yield row(
                    keys, **{"changed by flat": trained_average(tables, "flat")},
                    **{"changed by shuffled": changed},
                )  # fmt: skip

    table = views.table(of)
    plain = table[(table["δ"] == 0) & table["site"].isin([POOLED, ALL])]
    said = row_by_row(plain, "{corpus}, {site}: {changed by shuffled:.3f}")
    draw = partial(bars, x="site", y="changed by shuffled", hue="model", panel="corpus")
    return Made(table, draw, f"Shares of decisions that shuffled attention changes: {said}.")


def shuffled(view: View, strength: float, site: str) -> Measured:
    """The share of decisions that shuffled attention changes there."""
    return trained_average(_at(view, strength, site), "permuted_changes")
