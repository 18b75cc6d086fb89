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
from heedful.reproduction.tables import beside, row, row_by_row
from heedful.reproduction.view import View, Views
from heedful.statistics import Estimate, over_seeds, sign_test
from heedful.studies.faithful import printed as paper
from heedful.studies.faithful.models import (
    ATTENTIONS,
    DEEP,
    DEPTH_VARIANTS,
    DEPTHS,
    EDITS,
    FROZEN,
    MAIN,
    VARIANTS,
    Setting,
    few,
    seeds_of,
    sizes,
    text,
)
from heedful.studies.faithful.printed import PAPER
from heedful.studies.faithful.steps import differences, measured, per_seed


def steps_of(settings: Iterable[Setting]) -> Callable[[Plan, str], Any]:
    """What an artifact of these models needs of one corpus."""
    wanted = tuple(settings)

    def needs(plan: Plan, corpus: str) -> list[Step[Any]]:
        return [
            measured(plan, corpus, setting, seed)
            for setting in wanted
            for seed in seeds_of(plan, corpus, setting)
        ]

    return needs


def many_seeds(plan: Plan, corpus: str) -> int:
    """Trainings of a model of T1."""
    return len(seeds_of(plan, corpus, Setting()))


def few_seeds(plan: Plan, corpus: str) -> int:
    """Trainings of any other."""
    return len(few(plan))


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


def with_frozen(variants: Sequence[str] = VARIANTS) -> list[Setting]:
    """The plain models, and those whose word vectors stay as they were loaded."""
    return [*models(variants), *(one for one in FROZEN if one.variant in variants)]


VECTORS = ("trained", "frozen")


def keys_of(view: View, asked: Setting) -> dict[str, Any]:
    """What names a row of T1, X1 and T3."""
    named = {"corpus": view.corpus, "attention": asked.attention, "model": asked.variant}
    return named | {"vectors": asked.vectors}


KEYS = (*paper.KEYS, "vectors")


def _of_both(published: pd.DataFrame) -> pd.DataFrame:
    """The paper's numbers beside both kinds of vectors: it does not say which it trained.

    Masked words have the frozen ones only, as published.
    """
    both = [published.assign(vectors=vectors) for vectors in VECTORS]
    both[0] = both[0][both[0]["model"] != "mlm"]
    return pd.concat(both, ignore_index=True)


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
        return [row(keys_of(view, asked), **scores(view, asked))]

    ours = each_model(views, _asked(variants, views.corpora), one)
    keys = list(KEYS)
    published = _of_both(paper.SCORES[paper.SCORES["model"].isin(variants)])
    table = beside(ours, published, keys) if len(published) else ours
    if views.corpora == ("diabetes",):
        table = ours
    said = _said(ours)
    if "base" in variants:
        said += f" {_sign_test(views, ours, variants)}"
    return Made(table, sentence=f"{said} {CHANGES}", shown=_shown(table, keys))


def _asked(variants: Sequence[str], corpora: Sequence[str]) -> list[Setting]:
    """The models of a table of scores; on Diabetes, which nobody here has, the plain ones."""
    return models(variants) if corpora == ("diabetes",) else with_frozen(variants)


def _said(table: pd.DataFrame) -> str:
    """What permuting costs each model on average over corpora and attentions."""
    means = table.groupby(["model", "vectors"], sort=False)["permuted"].mean().reset_index()
    parts = row_by_row(means, "{model} ({vectors}) {permuted:+.1f}", ", ")
    return f"Shuffled attention changes F1 by, in points on average: {parts}."


def _sign_test(views: Views, ours: pd.DataFrame, variants: Sequence[str]) -> str:
    """In how many runs of equal corpus, attention, vectors and seed each remedy loses more than
    base; masked words freeze their vectors, so their base is the frozen one."""
    cells = {
        name: [tuple(cell) for cell in rows[["corpus", "attention", "vectors"]].to_numpy()]
        for name, rows in ours.groupby("model")
    }
    parts = []
    for variant in variants:
        if variant == "base" or variant not in cells:
            continue
        apart = np.array(
            [
                value
                for corpus, attention, vectors in cells[variant]
                if (corpus, attention, vectors) in cells.get("base", [])
                for value in differences(
                    views.on(corpus),
                    _setting(variant, attention, vectors),
                    _setting("base", attention, vectors),
                    "change permuted f1",
                )
            ]
        )
        more, less = int((apart < 0).sum()), int((apart > 0).sum())
        chance = f", p = {sign_test(more, less):.2g}" if more + less else ""
        parts.append(f"{variant} in {more} of {more + less} runs{chance}")
    told = (
        "sign test over corpora, attentions, vectors and seeds, as if independent; ties left out; "
        "masked words against the base with frozen vectors"
    )
    return f"It costs more than base's ({told}): {'; '.join(parts)}."


def _setting(variant: str, attention: str, vectors: str) -> Setting:
    return Setting(variant, attention, is_frozen=vectors == "frozen" and variant != "mlm")


def _information(views: Views) -> Made:
    columns = {
        "information": "clustered", "by word": "by_word", "ceiling": "ceiling",
        "shuffled pairs": "shuffled", "by word, shuffled": "shuffled_by_word",
    }  # fmt: skip

    def on(sample: str, view: View, asked: Setting) -> list[dict[str, Any]]:
        got = [informed(view, asked, seed, sample) for seed in few(view.plan)]
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

    return over_seeds([of(first, seed) - of(second, seed) for seed in few(view.plan)])


def _confidence(views: Views) -> Made:
    names = {"confidence": "confidence", "pooled tokens": "confidence, pooled",
             "tokens that decide alike": "agreeing"}  # fmt: skip

    def one(view: View, asked: Setting) -> list[dict[str, Any]]:
        values = {n: over_seeds(per_seed(view, asked, name), 0, 1) for n, name in names.items()}
        return [row(keys_of(view, asked), **values)]

    ours = each_model(views, with_frozen(), one)
    return Made(
        beside(ours, _of_both(paper.CONFIDENCE), list(KEYS)),
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
        "η": ", ".join(f"{value:g}" for value in found.masked) + " (mean over masked words)",
        "δ": ", ".join(f"{value:g}" for value in found.tying) + " (mean over dimensions)",
    }
    table = pd.DataFrame({"setting": list(ours), "ours": list(ours.values())})
    table["paper"] = [paper.HYPERPARAMETERS[name] for name in ours]
    return Made(
        table,
        sentence=f"AMSGrad, {train.epochs} epochs or {found.updates:,} updates, whichever "
        "is more, best dev F1 of class 1.",
    )


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
        "T1", partial(_score_table, DEPTH_VARIANTS), steps_of(with_frozen(DEPTH_VARIANTS)), MAIN
    ),
    PAPER.artifact("T2", _information, steps_of(models(attentions=("+",))), MAIN),
    PAPER.artifact("T3", _confidence, steps_of(with_frozen()), MAIN),
    PAPER.artifact("T4", _hyperparameters),
    PAPER.artifact("T5", _corpora, lambda plan, corpus: [text(plan, corpus)]),
    PAPER.artifact("T6", _depth, steps_of(DEPTHS), DEEP),
    PAPER.artifact(
        "X1", partial(_score_table, ("residual",)), steps_of(with_frozen(("residual",))), MAIN
    ),
    PAPER.artifact(
        "X4", partial(_score_table, DEPTH_VARIANTS), steps_of(models(DEPTH_VARIANTS)), ("diabetes",)
    ),
)
