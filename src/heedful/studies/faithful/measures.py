"""What decides the claims of the faithful paper: one function for each.

See docs/studies/faithful.md, "Claims".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float64

from heedful.reproduction.ledger import Measured, NotMeasurable, Parts
from heedful.reproduction.measures import per_instance, trained_contrast
from heedful.reproduction.view import View, Views
from heedful.statistics import Estimate, bootstrap, over_seeds, pooled, widened
from heedful.statistics.association import slope, spearman_of_few
from heedful.statistics.weighted import rank_correlation
from heedful.studies.faithful.figures import curve_of
from heedful.studies.faithful.models import (
    ATTENTIONS,
    CONTROLS,
    DEPTH_VARIANTS,
    EDITS,
    LAYERS,
    QUERIES,
    VARIANTS,
    Setting,
    few,
)
from heedful.studies.faithful.steps import instances, lower, minus, per_seed
from heedful.studies.faithful.tables import information_minus, informed


def mean_gap(
    x: Float64[np.ndarray, "curve point"],
    y: Float64[np.ndarray, "curve point"],
    other_x: Float64[np.ndarray, "curve other"],
    other_y: Float64[np.ndarray, "curve other"],
    grid: int = 101,
) -> Float64[np.ndarray, " curve"]:
    """Mean height of the first curve above the second over the x that both have.

    The area between the curves divided by the width of their common range, so that ranges of
    different width compare. Points are joined in the order of x; nan where no x is common.
    """
    gaps = np.full(len(x), np.nan)
    for row in range(len(x)):
        low = max(x[row].min(), other_x[row].min())
        high = min(x[row].max(), other_x[row].max())
        if high > low:
            places = np.linspace(low, high, grid)
            height = _joined(x[row], y[row], places) - _joined(other_x[row], other_y[row], places)
            gaps[row] = np.trapezoid(height, places) / (high - low)
    return gaps


def _joined(
    x: Float64[np.ndarray, " point"],
    y: Float64[np.ndarray, " point"],
    places: Float64[np.ndarray, " place"],
) -> Float64[np.ndarray, " place"]:
    order = np.argsort(x, kind="stable")
    return np.asarray(np.interp(places, x[order], y[order]))


UNSURE = 0.6
"""Below this probability of its own decision a model is unsure (FAI-12)."""
ALIKE: dict[str, tuple[str, float]] = {
    "F1": ("points trained f1", 100),
    "uniform": ("change uniform f1", 200),
    "permuted": ("change permuted f1", 200),
}
"""What is compared where two models should behave alike, and the largest difference there is."""
ENOUGH = 30
"""Decisions below which a mean of them is not judged: its interval would hold anything."""


def small_changes(view: View) -> Parts:
    """FAI-1: changes of F1 of the base model."""
    return {
        f"{edit} {attention}": over_seeds(
            per_seed(view, Setting(attention=attention), f"change {edit} f1"), -100, 100
        )
        for attention in ATTENTIONS
        for edit in EDITS
    }


def larger_drops(
    variants: Sequence[str],
    view: View,
    score: str = "f1",
    edits: Sequence[str] = EDITS,
) -> Parts:
    """FAI-2 to FAI-4: in how many trainings each edit changes the remedy's score more than base's,
    downwards."""
    return {
            f"{variant} {edit} {attention}": lower(
                view, Setting(variant, attention), Setting(attention=attention),
                f"change {edit} {score}"
            )
            for variant in variants
            for attention in ATTENTIONS
            for edit in edits
        }  # fmt: skip


def minus_base(variants: Sequence[str], view: View, name: str, most: float) -> Parts:
    """A number of each remedy minus that of base, by attention; it is at most `most` in size."""
    return {
        f"{variant} {a}": minus(view, Setting(variant, a), Setting(attention=a), name, most)
        for variant in variants
        for a in ATTENTIONS
    }


def kept_quality(variants: Sequence[str], view: View) -> Parts:
    """FAI-5: F1 with trained attention, remedy minus base, in points."""
    return minus_base(variants, view, "points trained f1", 100)


def residual_like_concat(view: View) -> Parts:
    """FAI-6: F1 and its changes, residual minus concat, in points."""
    return {
        f"{name} {attention}": minus(
            view, Setting("residual", attention), Setting("concat", attention), asked, most
        )
        for name, (asked, most) in ALIKE.items()
        for attention in ATTENTIONS
    }


def nothing_left(view: View) -> Parts:
    """FAI-7."""
    return {
        f"{variant} {edit} {attention}": over_seeds(
            per_seed(view, Setting(variant, attention), f"points {edit} f1"), 0, 100
        )
        for variant in DEPTH_VARIANTS
        for edit in EDITS
        for attention in ATTENTIONS
    }


def information_gain(
    variants: Sequence[str],
    view: View,
    columns: tuple[str, str | None] = ("clustered", None),
    is_frozen: bool = False,
) -> Parts:
    """FAI-8: information minus base, of one column (less its bias where a second one is named)."""
    base = Setting(is_frozen=is_frozen)
    return {
        f"{variant} {sample}": information_minus(
            view, replace(base, variant=variant), base, sample, columns
        )
        for variant in variants
        for sample in ("MF", "RS")
    }


def near_the_ceiling(view: View) -> Parts:
    """FAI-9."""
    found: dict[str, Estimate | NotMeasurable] = {}
    for sample in ("MF", "RS"):
        rows = {
            variant: [informed(view, Setting(variant), seed, sample) for seed in few(view.plan)]
            for variant in ("residual", "tying", "mlm")
        }
        found[f"residual share {sample}"] = over_seeds(
            [row["clustered"] / row["ceiling"] for row in rows["residual"]], 0, 1
        )
        found[f"tying minus mlm {sample}"] = over_seeds(
            [
                a["clustered"] - b["clustered"]
                for a, b in zip(rows["tying"], rows["mlm"], strict=True)
            ]
        )
    return Parts(found)


def less_sure_words(view: View) -> Parts:
    """FAI-10."""
    return minus_base(("tying", "mlm"), view, "confidence", 1)


def words_near(view: View) -> Parts:
    """FAI-11."""
    base = instances(view, Setting())
    tied = instances(view, Setting("tying"))
    return {
        "near the sentence, base minus tying": trained_contrast(base, tied, "near", 1),
        "near even odds, tying minus base": trained_contrast(tied, base, "undecided", 1),
    }


def leaks_when_sure(view: View) -> Parts:
    """FAI-12, of each training by itself: how sure it is, and what its words alone leak."""
    base = instances(view, Setting())
    tied = instances(view, Setting("tying"))
    seen = [
        pd.DataFrame(
            {
                "sure": per_instance([one], "probability"),
                "more": per_instance([one], "confidence") - per_instance([two], "confidence"),
            }
        ).dropna()
        for one, two in zip(base, tied, strict=True)
    ]
    return {"Spearman": _goes_with(seen), "unsure": _where_unsure(seen)}


def _goes_with(seen: Sequence[pd.DataFrame]) -> Estimate:
    """The mean over trainings of the rank correlation, on the documents that all of them have."""
    shared = pd.concat([one["more"] for one in seen], axis=1, join="inner").index
    each = [
        rank_correlation(one["sure"][shared].to_numpy(), one["more"][shared].to_numpy())
        for one in seen
    ]

    def statistic(weights: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.asarray(np.mean([one(weights) for one in each], axis=0))

    alone = [float(one(np.ones((1, len(shared))))[0]) for one in each]
    return widened(bootstrap(statistic, [str(name) for name in shared]), alone, -1, 1)


def _where_unsure(seen: Sequence[pd.DataFrame]) -> Estimate | NotMeasurable:
    """The mean leak of decisions that their own training was unsure of."""
    unsure = [one["more"][one["sure"] < UNSURE] for one in seen]
    every = pd.concat(unsure)
    if len(every) < ENOUGH:
        return NotMeasurable(
            f"base is less than {UNSURE:g} sure of {len(every)} decisions only, of {ENOUGH} needed"
        )
    found = pooled(every.to_numpy(), [str(name) for name in every.index], is_difference=True)
    return widened(found, [float(one.mean()) for one in unsure], -1, 1)


def rarely_surer(view: View) -> Parts:
    """FAI-13."""

    def right(table: pd.DataFrame) -> pd.Series[Any]:
        table = table.set_index("instance")
        is_right = table["decision"] == table["label"]
        return table["probability"].where(is_right, 1 - table["probability"])

    found: dict[str, Estimate | NotMeasurable] = {}
    base = instances(view, Setting())
    for variant in ("tying", "mlm"):
        parts = []
        remedy = instances(view, Setting(variant))
        for one, other in zip(base, remedy, strict=True):
            first, second = right(one).align(right(other), join="inner")
            parts.append((second > first)[first > 0.5].astype(float))
        every = pd.concat(parts)
        shared = pooled(every.to_numpy(), [str(name) for name in every.index])
        found[variant] = widened(shared, [float(one.mean()) for one in parts], 0, 1)
    return Parts(found)


def gap(view: View, variant: str, divergence: str = "jsd") -> Estimate:
    """FAI-14: mean height of a variant's adversary curve above base's, seed by seed.

    A seed whose curves have no JSD in common has none. The interval says how far other trainings
    would differ, not other documents.
    """
    (x, y), (other_x, other_y) = (
        [curve.pivot(index="seed", columns="λ", values=name).to_numpy() for name in ("JSD", "TVD")]
        for curve in (curve_of(view, v, divergence) for v in (variant, "base"))
    )
    return over_seeds(mean_gap(x, y, other_x, other_y), -1, 1)


def dearer_adversary(view: View) -> Parts:
    """FAI-14, for every remedy."""
    return {v: gap(view, v) for v in VARIANTS if v != "base"}


def deeper_is_flatter(view: View) -> Parts:
    """FAI-15: the size of base's change at fewer minus at more layers."""
    return {
            f"{edit}, {n} minus {n + 1} layers": minus(
                view, Setting(layers=n + 1), Setting(layers=n),
                f"change {edit} f1"
            )
            for edit in EDITS
            for n in LAYERS[:-1]
        }  # fmt: skip


