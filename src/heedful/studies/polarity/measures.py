"""What decides each claim of the polarity study on one corpus (docs/studies/polarity.md, "Claims").

A seed's words are the sample of the intervals within a run; seeds are the sample for accuracies and
class means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from heedful.audits.erasure import five_numbers
from heedful.reproduction.ledger import NotMeasurable, Parts
from heedful.reproduction.measures import exact, over_alike_seeds
from heedful.reproduction.view import View
from heedful.statistics import Estimate, mean, over_seeds, proportion
from heedful.statistics.association import spearman, spearman_of_few
from heedful.statistics.separation import auc, mean_ratio, median_ratio, standardised_gap
from heedful.studies.polarity import steps


class ScoredRun(NamedTuple):
    """The word scores of one seed, with their classes."""

    seed: int
    words: pd.DataFrame

    def of(self, name: str, rule: str = "kind") -> pd.DataFrame:
        """The words of one class."""
        return self.words[self.words[rule] == name]


def runs_of(view: View, model: str = "dp", scale: str = "10") -> list[ScoredRun]:
    """One run per seed."""
    table = steps.token_table(view, model, scale)
    return by_seed(table)


def by_seed(table: pd.DataFrame) -> list[ScoredRun]:
    """The words of each seed that is in the table."""
    seeds = sorted(int(seed) for seed in table["seed"].unique())
    return [ScoredRun(seed, table[table["seed"] == seed]) for seed in seeds]


def separation(
    run: ScoredRun, name: str, column: str = "attention", rule: str = "kind", neutral: int = 0
) -> Estimate:
    """AUC of a class's words against neutral words of more than so many occurrences."""
    first, second = run.of(name, rule), run.of("neutral", rule)
    second = second[occurrences(second) > neutral]
    names = [*first["word"], *second["word"]]
    return auc(first[column], second[column], names)


def occurrences(table: pd.DataFrame) -> pd.Series[Any]:
    """How often each word occurs in training texts."""
    return table[[c for c in table if str(c).startswith("count ")]].sum(axis=1)


def _signs(run: ScoredRun, names: Sequence[str], rule: str = "kind") -> dict[str, pd.Series[bool]]:
    """Whether each class word's polarity has the sign of its class."""
    negative, positive = names
    return {
        positive: run.of(positive, rule)["polarity"] > 0,
        negative: run.of(negative, rule)["polarity"] < 0,
    }


def right_signs(view: View, model: str = "dp", rule: str = "kind") -> Parts:
    """POL-1: share of each class's words whose polarity has the class's sign."""
    names = steps.class_names(view)
    runs = runs_of(view, model)
    found = Parts()
    for name in names[::-1]:
        signs = pd.concat([_signs(run, names, rule)[name] for run in runs], axis=0)
        words = pd.concat([run.of(name, rule)["word"] for run in runs], axis=0)
        by_word = signs.astype(float).groupby(words.to_numpy()).mean()
        share = mean(by_word.to_numpy(), [str(w) for w in by_word.index])
        found[role_of(name, names)] = share.cut(0, 1)
    return found


def role_of(name: str, names: Sequence[str]) -> str:
    """`positive` and `negative` whatever the corpus calls its two classes."""
    return ("negative", "positive")[list(names).index(name)] if len(names) == 2 else name


def neutral_small(view: View, model: str = "dp", least: int = 0) -> Estimate:
    """POL-2: median size of neutral polarities over that of class words, mean of the seeds.

    The interval is Student's over seeds, or that over words where there is one seed.
    """
    names = steps.class_names(view)
    values = []
    for run in runs_of(view, model):
        neutral = run.of("neutral")
        neutral = neutral[occurrences(neutral) > least]
        polar = pd.concat([run.of(name) for name in names])
        words = [*neutral["word"], *polar["word"]]
        values.append(median_ratio(neutral["polarity"].abs(), polar["polarity"].abs(), words))
    return values[0] if len(values) == 1 else over_seeds([value.value for value in values], 0)


def above_neutral(view: View) -> Parts:
    """POL-3, POL-11: AUC of attention scores, each class against neutral, in every seed."""
    names = steps.class_names(view)
    return {
        f"{role_of(name, names)}, seed {run.seed}": _known(separation(run, name), name)
        for run in runs_of(view)
        for name in names[::-1]
    }


def _known(estimate: Estimate, name: str) -> Estimate | NotMeasurable:
    """The estimate, unless a class has no word to estimate from."""
    if np.isnan(estimate.value):
        return NotMeasurable(f"no word is tied to {name}, or none is neutral, by the rule")
    return estimate


def accuracies(view: View, model: str) -> pd.DataFrame:
    """Test accuracy in points: a row per seed, a column per λ."""
    runs = view.of(steps.grid, model)["runs"]
    return 100 * runs.pivot(index="seed", columns="setting", values="accuracy")


def points(differences: pd.Series[float]) -> Estimate:
    """Differences of accuracy over seeds, in points; exactly the same one in all is an estimate."""
    return over_alike_seeds(differences.dropna(), -100, 100)


def shares(values: Sequence[float]) -> Estimate:
    """AUC, or another share, over seeds."""
    return over_alike_seeds(values, 0, 1)


