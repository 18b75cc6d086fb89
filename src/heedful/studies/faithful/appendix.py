"""The faithful study's tables that the paper promises or omits, and ours: controls, rationales."""

from __future__ import annotations

from typing import Any

import numpy as np

from heedful.reproduction.measures import trained_average, trained_contrast
from heedful.reproduction.results import Step
from heedful.reproduction.study import Made, Plan
from heedful.reproduction.tables import row, row_by_row
from heedful.reproduction.view import View, Views
from heedful.statistics import Estimate, over_seeds
from heedful.studies.faithful.models import (
    ATTENTIONS,
    CONTROLS,
    DEEP,
    EDITS,
    MAIN,
    QUERIES,
    RATED,
    RATIONALES,
    TUNED,
    Setting,
    few,
    lasting,
    searched,
)
from heedful.studies.faithful.printed import PAPER
from heedful.studies.faithful.steps import (
    chosen,
    instances,
    logs_of,
    measured,
    minus,
    per_seed,
    probed,
)
from heedful.studies.faithful.tables import (
    each_model,
    information_minus,
    models,
    rows_of_models,
    scores,
    steps_of,
)

query_needs = steps_of(QUERIES.values())
"""Dot attention by how its query starts."""


def _lasting_needs(plan: Plan, corpus: str) -> list[Step[Any]]:
    found: list[Step[Any]] = steps_of([*QUERIES.values(), *lasting(corpus)])(plan, corpus)
    return found


def _queries(views: Views) -> Made:
    def one(view: View, setting: Setting) -> list[dict[str, Any]]:
        values = scores(view, setting)
        asked = {n: values[n] for n in ("f1", *EDITS)}
        spread = over_seeds(per_seed(view, setting, "entropy"), 0, 1)
        logs = logs_of(view, setting)
        last = over_seeds([float(log["dev_entropy"].iloc[-1]) for log in logs], 0, 1)
        best = [float(log["epoch"].iloc[int(log["dev_f1"].argmax())]) for log in logs]
        keys: dict[str, Any] = {"corpus": view.corpus, "query": setting.query}
        keys |= {"model": setting.variant}
        keys |= {"states": "wide" if setting.is_wide else "usual", "vectors": setting.vectors}
        keys |= {"epochs": float(logs[0]["epoch"].iloc[-1]), "best epoch": float(np.mean(best))}
        return [row(keys, **{"entropy / log n": spread, "dev, last epoch": last}, **asked)]

    table = views.table(
        lambda view: rows_of_models(view, [*QUERIES.values(), *lasting(view.corpus)], one)
    )
    usual = table[(table["states"] == "usual") & (table["epochs"] == table["epochs"].min())]
    means = usual.groupby("query", sort=False)["entropy / log n"].mean()
    said = ", ".join(f"{query} {value:.3f}" for query, value in means.items())
    return Made(
        table,
        sentence=f"Entropy of dot attention over its maximum, by query start: {said}. Wider states "
        "and longer trainings stand below; the weights are those of the best dev F1, so a longer "
        "training shows in the entropy of its last epoch.",
    )


def _strengths(views: Views) -> Made:
    def one(view: View, objective: Setting) -> list[dict[str, Any]]:
        variant = objective.variant
        kept = view.of(chosen, variant)["strength"]
        return [
            _strength(view, variant, setting)
            | {"chosen on dev": "yes" if setting.strength == kept else ""}
            for setting in (Setting(), *searched(view.plan, variant))
        ]

    table = each_model(views, models(TUNED, ("+",)), one)
    picked = table[table["chosen on dev"] == "yes"]
    said = row_by_row(picked, "{objective} {strength:g} on {corpus}", ", ")
    return Made(table, sentence=f"Chosen on dev: {said}.")


def _strength(view: View, variant: str, setting: Setting) -> dict[str, Any]:
    values, seeds = scores(view, setting), few(view.plan)
    keys: dict[str, Any] = {
        "corpus": view.corpus,
        "objective": variant,
        "strength": setting.strength or 0.0,
    }
    keys |= {"seeds": len(few(view.plan)), "chosen on dev": ""}
    dev = {
        f"dev {name}": over_seeds(per_seed(view, setting, asked, seeds)).value
        for name, asked in {
            "f1": "dev f1",
            "uniform": "dev uniform",
            "permuted": "dev permuted",
        }.items()
    }
    sure = over_seeds(per_seed(view, setting, "confidence"), 0, 1)
    asked = {n: values[n] for n in ("f1", *EDITS)}
    table = view.of(measured, setting, view.seeds[0]).get("information")
    kept = (
        np.nan if table is None else float(table.loc[table["sample"] == "MF", "clustered"].iloc[0])
    )
    informed = {"information, MF, first seed": kept}
    return row(keys, **dev, **asked, confidence=sure, **informed)


def _strength_needs(plan: Plan, corpus: str) -> list[Step[Any]]:
    found: list[Step[Any]] = []
    for variant in TUNED:
        found.append(chosen(plan, corpus, variant))
        found += steps_of([Setting(), *searched(plan, variant)])(plan, corpus)
    return found


control_needs = steps_of([*models(("base", "tying")), *CONTROLS.values()])
"""The controls' models, and the plain ones that they are compared with."""


