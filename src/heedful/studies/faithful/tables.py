"""The tables of the faithful study."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from heedful.corpora.vocabulary import SPECIALS
from heedful.reproduction.results import Step
from heedful.reproduction.study import Made, Plan
from heedful.reproduction.tables import beside, row
from heedful.reproduction.view import View, Views
from heedful.statistics import Estimate, over_seeds
from heedful.studies.faithful import printed as paper
from heedful.studies.faithful.models import (
    ATTENTIONS,
    DEEP,
    DEPTH_VARIANTS,
    DEPTHS,
    EDITS,
    MAIN,
    VARIANTS,
    Setting,
    sizes,
    text,
)
from heedful.studies.faithful.printed import PAPER
from heedful.studies.faithful.steps import measured, per_seed


def steps_of(settings: Iterable[Setting]) -> Callable[[Plan, str], Any]:
    """What an artifact of these models needs of one corpus."""
    wanted = tuple(settings)

    def needs(plan: Plan, corpus: str) -> list[Step[Any]]:
        return [measured(plan, corpus, setting, seed) for setting in wanted for seed in plan.seeds]

    return needs


RowsOf = Callable[[View, Setting], list[dict[str, Any]]]
"""The rows of one model on one corpus."""


def rows_of_models(view: View, settings: Iterable[Setting], rows: RowsOf) -> list[dict[str, Any]]:
    """The rows of a corpus's models; one that is not there is noted and leaves the others."""
    view.of(text)  # a corpus that is not here is said once, not for every model
    named = {f"{view.corpus}, {one.name}": one for one in settings}
    found = view.results.each(named, lambda name: rows(view, named[name]))
    return [one for part in found.values() for one in part]


def each_model(views: Views, settings: Iterable[Setting], rows: RowsOf) -> pd.DataFrame:
    """One table of the models on every corpus."""
    return views.table(lambda view: rows_of_models(view, settings, rows))


def models(
    variants: Sequence[str] = VARIANTS, attentions: Sequence[str] = ATTENTIONS
) -> list[Setting]:
    """The plain models, variant by attention."""
    return [Setting(variant, attention) for attention in attentions for variant in variants]


SCORES = {"f1": "f1", "F1 of class 0": "f1 of class 0", "accuracy": "accuracy"}
"""Columns of scores and what they are measured as; F1 is that of class 1, as in the paper."""


def scores(view: View, setting: Setting) -> dict[str, Estimate | float | str]:
    """F1 of both classes and accuracy, with their changes in points and the spread over seeds.

    Drops may have two modes over seeds, so each seed's F1 is kept too.
    """
    found: dict[str, Estimate | float | str] = {}
    for score, asked in SCORES.items():
        for edit in ("trained", *EDITS):
            kind, least = ("points", 0) if edit == "trained" else ("change", -100)
            values = per_seed(view, setting, f"{kind} {edit} {asked}")
            name = column(edit, score)
            found[name] = over_seeds(values, least, 100)
            if score == "f1":
                spread = float(np.std(values, ddof=1)) if len(values) > 1 else np.nan
                found[f"{name} spread"] = spread
                found[f"{name} by seed"] = " ".join(f"{value:.1f}" for value in values)
    for name, asked in {
        "permuted, one draw": "change one_draw f1",
        "uniform, bias refitted": "change refitted f1",
        "flippable": "flippable",
    }.items():
        found[name] = over_seeds(per_seed(view, setting, asked)).value
    return found


def column(edit: str, score: str) -> str:
    """The name of a score with trained attention, or of its change under an edit."""
    if edit == "trained":
        return score
    return edit if score == "f1" else f"{edit}: {score}"


SHOWN = tuple(column(edit, score) for score in SCORES for edit in ("trained", *EDITS))
CHANGES = "Columns of uniform and permuted attention are changes in points; F1 is that of class 1."