def small_scale_hurts(view: View) -> Parts:
    """POL-4: accuracy at moderate λ minus accuracy at small λ, in points."""
    table = accuracies(view, "dp")
    moderate = table[["10", "20", "50", "100"]].mean(axis=1)
    return {f"minus λ={s}": points(moderate - table[s]) for s in ("0.001", "1")}


def large_scale_is_free(view: View) -> Parts:
    """POL-5: accuracy at λ = 10000 minus at 10, in points, for every model."""
    tables = {m: accuracies(view, m) for m in steps.MODELS}
    return {steps.TITLES[m]: points(t["10000"] - t["10"]) for m, t in tables.items()}


def is_mean_pooling(view: View) -> Parts:
    """POL-6: at λ = 10000, distance from uniform weights and what uniform weights change."""
    runs = view.of(steps.grid, "dp")["runs"]
    runs = runs[runs["setting"] == "10000"]
    changed = points(100 * (runs["uniform accuracy"] - runs["accuracy"]))
    distance = over_seeds(runs["total variation"], 0, 1)
    return {"total variation": distance, "uniform minus trained": changed}


def scale_is_crucial(view: View) -> Parts:
    """POL-7: accuracy at the other λ with the best dev accuracy minus at 0.001, by model."""
    found = Parts()
    for model in ("dp-l", "dp-a", "ad"):
        runs = view.of(steps.grid, model)["runs"]
        # Where 0.001 itself is best, its difference from itself would say nothing.
        best = str(runs.groupby("setting")["dev"].mean().drop("0.001").idxmax())
        table = accuracies(view, model)
        found[steps.TITLES[model]] = points(table[best] - table["0.001"])
    return found


def unreadable(view: View) -> Parts:
    """POL-8: at λ = 100 the classes lie apart, as V·W says, and one is not above neutral."""
    negative, positive = steps.class_names(view)
    table = view.of(steps.grid, "dp")["runs"]
    product = table[table["setting"] == "100"].set_index("seed")["V·W last"]
    gaps, agree, lower = [], [], []
    for run in runs_of(view, scale="100"):
        first, second = run.of(positive), run.of(negative)
        words = [*first["word"], *second["word"]]
        gap = standardised_gap(first["attention"], second["attention"], words).value
        gaps.append(abs(gap))
        agree.append(np.sign(gap) == np.sign(product[run.seed]))
        lower.append(separation(run, negative if gap > 0 else positive).value)
    return {
        "gap over s.d.": over_seeds(gaps, 0),
        "seeds with the sign of V·W": exact(float(np.mean(agree)), len(agree)),
        "AUC of the lower class": shares(lower),
    }


def scores_shrink(view: View) -> Parts:
    """POL-9: mean sizes at λ = 100 over those at 10, words averaged over seeds."""
    names = steps.class_names(view)
    tables = [steps.token_table(view, "dp", s) for s in ("100", "10")]

    def sizes(column: str, kinds: Sequence[str]) -> list[pd.Series[Any]]:
        chosen = [t[t["kind"].isin(kinds)] for t in tables]
        return [t[column].abs().groupby(t["word"]).mean() for t in chosen]

    found = Parts()
    for part, column, kinds in (
        ("attention", "attention", (*names, "neutral")),
        ("polarity of class words", "polarity", names),
    ):
        large, small = sizes(column, kinds)
        found[part] = mean_ratio(large, small, [str(word) for word in large.index])
    return found


def penalty_closes(view: View) -> Parts:
    """POL-10 on texts: class means, separation, gap and accuracy with the V·W penalty, λ = 100."""
    negative, positive = steps.class_names(view)
    without = view.of(steps.grid, "dp")["runs"]
    without = without[without["setting"] == "100"].set_index("seed")
    step = view.of(steps.penalised)
    runs, words = step["runs"].set_index("seed"), step["words"]
    words = steps.with_classes(view, words)
    seeds = by_seed(words)

    def gap(table: pd.DataFrame) -> pd.Series[Any]:
        return (table[f"attention/{positive}"] - table[f"attention/{negative}"]).abs()

    found = Parts()
    for role, name in (("positive", positive), ("negative", negative)):
        found[f"mean of {role}"] = over_seeds(runs[f"attention/{name}"])
        found[f"AUC of {role}"] = shares([separation(run, name).value for run in seeds])
    found["gap, with minus without"] = over_seeds((gap(runs) - gap(without)).dropna())
    change = (runs["accuracy"] - without["accuracy"]).dropna()
    count = sum(view.of(steps.sizes)["documents"]["test"])
    share = without["accuracy"].mean()
    error = float(np.sqrt(max(share * (1 - share), 1e-9) / count))
    found["accuracy change in s.e."] = over_alike_seeds(change / error)
    return found


