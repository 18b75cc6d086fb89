"""What decides the claims about gradient flow: terms, dot products, V·W.

See docs/studies/polarity.md, "Claims".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from heedful.reproduction.ledger import Parts
from heedful.reproduction.measures import exact
from heedful.reproduction.view import View, Views
from heedful.statistics import Estimate, over_seeds, proportion
from heedful.studies.polarity import corpora, steps
from heedful.studies.polarity.word_steps import Tables

POLARITY_TERMS, ATTENTION_TERMS = ("B", "C"), ("E", "F")
WORD_PAIRS = (
    "positive-positive", "negative-negative", "negative-positive",
    "negative-neutral", "positive-neutral", "neutral-neutral",
)  # fmt: skip


def _terms(view: View) -> pd.DataFrame:
    """The terms of plain DP runs, the classes renamed positive, negative, neutral."""
    table = view.of(steps.path)["terms"]
    table = table[table["setting"] == "plain"]
    negative, positive = steps.class_names(view)
    return table.replace({"class": {negative: "negative", positive: "positive"}})


def _later(table: pd.DataFrame, term: str, classes: Sequence[str]) -> pd.DataFrame:
    chosen = (table["epoch"] > 0) & (table["term"] == term) & table["class"].isin(classes)
    return table[chosen]


def stood_for(epochs: Iterable[float]) -> pd.Series[float]:
    """How much of training each checkpoint stands for: half-way to its neighbours on both sides.

    The first stands for all before it, as the last does for nothing after it: the weights add up to
    the last epoch.
    """
    at = np.unique(np.asarray(list(epochs), dtype=float))
    borders = np.concatenate([[0.0], (at[1:] + at[:-1]) / 2, at[-1:]])
    return pd.Series(np.diff(borders), index=at)


def over_training(values: pd.Series[float], rows: pd.DataFrame) -> pd.Series[float]:
    """The mean over training of a number at checkpoints, for each seed.

    Checkpoints lie close together at the start and far apart later; the claim speaks of training,
    so each weighs the epochs that it stands for.
    """
    weights = rows["epoch"].map(stood_for(rows["epoch"]))
    total = (values * weights).groupby(rows["seed"]).sum()
    return total / weights.groupby(rows["seed"]).sum()


def _share(right: pd.Series[float], rows: pd.DataFrame) -> Estimate:
    """The share of right words over training; one per seed.

    Seeds that all have every word right, or none, do not vary: the interval is that over words.
    """
    by_seed = over_training(right / rows["n"], rows)
    if by_seed.isin([0.0, 1.0]).all() and by_seed.nunique() == 1:
        words = int(rows["n"].min())
        return proportion(words * int(by_seed.iloc[0]), words)
    return over_seeds(by_seed, 0, 1)


def signs(view: View) -> Parts:
    """POL-16: share of words whose term has the predicted sign, over training; one per seed."""
    return Parts(sign_shares(view))


def sign_shares(view: View, is_last: bool = False) -> dict[str, Estimate]:
    """The same by name, or at the last checkpoint alone."""
    table = _terms(view)
    table = table[table["epoch"] == table["epoch"].max()] if is_last else table
    found: dict[str, Estimate] = {}
    for term in (*POLARITY_TERMS, *ATTENTION_TERMS):
        for role in ("positive", "negative"):
            falls = term in POLARITY_TERMS and role == "negative"
            rows = _later(table, term, [role])
            found[f"{term} of {role}"] = _share(rows["negative" if falls else "positive"], rows)
    for term in (*POLARITY_TERMS, *ATTENTION_TERMS):
        kinds = (["neutral"], ["positive", "negative"])
        both = [_later(table, term, names) for names in kinds]
        neutral, polar = (over_training(one["size"], one) for one in both)
        found[f"{term}, neutral over class words"] = over_seeds(neutral / polar, 0)
    return found


def query_term(view: View) -> Parts:
    """POL-17: mean F over mean E of class words, at the start and over training; one per seed."""
    table = _terms(view)
    table = table[table["class"].isin(["positive", "negative"])]

    def ratio(rows: pd.DataFrame) -> pd.Series[float]:
        first, second = (rows[rows["term"] == term] for term in "FE")
        if (rows["epoch"] == 0).all():
            by_seed = [one.groupby("seed")["mean"].mean() for one in (first, second)]
        else:
            by_seed = [over_training(one["mean"], one) for one in (first, second)]
        return by_seed[0] / by_seed[1]

    return {
        "F over E at the start": over_seeds(ratio(table[table["epoch"] == 0])),
        "F over E later": over_seeds(ratio(table[table["epoch"] > 0])),
    }


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


def last_of(watched: Tables, setting: str = "plain") -> pd.DataFrame:
    """Quantities at the end of the runs of a setting: a row per seed."""
    path = watched["path"]
    path = path[(path["setting"] == setting) & (path["epoch"] == path["epoch"].max())]
    wide: pd.DataFrame = path.pivot(index="seed", columns="quantity", values="value")
    return wide


def embeddings_align(view: View) -> Parts:
    """POL-19: mean dot products by group; groups with neutral words over the positive pairs'."""
    last = last_of(view.of(steps.path))
    same = last["dot/positive-positive"]
    found = Parts()
    for pair in WORD_PAIRS:
        values = last[f"dot/{pair}"]
        is_ratio = "neutral" in pair
        found[pair] = over_seeds(values.abs() / same.abs(), 0) if is_ratio else over_seeds(values)
    return found


def imbalance_decides(views: Views) -> Parts:
    """POL-20: V·W after long SGD on each unbalanced set, W starting as on texts."""
    start = next(iter(steps.HEADS))
    found = {c: last_of(views.on(c).of(steps.balanced), start)["V·W"] for c in views.corpora}
    return {corpora.RATIOS[corpus]: over_seeds(values) for corpus, values in found.items()}


def formulas(view: View) -> Parts:
    """POL-A4: relative distance of the corrected and the printed forms from autograd."""
    found = view.of(steps.identities)
    words = len(view.of(steps.words))
    # The multi-class forms hold two classes too; the printed slip shows in either.
    return {name: exact(value, words) for name, value in found.items()}