def _shown(table: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """The columns for the page: the paper's with their intervals, the other class and accuracy."""
    names = list(keys)
    for name in SHOWN:
        ends = (f"{name} low", f"{name} high") if name in ("f1", *EDITS) else ()
        names += [one for one in (name, *ends, f"{name}, paper") if one in table.columns]
    return table[names]


def _score_table(variants: Sequence[str], views: Views) -> Made:
    def one(view: View, asked: Setting) -> list[dict[str, Any]]:
        keys = {"corpus": view.corpus, "attention": asked.attention, "model": asked.variant}
        return [row(keys, **scores(view, asked))]

    ours = each_model(views, models(variants), one)
    keys = list(paper.KEYS)
    published = paper.SCORES[paper.SCORES["model"].isin(variants)]
    table = beside(ours, published, keys) if len(published) else ours
    if views.corpora == ("diabetes",):
        table = ours
    said = _said(ours)
    if "base" in variants:
        said += f" {_sign_test(views, ours, variants)}"
    return Made(table, sentence=f"{said} {CHANGES}", shown=_shown(table, keys))


def _said(table: pd.DataFrame) -> str:
    """What permuting costs each model on average over corpora and attentions."""
    means = table.groupby("model", sort=False)["permuted"].mean()
    parts = [f"{model} {value:+.1f}" for model, value in means.items()]
    return f"Shuffled attention changes F1 by, in points on average: {', '.join(parts)}."


def _sign_test(views: Views, ours: pd.DataFrame, variants: Sequence[str]) -> str:
    """In how many runs of equal corpus, attention and seed each remedy loses more than base."""
    from scipy.stats import binomtest

    cells = {
        name: [tuple(cell) for cell in rows[["corpus", "attention"]].to_numpy()]
        for name, rows in ours.groupby("model")
    }

    def changes(variant: str, shared: list[tuple[str, str]]) -> list[float]:
        return [
            value
            for corpus, attention in shared
            for value in per_seed(
                views.on(corpus), Setting(variant, attention), "change permuted f1"
            )
        ]

    parts = []
    for variant in variants:
        if variant != "base" and variant in cells:
            shared = [cell for cell in cells[variant] if cell in cells.get("base", [])]
            apart = np.array(changes(variant, shared)) - np.array(changes("base", shared))
            apart = apart[np.isfinite(apart) & (apart != 0)]
            more = int((apart < 0).sum())
            chance = f", p = {binomtest(more, len(apart)).pvalue:.2g}" if len(apart) else ""
            parts.append(f"{variant} in {more} of {len(apart)} runs{chance}")
    told = "sign test over corpora, attentions and seeds, as if independent; ties left out"
    return f"It costs more than base's ({told}): {'; '.join(parts)}."


def _information(views: Views) -> Made:
    columns = {
        "information": "clustered", "by word": "by_word", "ceiling": "ceiling",
        "shuffled pairs": "shuffled", "by word, shuffled": "shuffled_by_word",
    }  # fmt: skip

    def on(sample: str, view: View, asked: Setting) -> list[dict[str, Any]]:
        got = [informed(view, asked, seed, sample) for seed in view.seeds]
        values = {n: over_seeds([one[c] for one in got]) for n, c in columns.items()}
        keys = {"corpus": view.corpus, "sample": sample, "model": asked.variant}
        pairs, types = int(got[0]["pairs"]), int(got[0]["types"])
        return [row(keys, **values, pairs=pairs, types=types)]

    def of(view: View) -> Iterator[dict[str, Any]]:
        for sample in ("MF", "RS"):
            yield from rows_of_models(view, models(attentions=("+",)), partial(on, sample))

    ours = views.table(of)
    return Made(
        beside(ours, paper.INFORMATION, ["corpus", "sample", "model"]),
        sentence="Mutual information in nats between a word's embedding and what attention sees "
        "there, with its ceiling and, on shuffled pairs, its bias.",
        deviations=(f"At most {sizes(views.plan).measuring.pairs:,} pairs of train.",),
    )


def informed(
    view: View,
    setting: Setting,
    seed: int,
    sample: str,
    clustering: int = 0,
) -> dict[str, float]:
    """The information of one model on one sample."""
    table = view.of(measured, setting, seed)["information"]
    chosen_row = (table["sample"] == sample) & (table["clustering"] == clustering)
    return {str(name): value for name, value in table[chosen_row].iloc[0].items()}


def information_minus(
    view: View,
    first: Setting,
    second: Setting,
    sample: str,
    columns: tuple[str, str | None] = ("clustered", None),
) -> Estimate:
    """First minus second setting, paired by seed, of one column, less a second one if named."""

    def of(setting: Setting, seed: int) -> float:
        found = informed(view, setting, seed, sample)
        column, bias = columns
        return found[column] - (found[bias] if bias else 0.0)

    return over_seeds([of(first, seed) - of(second, seed) for seed in view.seeds])


def _confidence(views: Views) -> Made:
    names = {"confidence": "confidence", "pooled tokens": "confidence, pooled",
             "tokens that decide alike": "agreeing"}  # fmt: skip

    def one(view: View, asked: Setting) -> list[dict[str, Any]]:
        keys = {"corpus": view.corpus, "attention": asked.attention, "model": asked.variant}
        values = {n: over_seeds(per_seed(view, asked, name), 0, 1) for n, name in names.items()}
        return [row(keys, **values)]

    ours = each_model(views, models(), one)
    return Made(
        beside(ours, paper.CONFIDENCE, list(paper.KEYS)),
        sentence="Mean probability that a word alone gives to the (right) decision.",
    )


def _hyperparameters(views: Views) -> Made:
    found, train = sizes(views.plan), sizes(views.plan).train
    ours = {
        "embedding dimension": str(found.dim),
        "states, both directions": f"2 × {found.dim // 2}",
        "learning rate": f"{train.learning_rate:g}",
        "clipped norm": f"{train.clip_norm:g}",
        "batch": str(train.batch_size),
        "weight decay": f"{train.weight_decay:g}, not on attention",
        "share of masked words": "0.15",
        "η": ", ".join(f"{value:g}" for value in found.masked),
        "δ": ", ".join(f"{value:g}" for value in found.tying) + " (mean over dimensions)",
    }
    table = pd.DataFrame({"setting": list(ours), "ours": list(ours.values())})
    table["paper"] = [paper.HYPERPARAMETERS[name] for name in ours]
    return Made(table, sentence=f"AMSGrad, {train.epochs} epochs, best dev F1 of class 1.")


def _corpora(views: Views) -> Made:
    def of(view: View) -> list[dict[str, Any]]:
        data = view.of(text)
        train = data.splits["train"]
        counts = {split: len(part) for split, part in data.splits.items()}
        known = np.nan
        if data.vectors is not None:
            known = float((~np.isnan(data.vectors).any(1))[len(SPECIALS) :].mean())
        return [
            {
                "corpus": view.corpus,
                "length": float(train.lengths.mean()),
                "vocabulary": float(len(data.vocabulary) - len(SPECIALS)),
                **counts,
                "share of class 1": float((data.splits["test"].labels == 1).mean()),
                "words with a vector": known,
            }
        ]

    ours = views.table(of)
    return Made(beside(ours, paper.CORPORA, ["corpus"]), sentence="Lengths are those of train.")


def _depth(views: Views) -> Made:
    def one(view: View, asked: Setting) -> list[dict[str, Any]]:
        keys = {"corpus": view.corpus, "layers": float(asked.layers), "model": asked.variant}
        return [row(keys, **scores(view, asked))]

    ours = each_model(views, DEPTHS, one)
    keys = ["corpus", "layers", "model"]
    table = beside(ours, paper.DEPTH, keys)
    base = ours[ours["model"] == "base"].groupby("layers")["permuted"].mean()
    parts = ", ".join(f"{n:g} layers {v:+.1f}" for n, v in base.items())
    return Made(
        table,
        sentence=f"Base under shuffled attention: {parts}. {CHANGES}",
        shown=_shown(table, keys),
    )


TABLES = (
    PAPER.artifact(
        "T1", partial(_score_table, DEPTH_VARIANTS), steps_of(models(DEPTH_VARIANTS)), MAIN
    ),
    PAPER.artifact("T2", _information, steps_of(models(attentions=("+",))), MAIN),
    PAPER.artifact("T3", _confidence, steps_of(models()), MAIN),
    PAPER.artifact("T4", _hyperparameters),
    PAPER.artifact("T5", _corpora, lambda plan, corpus: [text(plan, corpus)]),
    PAPER.artifact("T6", _depth, steps_of(DEPTHS), DEEP),
    PAPER.artifact(
        "X1", partial(_score_table, ("residual",)), steps_of(models(("residual",))), MAIN
    ),
    PAPER.artifact(
        "X4", partial(_score_table, DEPTH_VARIANTS), steps_of(models(DEPTH_VARIANTS)), ("diabetes",)
    ),
)
