"""The erasure study's figures: scatters, histograms, box plots and 24 contingency tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from heedful.audits.erasure import five_numbers
from heedful.reproduction.study import Made
from heedful.reproduction.view import View, Views
from heedful.statistics.estimates import per_cent
from heedful.studies.erasure.examination import RANKINGS, Erased
from heedful.studies.erasure.measures import at_hand, pooled
from heedful.studies.erasure.panels import box_grid, contingency_grid, histogram_grid, scatter_grid
from heedful.studies.erasure.tables import contingency_row

SHOWN = {
    "random": "Random",
    "attention": "Attention",
    "gradient": "Gradient",
    "product": "Attn*Grad",
}
EDGES = np.round(np.linspace(0, 1, 51), 2)
"""Fixed edges 0.00, 0.02, …, 1.00, the last bin closed."""
LIMITS = (-0.05, 0.45)
"""Of ΔJS in the scatters."""
MOST_OUTLIERS = 60
"""Different outliers drawn beside a box."""


def scatters(*models: str, per_bin: int) -> Callable[[Views], Made]:
    """ΔJS against Δα of all seeds, thinned: at most so many points for each 0.005 of Δα.

    What is said below is of all instances, not of the points shown.
    """

    def make(views: Views) -> Made:
        small: list[np.ndarray] = []

        def rows(view: View) -> Iterable[dict[str, Any]]:
            for model in at_hand(view, models):
                one = pooled(view, model)
                far = one.delta_js()[one.delta_attention() > 0.4]
                small.append(far < 0.05)
                chosen = np.flatnonzero(one.thinned(per_bin))
                weight, change = one.delta_attention()[chosen], one.delta_js()[chosen]
                for x, y in zip(weight.round(4).tolist(), change.round(5).tolist(), strict=True):
                    yield {"corpus": view.corpus, "model": model, "Δα": x, "ΔJS": y}

        table = views.table(rows)
        counted = np.concatenate(small)
        share = float(counted.mean()) if len(counted) else np.nan
        draw = partial(
            scatter_grid, x="Δα", y="ΔJS", limits=LIMITS,
            xlabel="Δα: attention of the top item minus that of a random other one",
            ylabel="ΔJS (nats)",
        )  # fmt: skip
        return Made(
            table,
            draw,
            f"Of all {len(counted):,} instances with Δα above 0.4, {per_cent(share)} have ΔJS "
            "below 0.05.",
            ("Points are thinned for the picture; the sentence and the steps' rows have all.",),
            shown=table.groupby(["corpus", "model"], sort=False)["ΔJS"]
            .describe()
            .rename(columns={"25%": "lower quartile", "50%": "median", "75%": "upper quartile"})
            .reset_index(),
        )

    return make


def histograms(*models: str) -> Callable[[Views], Made]:
    """How Δα is distributed where ΔJS is negative: counts on fixed edges."""

    def make(views: Views) -> Made:
        def rows(view: View) -> Iterable[dict[str, Any]]:
            for model in at_hand(view, models):
                one = pooled(view, model)
                weight = one.delta_attention()[one.delta_js() < 0]
                counts, _ = np.histogram(weight, EDGES)
                edges = zip(EDGES[:-1].tolist(), EDGES[1:].tolist(), counts.tolist(), strict=True)
                for left, right, count in edges:
                    keys = {"corpus": view.corpus, "model": model}
                    yield keys | {"left": left, "right": right, "count": count}

        table = views.table(rows)
        near = table.loc[table["right"] <= 0.2, "count"].sum() / max(table["count"].sum(), 1)
        draw = partial(histogram_grid, xlabel="Δα where ΔJS < 0", ylabel="instances")
        total = table.groupby(["corpus", "model"], sort=False)["count"].sum().reset_index()
        said = f"{per_cent(near)} of the negative ΔJS lie at Δα below 0.2."
        return Made(table, draw, said, shown=total)

    return make


def box_plots(*models: str, of: str = "fraction") -> Callable[[Views], Made]:
    """Fraction of items (or original attention mass) removed at the first flip, by ranking.

    What never flips needs everything: it counts as 1.
    """

    def values(one: Erased, ranking: str) -> np.ndarray:
        return one.fraction(ranking) if of == "fraction" else one.mass(ranking)

    def make(views: Views) -> Made:
        def rows(view: View) -> Iterable[dict[str, Any]]:
            for model in at_hand(view, models):
                one = pooled(view, model)
                for ranking in RANKINGS:
                    found = values(one, ranking)
                    never = int(np.nansum(one.never(ranking)))
                    keys = {"corpus": view.corpus, "model": model, "ranking": SHOWN[ranking]}
                    box = five_numbers(found) | {"mean": float(np.nanmean(found))}
                    yield keys | box | {"never flips": never, "outliers": _outliers(found, box)}

        table = views.table(rows)
        label = "items removed" if of == "fraction" else "attention mass removed"
        means = table.groupby("ranking", sort=False)["mean"].mean()
        told = ", ".join(f"{name} {value:.2f}" for name, value in means.items())
        return Made(
            table,
            partial(box_grid, hue="ranking", ylabel=f"{label} at the first flip"),
            f"Mean over models: {told}.",
            (
                "What never flips needs everything and counts as 1; the paper leaves it out of "
                "each box apart (how many those are: `never flips`).",
            ),
            shown=table.drop(columns="outliers"),
        )

    return make


def _outliers(values: np.ndarray, box: dict[str, Any]) -> str:
    """Different values beyond the whiskers, to three digits, evenly thinned."""
    if not box["n"]:
        return ""
    beyond = values[(values < box["low"]) | (values > box["high"])]
    distinct = np.unique(beyond.round(3))
    if len(distinct) > MOST_OUTLIERS:
        distinct = distinct[np.linspace(0, len(distinct) - 1, MOST_OUTLIERS).astype(int)]
    return " ".join(f"{value:g}" for value in distinct)


def contingencies(*models: str, ranking: str) -> Callable[[Views], Made]:
    """Who flips the decision: the top of a ranking or a random other item, for every model."""

    def make(views: Views) -> Made:
        def rows(view: View) -> Iterable[dict[str, Any]]:
            for model in at_hand(view, models):
                found = contingency_row(view, model, ranking, "any other item", False)
                legacy = contingency_row(view, model, ranking, "published", True)
                cells = ("both", "only top", "only random", "neither")
                yield found | {f"{name}, published rule": legacy[name] for name in cells}

        table = views.table(rows)
        more = int((table["only top"] > table["only random"]).sum())
        said = f"The top item alone flips more often than the other in {more} of {len(table)}."
        draw = partial(contingency_grid, top=f"the {ranking} ranking")
        return Made(table, draw, said)

    return make