def weaker_when_deep(view: View) -> Parts:
    """FAI-16."""
    return {
            variant: minus(
                view, Setting(variant, layers=3), Setting(variant),
                "change permuted f1"
            )
            for variant in ("tying", "mlm")
        }  # fmt: skip


def query_start(view: View) -> Parts:
    """FAI-17."""

    def of(query: str, name: str, least: float, most: float) -> Estimate:
        return over_seeds(per_seed(view, QUERIES[query, "base"], name), least, most)

    return {
        "entropy, default": of("default", "entropy", 0, 1),
        "entropy, N(0, 1)": of("normal", "entropy", 0, 1),
        "uniform, default": of("default", "change uniform f1", -100, 100),
        "permuted, default": of("default", "change permuted f1", -100, 100),
    }


def longer_is_fragile(view: View) -> Estimate:
    """FAI-18 within a corpus."""
    tables = instances(view, Setting())
    each = [per_instance([one], "uniform_changes") for one in tables]
    changes = per_instance(tables, "uniform_changes")
    length = np.log(per_instance(tables, "units").reindex(changes.index).to_numpy())
    whole = slope(length, changes.to_numpy(), [str(name) for name in changes.index])
    return widened(whole, [float(np.polyfit(length, one.to_numpy(), 1)[0]) for one in each])


def longer_corpora(views: Views) -> Measured:
    """FAI-18 across corpora: Spearman's correlation of length with base's mean drop."""
    if len(views.corpora) < 3:
        return NotMeasurable(
            f"a correlation over corpora needs three; at hand: {len(views.corpora)}"
        )
    drops, lengths = [], []
    for view in views:
        changes = per_seed(view, Setting(), "change permuted f1")
        drops.append(-float(np.mean(changes)))
        lengths.append(float(instances(view, Setting())[0]["units"].mean()))
    return spearman_of_few(lengths, drops)


def query_of_instance(view: View) -> Parts:
    """FAI-19: as good a model as with the parameter query, and tying works with it too."""
    asked = {v: CONTROLS[f"{v}, query of the instance"] for v in ("base", "tying")}
    quality: Parts = {
        f"{variant}, F1": minus(view, one, Setting(variant, "•"), "points trained f1", 100)
        for variant, one in asked.items()
    }
    drops: Parts = {
        f"tying {edit}": lower(view, asked["tying"], asked["base"], f"change {edit} f1")
        for edit in EDITS
    }
    return quality | drops
