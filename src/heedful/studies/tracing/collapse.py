"""Whether a trace still knows where it began, and how alike the layers make the states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd

from heedful.report.panels import lines
from heedful.reproduction.ledger import Parts
from heedful.reproduction.results import Step
from heedful.reproduction.study import Made, Plan
from heedful.reproduction.tables import row
from heedful.reproduction.view import View, Views
from heedful.statistics import draws, over_seeds
from heedful.statistics.draws import Draws
from heedful.statistics.estimates import Estimate
from heedful.studies.tracing import corpora, models
from heedful.studies.tracing.printed import PAPER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FULL = "full-norm"
QUANTITIES = {
    "contraction": "δ of a layer",
    "chain": "δ from the top down",
    "cosine": "cosine of states above a layer",
    "apart": "LAT and an even start",
}
"""Columns of `documents`, by how they begin, and what a panel calls them."""


def _documents(view: View, variant: str, seed: int) -> pd.DataFrame:
    return view.of(models.decisions, variant, seed)["documents"]


def _heights(table: pd.DataFrame, kind: str) -> list[int]:
    return sorted(int(c.split(" ")[1]) for c in map(str, table) if c.startswith(f"{kind} "))


def collapse(views: Views) -> Made:
    """X-C: by layer, what two starts can differ by, and the mean cosine of two words' states."""

    def one(view: View) -> Iterator[dict[str, Any]]:
        for kind, panel in QUANTITIES.items():
            for variant in models.COMPARED:
                tables = [_documents(view, variant, seed) for seed in view.seeds]
                for layer in _heights(tables[0], kind):
                    means = [float(table[f"{kind} {layer}"].mean()) for table in tables]
                    bound = -1.0 if kind == "cosine" else 0.0
                    keys = {"corpus": view.corpus, "quantity": panel, "model": variant}
                    yield row(keys | {"layer": layer}, value=over_seeds(means, bound, 1))

    table = views.table(one)
    first = table[(table["corpus"] == table["corpus"].iloc[0])]
    chains = first[first["quantity"] == QUANTITIES["chain"]]
    ends = chains[chains["layer"] == 1].set_index("model")["value"]
    said = "Two starts differ on the input by at most " + ", ".join(
        f"{value:.2g} ({model})" for model, value in ends.items()
    )
    said += "; means over heads and texts. Layer 0 is the input; an even start is above that layer."
    return Made(table, _drawn, said)


def _drawn(table: pd.DataFrame) -> Figure:
    """The panels, those of what shrinks by powers of ten on logarithmic axes."""
    # No band where it would reach 0, which such an axis does not have.
    shown = table.assign(**{"value low": table["value low"].where(table["value low"] > 0)})
    figure = lines(shown, x="layer", y="value", hue="model", panel="quantity", share=False)
    for axes in figure.axes[1::2]:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0e}")
    return figure


def _mean(view: View, variant: str, column: str) -> Estimate:
    """The mean of a column over texts and seeds."""

    def of(seed: int) -> Draws:
        table = _documents(view, variant, seed)
        return draws.average(table[column], [str(name) for name in table["instance"]])

    return view.over_seeds(of)


def remembers_its_start(view: View) -> Parts:
    """A8: the most that two starts can differ by on the input, trained and as published norms."""
    return Parts({v: _mean(view, v, "chain 1") for v in (models.PUBLISHED, FULL)})


def forgets_by_construction(view: View) -> Parts:
    """A9: the same before any training."""
    return Parts({variant: _mean(view, variant, "chain 1") for variant in models.BEFORE})


def needs_collapse(plan: Plan, corpus: str) -> Iterable[Step[Any]]:
    """What the compared models decided."""
    return [
        models.decisions(plan, corpus, kind, seed)
        for kind in models.COMPARED
        for seed in plan.seeds
    ]


COLLAPSE = (PAPER.artifact("X-C", collapse, needs_collapse, corpora.TEXTS),)
