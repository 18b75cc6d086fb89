"""What decides the claims about gradient flow: terms, dot products, V·W (polarity.md §8)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from heedful.reproduction.ledger import Parts, Side, above, at_least, at_most, below, holding
from heedful.reproduction.measures import exact
from heedful.reproduction.view import View, Views
from heedful.statistics import Estimate, over_seeds, proportion
from heedful.studies.polarity import steps

POLARITY_TERMS, ATTENTION_TERMS = ("B", "C"), ("E", "F")
SIGN_SIDES: dict[str, Side] = {
    f"{term} of {role}": above(0.5)
    for term in (*POLARITY_TERMS, *ATTENTION_TERMS)
    for role in ("positive", "negative")
} | {f"{term}, neutral over class words": below(0.1) for term in "BCEF"}
LATER_SIDES = {"F over E at the start": holding(0), "F over E later": above(0)}
D_SIDES = {"D of positive": above(0.5), "D of negative": above(0.5)}
PAIR_SIDES = {
    "positive-positive": above(0),
    "negative-negative": above(0),
    "negative-positive": below(0),
    "negative-neutral": at_most(0.1),
    "positive-neutral": at_most(0.1),
    "neutral-neutral": at_most(0.1),
}
RATIO_SIDES = {
    "1:1": holding(0),
    "1:2": below(0),
    "1:5": below(0),
    "2:1": above(0),
    "5:2": above(0),
}
IDENTITY_SIDES = {name: at_most(1e-9) for name in ("polarity", "attention", "dot products")} | {
    f"printed {name}": at_least(1e-6) for name in ("polarity", "attention", "dot products")
}


def _terms(view: View) -> pd.DataFrame:
    """The terms of plain DP runs, the classes renamed positive, negative, neutral."""
    table = view.of(steps.path)["terms"]
    table = table[table["setting"] == "plain"]
    negative, positive = steps.class_names(view)
    return table.replace({"class": {negative: "negative", positive: "positive"}})


def _later(table: pd.DataFrame, term: str, classes: Sequence[str]) -> pd.DataFrame:
    chosen = (table["epoch"] > 0) & (table["term"] == term) & table["class"].isin(classes)
    return table[chosen]


def _share(right: pd.Series[float], rows: pd.DataFrame) -> Estimate:
    """The share of right words, mean over checkpoints; one per seed.

    Seeds that all have every word right, or none, do not vary: the interval is that over words.
    """
    by_seed = (right / rows["n"]).groupby(rows["seed"]).mean()
    if by_seed.isin([0.0, 1.0]).all() and by_seed.nunique() == 1:
        words = int(rows["n"].min())
        return proportion(words * int(by_seed.iloc[0]), words)
    return over_seeds(by_seed)


def signs(view: View) -> Parts:
    """POL-16: share of words whose term has the predicted sign, over checkpoints; one per seed."""
    table = _terms(view)
    found = Parts()
    for term in (*POLARITY_TERMS, *ATTENTION_TERMS):
        for role in ("positive", "negative"):
            falls = term in POLARITY_TERMS and role == "negative"
            rows = _later(table, term, [role])
            found[f"{term} of {role}"] = _share(rows["negative" if falls else "positive"], rows)
    for term in (*POLARITY_TERMS, *ATTENTION_TERMS):
        neutral, polar = (
            _later(table, term, chosen).groupby("seed")["size"].mean()
            for chosen in (["neutral"], ["positive", "negative"])
        )
        found[f"{term}, neutral over class words"] = over_seeds(neutral / polar)
    return found


def query_term(view: View) -> Parts:
    """POL-17: mean F over mean E of class words, at the start and later; one per seed."""
    table = _terms(view)
    table = table[table["class"].isin(["positive", "negative"])]

    def ratio(rows: pd.DataFrame) -> pd.Series[float]:
        means = rows.pivot_table(index="seed", columns="term", values="mean")
        return means["F"] / means["E"]

    return Parts(
        {
            "F over E at the start": over_seeds(ratio(table[table["epoch"] == 0])),
            "F over E later": over_seeds(ratio(table[table["epoch"] > 0])),
        }
    )


def alignment_term(view: View) -> Parts:
    """POL-18: share of words whose D has the sign of V·W (positive words) or the opposite."""
    path = view.of(steps.path)["path"]
    path = path[(path["setting"] == "plain") & (path["quantity"] == "V·W")]
    product = path.set_index(["seed", "epoch"])["value"]
    table = _terms(view)
    found = Parts()
    for role, sign in (("positive", 1.0), ("negative", -1.0)):
        rows = _later(table, "D", [role])
        keys = pd.MultiIndex.from_frame(rows[["seed", "epoch"]])
        predicted = sign * np.sign(product.loc[keys].to_numpy())
        right = rows["positive"].where(predicted > 0, rows["negative"])
        found[f"D of {role}"] = _share(right, rows)
    return found


def _last(view: View) -> pd.DataFrame:
    """Quantities at the end of plain runs: a row per seed."""
    path = view.of(steps.path)["path"]
    path = path[(path["setting"] == "plain") & (path["epoch"] == path["epoch"].max())]
    wide: pd.DataFrame = path.pivot(index="seed", columns="quantity", values="value")
    return wide


def embeddings_align(view: View) -> Parts:
    """POL-19: mean dot products by group; groups with neutral words over the positive pairs'."""
    last = _last(view)
    same = last["dot/positive-positive"]
    found = Parts()
    for pair in PAIR_SIDES:
        values = last[f"dot/{pair}"]
        found[pair] = over_seeds(values.abs() / same.abs() if "neutral" in pair else values)
    return found


def imbalance_decides(views: Views) -> Parts:
    """POL-20: V·W after training on each unbalanced set."""
    return Parts({steps.RATIOS[view.corpus]: over_seeds(_last(view)["V·W"]) for view in views})


def formulas(view: View) -> Parts:
    """POL-A4: relative distance of the corrected and the printed forms from autograd."""
    found = view.of(steps.identities)
    words = len(view.of(steps.words))
    # The multi-class forms hold two classes too; the printed slip shows in either.
    return Parts({name: exact(value, words) for name, value in found.items()})
