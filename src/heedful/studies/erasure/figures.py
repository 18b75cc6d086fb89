"""The erasure study's figures: scatters, histograms, box plots and 24 contingency tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heedful.audits.erasure import five_numbers
from heedful.report.drawing import (
    ACCENT,
    GREY,
    INK,
    LINE,
    RASTER,
    SERIES,
    SOFT,
    WARM,
    WIDTH,
    plain_text,
)
from heedful.report.figures import PageFigure
from heedful.reproduction.study import Made
from heedful.reproduction.view import View, Views
from heedful.statistics.estimates import per_cent
from heedful.studies.erasure.examination import RANKINGS, Erased
from heedful.studies.erasure.measures import at_hand, pooled
from heedful.studies.erasure.tables import contingency_row

TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
DENSE = 400
"""Panels with more points become a picture inside the SVG."""
CELLS = ("both", "only top", "only random", "neither")


MOST_OUTLIERS = 18
"""Outliers drawn beside one box; the table keeps them all."""


def scatter_grid(
    table: pd.DataFrame,
    *,
    x: str,
    y: str,
    limits: tuple[float, float],
    xlabel: str = "",
    ylabel: str = "",
) -> Figure:
    """One point per row; x from 0 to 1, y within the limits, with a line at y = 0.

    Points beyond the limits are drawn on the frame, so that none is lost.
    """

    def one(axes: Axes, part: pd.DataFrame) -> None:
        axes.axhline(0, color=LINE, lw=0.8)
        shown = part[y].clip(*limits)
        is_dense = len(part) > DENSE
        colour = RASTER if is_dense else ACCENT
        axes.scatter(part[x], shown, s=3, alpha=0.45, lw=0, color=colour, rasterized=is_dense)
        axes.set(xlim=(-0.02, 1.02), ylim=limits, xticks=TICKS)

    return _grid(table, one, 86, xlabel, ylabel, dpi=110)


def histogram_grid(table: pd.DataFrame, *, xlabel: str = "", ylabel: str = "") -> Figure:
    """Bars from binned rows (`left`, `right`, `count`); every panel has its own height."""

    def one(axes: Axes, part: pd.DataFrame) -> None:
        edges = np.append(part["left"].to_numpy(), part["right"].iloc[-1])
        axes.stairs(part["count"].to_numpy(), edges, fill=True, color=ACCENT, lw=0)
        axes.set(xlim=(-0.02, 1.02), xticks=TICKS)
        axes.locator_params(axis="y", nbins=3, integer=True)
        if not part["count"].sum():
            axes.text(0.5, 0.5, "none", transform=axes.transAxes, ha="center", color=SOFT)
            axes.set_yticks([])

    return _grid(table, one, 74, xlabel, ylabel, share=False)


def box_grid(table: pd.DataFrame, *, hue: str, ylabel: str = "") -> Figure:
    """A panel per model, groups of boxes by corpus: quartiles, whiskers, and outliers as points.

    Rows hold `low q1 median q3 high`, and `outliers` as numbers separated by blanks.
    """
    models, corpora = (list(dict.fromkeys(table[name])) for name in ("model", "corpus"))
    hues = list(dict.fromkeys(table[hue]))
    columns = 1 if len(models) < 4 else 2
    rows = -(-len(models) // columns)
    letters = 104 // (columns * len(corpora))  # of a corpus's name that fit below its boxes
    figure = PageFigure(figsize=(WIDTH / 72, (118 * rows + 34) / 72), dpi=72, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    flat: list[Axes] = list(grid.flat)
    for axes, model in zip(flat, models, strict=False):
        part = table[(table["model"] == model) & table["median"].notna()]
        for number, name in enumerate(hues):
            _boxes(axes, part[part[hue] == name], corpora, number, len(hues), str(name))
        axes.set_xticks(range(len(corpora)), [plain_text(c, letters) for c in corpora])
        axes.set(
            xlim=(-0.6, len(corpora) - 0.4), ylim=(-0.03, 1.03), yticks=(0, 0.25, 0.5, 0.75, 1)
        )
        axes.set_title(plain_text(model), fontsize=9)
        axes.yaxis.grid(True, color=LINE, lw=0.6)
        axes.set_axisbelow(True)
        axes.tick_params(labelsize=7.5)
        axes.tick_params(axis="x", labelsize=7.5 if columns == 1 else 6)
        axes.label_outer()
    for axes in flat[len(models) :]:
        axes.set_visible(False)
    figure.supylabel(ylabel, fontsize=9, color=SOFT)
    handles, labels = flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=4, fontsize=8.5)
    return figure


def contingency_grid(table: pd.DataFrame, *, top: str) -> Figure:
    """A 2×2 table for every model and corpus: both flip, only the top, only the random, neither."""

    def one(axes: Axes, part: pd.DataFrame) -> None:
        cells = part.iloc[0][list(CELLS)].astype(float)
        colours = (GREY, ACCENT, WARM, GREY)
        for place, (name, colour) in enumerate(zip(CELLS, colours, strict=True)):
            x, y = place % 2, place // 2
            strength = 0.10 + 0.5 * (0.0 if np.isnan(cells[name]) else cells[name] / 100)
            axes.add_patch(_square(x, y, colour, strength))
            shown = "–" if np.isnan(cells[name]) else f"{cells[name]:.1f}"
            axes.text(x, y, shown, ha="center", va="center", fontsize=7.5, color=INK)
        axes.set(xlim=(-0.5, 1.5), ylim=(1.5, -0.5))
        axes.set_xticks([0, 1], ["yes", "no"])
        axes.set_yticks([0, 1], ["yes", "no"])
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)

    return _grid(table, one, 64, "flipped by a random other one", f"flipped by the top of {top}")


def _grid(
    table: pd.DataFrame,
    one: Callable[[Axes, pd.DataFrame], None],
    height: float,
    xlabel: str,
    ylabel: str,
    share: bool = True,
    dpi: int = 72,
) -> Figure:
    models, corpora = (list(dict.fromkeys(table[name])) for name in ("model", "corpus"))
    if len(models) == 1:
        columns = min(len(corpora), 2)
        rows = -(-len(corpora) // columns)
        places = [(models[0], corpus, plain_text(corpus)) for corpus in corpora]
        height = 1.6 * height
    else:
        columns, rows = len(models), len(corpora)
        places = [
            (model, corpus, plain_text(model) if number == 0 else "")
            for number, corpus in enumerate(corpora)
            for model in models
        ]
    size = (WIDTH / 72, (height * rows + 40) / 72)
    figure = PageFigure(figsize=size, dpi=dpi, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=share)
    flat: list[Axes] = list(grid.flat)
    for number, (axes, (model, corpus, title)) in enumerate(zip(flat, places, strict=False)):
        part = table[(table["model"] == model) & (table["corpus"] == corpus)]
        if len(part):
            one(axes, part)
        else:
            axes.set_axis_off()
        axes.set_title(title, fontsize=9 if len(models) == 1 else 8)
        axes.tick_params(labelsize=8 if len(models) == 1 else 6)
        if len(models) > 1 and number % columns == 0:
            axes.set_ylabel(plain_text(corpus, 14), fontsize=8)
        if columns > 3 and len(axes.get_xticks()) == len(TICKS):  # no room for all numbers
            axes.set_xticks(TICKS, [f"{t:g}" if t in (0, 1) else "" for t in TICKS])
    for axes in flat[len(places) :]:
        axes.set_visible(False)
    figure.supxlabel(xlabel, fontsize=9, color=SOFT)
    figure.supylabel(ylabel, fontsize=9, color=SOFT)
    return figure


def _boxes(
    axes: Axes, rows: pd.DataFrame, corpora: list[Any], number: int, hues: int, name: str
) -> None:
    colour = SERIES[number % len(SERIES)]
    shift = 0.8 * ((number + 0.5) / hues - 0.5)
    stats = [
        {
            "whislo": row["low"],
            "q1": row["q1"],
            "med": row["median"],
            "q3": row["q3"],
            "whishi": row["high"],
            "fliers": _thinned(np.array(str(row["outliers"]).split(), dtype=float)),
        }
        for _, row in rows.fillna({"outliers": ""}).iterrows()
    ]
    axes.bxp(
        stats,
        positions=[corpora.index(corpus) + shift for corpus in rows["corpus"]],
        widths=0.56 / hues,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": colour, "linewidth": 0, "alpha": 0.75},
        medianprops={"color": INK, "linewidth": 1.6},
        whiskerprops={"color": SOFT, "linewidth": 0.7},
        capprops={"color": SOFT, "linewidth": 0.7},
        flierprops={"marker": ".", "markersize": 1.5, "markerfacecolor": colour,
                    "markeredgewidth": 0},
    )  # fmt: skip
    axes.plot([], [], "s", color=colour, label=plain_text(name))


def _thinned(outliers: Float[np.ndarray, " outlier"]) -> Float[np.ndarray, " drawn"]:
    """Evenly chosen outliers, the ends among them: hundreds of dots on a line look like few."""
    values = np.unique(outliers.round(3))
    kept = np.linspace(0, len(values) - 1, min(MOST_OUTLIERS, len(values))).astype(int)
    return np.asarray(values[kept])


def _square(x: float, y: float, colour: str, alpha: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, facecolor=colour, alpha=alpha, lw=0)


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
MOST_DISTINCT = 60
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
    if len(distinct) > MOST_DISTINCT:
        distinct = distinct[np.linspace(0, len(distinct) - 1, MOST_DISTINCT).astype(int)]
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