def penalty_closes_made(view: View) -> Parts:
    """POL-10 on Data I, at the end of training (λ = 10 there)."""
    found = view.of(steps.path)
    table, words = found["path"], steps.with_classes(view, found["words"])
    last = table[table["epoch"] == table["epoch"].max()]
    wide = last.pivot_table(index=["setting", "seed"], columns="quantity", values="value")
    plain, closed = wide.loc["plain"], wide.loc["penalty"]
    gaps = [(t["attention/positive"] - t["attention/negative"]).abs() for t in (closed, plain)]
    words = words[words["setting"] == "penalty"]
    runs = by_seed(words)
    parts = Parts()
    for role in ("positive", "negative"):
        parts[f"mean of {role}"] = over_seeds(closed[f"attention/{role}"])
        parts[f"AUC of {role}"] = _over_words([separation(run, role) for run in runs])
    parts["gap, with minus without"] = over_seeds(gaps[0] - gaps[1])
    return parts


def _over_words(estimates: Sequence[Estimate]) -> Estimate:
    """The mean over seeds; where none varies, the first one's interval over words."""
    values = [estimate.value for estimate in estimates]
    return estimates[0] if len(set(values)) == 1 else over_seeds(values, 0, 1)


def same_patterns(view: View, model: str) -> Parts:
    """POL-12: POL-1 to POL-3 for another model."""
    signs = right_signs(view, model)
    found = Parts({f"sign of {name}": part for name, part in signs.items()})
    found["neutral over class words"] = neutral_small(view, model)
    names = steps.class_names(view)
    runs = runs_of(view, model)
    for name in names[::-1]:
        values = [separation(run, name).value for run in runs]
        found[f"AUC of {role_of(name, names)}"] = shares(values)
    return found


def weight_runs(view: View) -> list[ScoredRun]:
    """Mean attention weights of words in test texts at λ = 10, one run per seed."""
    table = view.of(steps.grid, "dp")["weights"].rename(columns={"word": "id"})
    return by_seed(steps.with_classes(view, table))


def weights_above(view: View) -> Parts:
    """POL-13: AUC of mean weights in test texts, each class against neutral, in every seed."""
    names = steps.class_names(view)
    return {
        f"{role_of(name, names)}, seed {run.seed}": separation(run, name, "weight")
        for run in weight_runs(view)
        for name in names[::-1]
    }


def same_order(view: View) -> Estimate:
    """POL-14: share of seeds whose classes have the same order in weights as in scores."""
    negative, positive = steps.class_names(view)

    def gaps(runs: list[ScoredRun], column: str) -> list[float]:
        return [run.of(positive)[column].mean() - run.of(negative)[column].mean() for run in runs]

    weights = gaps(weight_runs(view), "weight")
    scores = gaps(runs_of(view), "attention")
    agree = np.sign(weights) == np.sign(scores)
    return proportion(int(agree.sum()), len(agree))


def short_texts(view: View) -> Parts | NotMeasurable:
    """POL-15: texts of neutral words with outlying weights, against those of all neutral words."""
    lengths, lows = [], []
    for run in weight_runs(view):
        neutral = run.of("neutral")
        top = five_numbers(neutral["weight"].to_numpy())["high"]
        outliers = neutral[neutral["weight"] > (np.inf if top is None else top)]
        if len(outliers):
            lengths.append(outliers["length"].median() - neutral["length"].median())
            lows.append(outliers["low"].mean() - neutral["low"].mean())
    if not lengths:
        return NotMeasurable("no neutral word lies above the upper whisker in any seed")
    found = Parts({"median length": over_seeds(lengths)})
    found["share without a high score"] = over_seeds(lows, -1, 1)
    return found


def follows_alignment(view: View) -> Parts:
    """POL-18: rank correlation over seeds between V·W and the gap of attention scores, at each λ.

    Scores shrink as λ grows and V·W does not, so that ranks over several λ compare what cannot be
    compared: they stand in X-4.
    """
    runs = gaps_of(view)
    found = Parts()
    for scale in steps.LARGE_SCALES:
        rows = runs[runs["setting"] == scale]
        found[f"λ = {scale}"] = spearman_of_few(rows["V·W mean"], rows["gap"])
    return found


def gaps_of(view: View) -> pd.DataFrame:
    """The runs of DP with the gap between the classes' mean attention scores."""
    negative, positive = steps.class_names(view)
    runs = view.of(steps.grid, "dp")["runs"]
    return runs.assign(gap=runs[f"attention/{positive}"] - runs[f"attention/{negative}"])


def pooled_alignment(view: View) -> Estimate:
    """X-4: the same over all λ and seeds at once, between λ V·W and the gap."""
    runs = gaps_of(view)
    driven = runs["setting"].astype(float) * runs["V·W mean"]
    names = (runs["setting"] + "/" + runs["seed"].astype(str)).tolist()
    return spearman(driven, runs["gap"], names)


def every_seed(view: View) -> Estimate:
    """POL-21: share of seeds in which POL-1 to POL-3 hold."""
    names = steps.class_names(view)
    held = []
    for run in runs_of(view):
        signs = all(float(found.mean()) >= 0.95 for found in _signs(run, names).values())
        polar = pd.concat([run.of(name) for name in names])["polarity"].abs().median()
        small = run.of("neutral")["polarity"].abs().median() < polar / 3
        held.append(signs and small and all(separation(run, n).value > 0.5 for n in names))
    return exact(float(np.mean(held)), len(held))