def _controls(views: Views) -> Made:
    plain = {f"{one.variant} {one.attention}": one for one in models(("base", "tying"))}
    names = {setting: name for name, setting in (plain | CONTROLS).items()}

    def one(view: View, setting: Setting) -> list[dict[str, Any]]:
        values = scores(view, setting)
        drifts = logs_of(view, setting)
        ends = {
            f"{norm} {end}": over_seeds([float(d[name].iloc[at]) for d in drifts]).value
            for norm, name in {"‖e‖": "embedding", "‖h − e‖": "apart"}.items()
            for end, at in {"first": 0, "last": -1}.items()
        }
        asked = {n: values[n] for n in ("f1", *EDITS, "uniform, bias refitted")}
        return [row({"corpus": view.corpus, "model": names[setting]}, **asked, **ends)]

    return Made(
        each_model(views, names, one),
        sentence="Frozen and random word vectors, queries of the instance, a bias fitted again, "
        "and whether states or embeddings moved.",
    )


def _rationales(views: Views) -> Made:
    def one(view: View, asked: Setting) -> list[dict[str, Any]]:
        rows, base = instances(view, asked), instances(view, Setting())
        values: dict[str, Estimate] = {}
        for column, name in RATED.items():
            values[name] = trained_average(rows, f"{column}_attention")
            values[f"{name}, random"] = trained_average(rows, f"{column}_random")
            if asked.variant != "base":
                difference = trained_contrast(rows, base, f"{column}_attention", 1)
                values[f"{name} − base"] = difference
        return [row({"corpus": view.corpus, "model": asked.variant}, **values)]

    table = each_model(views, models(attentions=("+",)), one)
    said = row_by_row(table, "{model} {AUPRC:.2f} on {corpus}", ", ")
    return Made(table, sentence=f"Attention against known evidence, AUPRC: {said}.")


def _probe_needs(plan: Plan, corpus: str) -> list[Step[Any]]:
    asked = models(attentions=("+",))
    return [probed(plan, corpus, one, seed) for one in asked for seed in few(plan)]


def _probes(views: Views) -> Made:
    def one(view: View, setting: Setting) -> list[dict[str, Any]]:
        tables = [
            view.of(probed, setting, seed).set_index(["source", "measure"])
            for seed in few(view.plan)
        ]
        values = {
            name: over_seeds([float(table["value"][at]) for table in tables], -1, 1)
            for name, at in {
                "accuracy": ("state", "accuracy"),
                "baseline": ("state", "baseline"),
                "gain": ("state", "gain"),
                "from the embedding": ("embedding", "accuracy"),
            }.items()
        }
        first, at = tables[0], ("state", "accuracy")
        ends = {f"first seed {end}": float(first[end][at]) for end in ("value", "low", "high")}
        sizes = {"places": int(first["places"][at]), "words": int(first["types"][at])}
        keys = {"corpus": view.corpus, "model": setting.variant}
        return [row(keys, **values, **ends, **sizes)]

    table = each_model(views, models(attentions=("+",)), one)
    said = [
        f"{model} {', '.join(f'{value:.3f}' for value in rows['accuracy'])}"
        for model, rows in table.groupby("model", sort=False)
    ]
    corpora = ", ".join(dict.fromkeys(table["corpus"]))
    return Made(
        table,
        sentence=f"A linear probe names the word of a state ({corpora}): {'; '.join(said)}. The "
        f"most frequent word alone is right {table['baseline'].mean():.2f} of the time.",
    )


YARDSTICK = {
    "F1": "points trained f1",
    "uniform": "change uniform f1",
    "permuted": "change permuted f1",
    "confidence": "confidence",
}


def _over_frozen(views: Views) -> Made:
    def one(view: View, masked: Setting) -> list[dict[str, Any]]:
        frozen = Setting(attention=masked.attention, is_frozen=True)
        keys = {"corpus": view.corpus, "attention": masked.attention}
        values = {name: minus(view, masked, frozen, asked) for name, asked in YARDSTICK.items()}
        if masked.attention == "+":
            values |= {
                f"information, {sample}": information_minus(view, masked, frozen, sample)
                for sample in ("MF", "RS")
            }
        return [row(keys, **values)]

    table = each_model(views, models(("mlm",)), one)
    said = row_by_row(table, "{permuted:+.1f} on {corpus} ({attention})", ", ")
    return Made(
        table,
        sentence="Masked words freeze the word vectors. Against a base that freezes them too, "
        f"shuffled attention changes their F1 by, in points: {said}.",
    )


EXTRAS = (
    PAPER.artifact("X2", _queries, _lasting_needs, DEEP),
    PAPER.artifact("X3", _strengths, _strength_needs, MAIN),
    PAPER.artifact("X5", _controls, control_needs, DEEP),
    PAPER.artifact("X6", _rationales, steps_of(models(attentions=("+",))), RATIONALES),
    PAPER.artifact(
        "X10",
        _over_frozen,
        steps_of(
            one
            for a in ATTENTIONS
            for one in (Setting("mlm", a), Setting(attention=a, is_frozen=True))
        ),
        DEEP,
    ),
    PAPER.artifact("X9", _probes, _probe_needs, MAIN),
)
