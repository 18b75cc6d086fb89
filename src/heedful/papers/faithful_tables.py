"""The tables of the faithful study."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from heedful.corpora.vocabulary import SPECIALS
from heedful.jobs.beside import beside, gathered, row
from heedful.jobs.measuring import average, contrast
from heedful.jobs.results import Results, Step
from heedful.jobs.study import Artifact, Made, Plan
from heedful.papers import faithful_numbers as paper
from heedful.papers.faithful_models import (
    ATTENTIONS,
    DEEP,
    LONG,
    MAIN,
    RATIONALES,
    SMOKE,
    TUNED,
    VARIANTS,
    Setting,
    sizes,
    text,
)
from heedful.papers.faithful_steps import (
    chosen,
    few_seeds,
    measured,
    per_seed,
    search_seeds,
    searched,
)
from heedful.statistics import Estimate, over_seeds

LAYERS = (1, 2, 3)
DEPTH_VARIANTS = ("base", "concat", "tying", "mlm")
OTHER_SUMS = ("sst", SMOKE)
"""Where the other reductions of both penalties are tried too."""
EDITS = ("uniform", "permuted")

CONTROLS = {
    "base, frozen vectors": Setting(is_frozen=True),
    "tying, frozen vectors": Setting("tying", is_frozen=True),
    "base, random vectors": Setting(is_random=True),
    "tying, random vectors": Setting("tying", is_random=True),
    "base, query of the instance": Setting(attention="•", query="instance"),
    "tying, query of the instance": Setting("tying", attention="•", query="instance"),
}
"""What sets one cause apart from the others (faithful.md §5, §6, footnote 8)."""
QUERIES = {
    (query, variant): Setting(variant, "•", query=query)
    for query in ("default", "normal")
    for variant in ("base", "concat")
}


def steps_of(settings: Iterable[Setting], is_few: bool = False) -> Callable[[Plan, str], Any]:
    """What an artifact of these models needs of one corpus."""
    wanted = tuple(settings)

    def needs(plan: Plan, corpus: str) -> list[Step[Any]]:
        seeds = few_seeds(plan, corpus) if is_few else plan.seeds
        return [measured(plan, corpus, setting, seed) for setting in wanted for seed in seeds]

    return needs


def models(
    variants: Sequence[str] = VARIANTS, attentions: Sequence[str] = ATTENTIONS
) -> list[Setting]:
    """The plain models, variant by attention."""
    return [Setting(variant, attention) for attention in attentions for variant in variants]


def scores(
    results: Results,
    plan: Plan,
    corpus: str,
    setting: Setting,
    seeds: tuple[int, ...] | None = None,
) -> dict[str, Estimate | float]:
    """F1 and its changes in points, with the spread over seeds, and accuracy beside them."""
    found: dict[str, Estimate | float] = {}
    for name, asked in {
        "f1": "points trained f1",
        "uniform": "change uniform f1",
        "permuted": "change permuted f1",
    }.items():
        values = per_seed(results, plan, corpus, setting, asked, seeds)
        found[name] = over_seeds(values)
        found[f"{name} spread"] = float(np.std(values, ddof=1)) if len(values) > 1 else np.nan
    for name, asked in {
        "permuted, one draw": "change one_draw f1",
        "uniform, bias refitted": "change refitted f1",
        "accuracy": "points trained accuracy",
        "uniform accuracy": "change uniform accuracy",
        "permuted accuracy": "change permuted accuracy",
        "uniform F1 of class 0": "change uniform f1 of class 0",
        "permuted F1 of class 0": "change permuted f1 of class 0",
        "flippable": "flippable",
    }.items():
        found[name] = over_seeds(per_seed(results, plan, corpus, setting, asked, seeds)).value
    return found


SHOWN = ("f1", "uniform", "permuted", "accuracy", "uniform accuracy", "permuted accuracy")


def _shown(table: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """The columns for the page: what the paper prints, and accuracy."""
    names = [
        str(column)
        for column in table.columns
        if any(column == n or column in (f"{n} low", f"{n} high", f"{n}, paper") for n in SHOWN)
    ]
    return table[[*keys, *names]]


def _score_table(variants: Sequence[str], results: Results, plan: Plan) -> Made:
    def of(corpus: str) -> list[dict[str, Any]]:
        return [
            row({"corpus": corpus, "attention": one.attention, "model": one.variant},
                **scores(results, plan, corpus, one))
            for one in models(variants)
        ]  # fmt: skip

    ours = gathered(results.each(plan.corpora, of))
    keys = list(paper.KEYS)
    published = paper.SCORES[paper.SCORES["model"].isin(variants)]
    table = beside(ours, published, keys) if len(published) else ours
    if plan.corpora == ("diabetes",):
        table = ours
    return Made(table, sentence=_said(ours), shown=_shown(table, keys))


def _said(table: pd.DataFrame) -> str:
    """What permuting costs each model on average over corpora and attentions."""
    means = table.groupby("model", sort=False)["permuted"].mean()
    parts = [f"{model} {value:+.1f}" for model, value in means.items()]
    return f"Shuffled attention changes F1 by, in points on average: {', '.join(parts)}."


def _information(results: Results, plan: Plan) -> Made:
    def of(corpus: str) -> list[dict[str, Any]]:
        found = []
        for sample in ("MF", "RS"):
            for variant in VARIANTS:
                got = [
                    informed(results, plan, corpus, Setting(variant), s, sample) for s in plan.seeds
                ]
                columns = {
                    "information": "clustered", "by word": "by_word", "ceiling": "ceiling",
                    "shuffled pairs": "shuffled", "by word, shuffled": "shuffled_by_word",
                }  # fmt: skip
                values = {n: over_seeds([one[c] for one in got]) for n, c in columns.items()}
                keys = {"corpus": corpus, "sample": sample, "model": variant}
                pairs, types = int(got[0]["pairs"]), int(got[0]["types"])
                found.append(row(keys, **values, pairs=pairs, types=types))
        return found

    ours = gathered(results.each(plan.corpora, of))
    return Made(
        beside(ours, paper.INFORMATION, ["corpus", "sample", "model"]),
        sentence="Mutual information in nats between a word's embedding and what attention sees "
        "there, with its ceiling and, on shuffled pairs, its bias.",
        deviations=(f"At most {sizes(plan).measuring.pairs:,} pairs of train.",),
    )


def informed(
    results: Results,
    plan: Plan,
    corpus: str,
    setting: Setting,
    seed: int,
    sample: str,
    clustering: int = 0,
) -> dict[str, float]:
    """The information of one model on one sample."""
    table = results[measured(plan, corpus, setting, seed)]["information"]
    chosen_row = (table["sample"] == sample) & (table["clustering"] == clustering)
    return {str(name): value for name, value in table[chosen_row].iloc[0].items()}


def _confidence(results: Results, plan: Plan) -> Made:
    def of(corpus: str) -> list[dict[str, Any]]:
        found = []
        for one in models():
            keys = {"corpus": corpus, "attention": one.attention, "model": one.variant}
            names = {"confidence": "confidence", "pooled tokens": "confidence, pooled",
                     "tokens that decide alike": "agreeing"}  # fmt: skip
            values = {
                n: over_seeds(per_seed(results, plan, corpus, one, asked))
                for n, asked in names.items()
            }
            found.append(row(keys, **values))
        return found

    ours = gathered(results.each(plan.corpora, of))
    return Made(
        beside(ours, paper.CONFIDENCE, list(paper.KEYS)),
        sentence="Mean probability that a word alone gives to the (right) decision.",
    )


def _hyperparameters(results: Results, plan: Plan) -> Made:
    found, train = sizes(plan), sizes(plan).train
    ours = {
        "embedding dimension": str(found.dim),
        "states, both directions": f"2 × {found.dim // 2}",
        "learning rate": f"{train.learning_rate:g}",
        "clipped norm": f"{train.clip_norm:g}",
        "batch": str(train.batch_size),
        "weight decay": f"{train.weight_decay:g}, not on attention",
        "share of masked words": "0.15",
        "η": ", ".join(f"{value:g}" for value in found.masked[""]),
        "δ": ", ".join(f"{value:g}" for value in found.tying) + " (mean over dimensions)",
    }
    table = pd.DataFrame({"setting": list(ours), "ours": list(ours.values())})
    table["paper"] = [paper.HYPERPARAMETERS[name] for name in ours]
    return Made(table, sentence=f"AMSGrad, {train.epochs} epochs, best dev F1 of class 1.")


def _corpora(results: Results, plan: Plan) -> Made:
    def of(corpus: str) -> list[dict[str, Any]]:
        data = results[text(plan, corpus)]
        train = data.splits["train"]
        counts = {split: len(part) for split, part in data.splits.items()}
        known = np.nan
        if data.vectors is not None:
            known = float((~np.isnan(data.vectors).any(1))[len(SPECIALS) :].mean())
        return [
            {
                "corpus": corpus,
                "length": float(train.lengths.mean()),
                "vocabulary": float(len(data.vocabulary) - len(SPECIALS)),
                **counts,
                "share of class 1": float((data.splits["test"].labels == 1).mean()),
                "words with a vector": known,
            }
        ]

    ours = gathered(results.each(plan.corpora, of))
    return Made(beside(ours, paper.CORPORA, ["corpus"]), sentence="Lengths are those of train.")


def _depth(results: Results, plan: Plan) -> Made:
    def of(corpus: str) -> list[dict[str, Any]]:
        seeds = few_seeds(plan, corpus)
        return [
            row({"corpus": corpus, "layers": float(layers), "model": variant},
                **scores(results, plan, corpus, Setting(variant, layers=layers), seeds))
            for layers in LAYERS
            for variant in DEPTH_VARIANTS
        ]  # fmt: skip

    ours = gathered(results.each(plan.corpora, of))
    keys = ["corpus", "layers", "model"]
    table = beside(ours, paper.DEPTH, keys)
    base = ours[ours["model"] == "base"].groupby("layers")["permuted"].mean()
    parts = ", ".join(f"{int(n)} layers {v:+.1f}" for n, v in base.items())
    return Made(
        table, sentence=f"Base, F1 under shuffled attention: {parts}.", shown=_shown(table, keys)
    )


def _queries(results: Results, plan: Plan) -> Made:
    def of(corpus: str) -> list[dict[str, Any]]:
        seeds = few_seeds(plan, corpus)
        found = []
        for (query, variant), setting in QUERIES.items():
            values = scores(results, plan, corpus, setting, seeds)
            asked = {n: values[n] for n in ("f1", *EDITS)}
            spread = over_seeds(per_seed(results, plan, corpus, setting, "entropy", seeds))
            keys = {"corpus": corpus, "query": query, "model": variant}
            found.append(row(keys, **{"entropy / log n": spread}, **asked))
        return found

    table = gathered(results.each(plan.corpora, of))
    means = table.groupby("query", sort=False)["entropy / log n"].mean()
    said = ", ".join(f"{query} {value:.3f}" for query, value in means.items())
    return Made(
        table, sentence=f"Entropy of dot attention over its maximum, by query start: {said}."
    )


def _strengths(results: Results, plan: Plan) -> Made:
    def of(corpus: str) -> list[dict[str, Any]]:
        found = []
        for variant in TUNED:
            kept = results[chosen(plan, corpus, variant)]["strength"]
            seeds = search_seeds(plan, corpus, variant)
            tried = [Setting(), *searched(plan, corpus, variant)]
            for setting in tried:
                found.append(
                    _strength(results, plan, corpus, variant, setting, seeds)
                    | {"chosen on dev": "yes" if setting.strength == kept else ""}
                )
            for setting in other_sums(plan, corpus, variant):
                found.append(_strength(results, plan, corpus, variant, setting, plan.seeds[:1]))
        return found

    table = gathered(results.each(plan.corpora, of))
    picked = table[table["chosen on dev"] == "yes"]
    said = ", ".join(
        f"{r['objective']} {r['strength']:g} on {r['corpus']}" for _, r in picked.iterrows()
    )
    return Made(table, sentence=f"Chosen on dev: {said}.")


def _strength(
    results: Results,
    plan: Plan,
    corpus: str,
    variant: str,
    setting: Setting,
    seeds: tuple[int, ...],
) -> dict[str, Any]:
    values = scores(results, plan, corpus, setting, seeds)
    keys: dict[str, Any] = {
        "corpus": corpus,
        "objective": variant,
        "strength": setting.strength or 0.0,
    }
    keys |= {"reduction": setting.over or "default", "seeds": len(seeds), "chosen on dev": ""}
    dev = {
        f"dev {name}": over_seeds(per_seed(results, plan, corpus, setting, asked, seeds)).value
        for name, asked in {
            "f1": "dev f1",
            "uniform": "dev uniform",
            "permuted": "dev permuted",
        }.items()
    }
    sure = over_seeds(per_seed(results, plan, corpus, setting, "confidence", seeds))
    asked = {n: values[n] for n in ("f1", *EDITS)}
    table = results[measured(plan, corpus, setting, plan.seeds[0])].get("information")
    kept = (
        np.nan if table is None else float(table.loc[table["sample"] == "MF", "clustered"].iloc[0])
    )
    return row(keys, **dev, **asked, confidence=sure, **{"information, MF": kept})


def other_sums(plan: Plan, corpus: str, variant: str) -> list[Setting]:
    """The other reduction of a penalty (§2.3, §2.4), at strengths of the same effect or the grid."""
    if corpus not in OTHER_SUMS:
        return []
    if variant == "tying":
        return [
            Setting("tying", strength=d / sizes(plan).dim, over="sum")
            for d in sizes(plan).tying[-1:]
        ]
    grid = sizes(plan).masked[""]
    return [Setting("mlm", strength=value, over="words") for value in grid[-plan.pick(1, 5) :]]


def _strength_needs(plan: Plan, corpus: str) -> list[Step[Any]]:
    found: list[Step[Any]] = []
    for variant in TUNED:
        found.append(chosen(plan, corpus, variant))
        seeds = search_seeds(plan, corpus, variant)
        tried = [Setting(), *searched(plan, corpus, variant)]
        found += [measured(plan, corpus, one, seed) for one in tried for seed in seeds]
        others = other_sums(plan, corpus, variant)
        found += [measured(plan, corpus, one, plan.seeds[0]) for one in others]
    return found


def controls(corpus: str) -> dict[str, Setting]:
    """The controls of a corpus: on long texts only those that artefact checks need."""
    is_kept = corpus not in LONG
    return {n: s for n, s in CONTROLS.items() if is_kept or s.query == "normal"}


def control_needs(plan: Plan, corpus: str) -> list[Step[Any]]:
    """The controls' models, and the plain ones that they are compared with."""
    seeds = few_seeds(plan, corpus)
    plain = models(("base", "tying"))
    return [
        measured(plan, corpus, one, seed)
        for one in (*plain, *controls(corpus).values())
        for seed in seeds
    ]


def _controls(results: Results, plan: Plan) -> Made:
    def of(corpus: str) -> list[dict[str, Any]]:
        seeds = few_seeds(plan, corpus)
        plain = {f"{one.variant} {one.attention}": one for one in models(("base", "tying"))}
        found = []
        for name, setting in (plain | controls(corpus)).items():
            values = scores(results, plan, corpus, setting, seeds)
            drift = results[measured(plan, corpus, setting, seeds[0])]["drift"]
            ends = {
                "‖e‖ first": float(drift["embedding"].iloc[0]),
                "‖e‖ last": float(drift["embedding"].iloc[-1]),
                "‖h − e‖ first": float(drift["apart"].iloc[0]),
                "‖h − e‖ last": float(drift["apart"].iloc[-1]),
            }
            asked = {n: values[n] for n in ("f1", *EDITS, "uniform, bias refitted")}
            found.append(row({"corpus": corpus, "model": name}, **asked, **ends))
        return found

    return Made(
        gathered(results.each(plan.corpora, of)),
        sentence="Frozen and random word vectors, queries of the instance, a bias fitted again, and "
        "whether states or embeddings moved.",
    )


RATED = {"auprc": "AUPRC", "f1": "token F1", "mass": "mass on evidence"}
RATED_VARIANTS = ("base", "concat", "tying", "mlm")


def _rationales(results: Results, plan: Plan) -> Made:
    def of(corpus: str) -> list[dict[str, Any]]:
        seeds = few_seeds(plan, corpus)
        tables = {
            v: [results[measured(plan, corpus, Setting(v), s)]["instances"] for s in seeds]
            for v in RATED_VARIANTS
        }
        found = []
        for variant, rows in tables.items():
            values: dict[str, Estimate] = {}
            for column, name in RATED.items():
                values[name] = average(rows, f"{column}_attention")
                values[f"{name}, random"] = average(rows, f"{column}_random")
                if variant != "base":
                    difference = contrast(rows, tables["base"], f"{column}_attention")
                    values[f"{name} − base"] = difference
            found.append(row({"corpus": corpus, "model": variant}, **values))
        return found

    table = gathered(results.each(plan.corpora, of))
    parts = [f"{r['model']} {r['AUPRC']:.2f} on {r['corpus']}" for _, r in table.iterrows()]
    return Made(table, sentence=f"Attention against known evidence, AUPRC: {', '.join(parts)}.")


TABLES = (
    Artifact("T1", "F1 and its change under uniform and permuted attention", "Table 1", "table",
             partial(_score_table, DEPTH_VARIANTS), steps_of(models(DEPTH_VARIANTS)), MAIN),
    Artifact("T2", "Mutual information between embeddings and states", "Table 2", "table",
             _information, steps_of(models(attentions=("+",))), MAIN),
    Artifact("T3", "Probability of the decision from one word alone", "Table 3", "table",
             _confidence, steps_of(models()), MAIN),
    Artifact("T4", "Hyperparameters", "Table 4", "table", _hyperparameters),
    Artifact("T5", "Corpora", "Table 5", "table", _corpora,
             lambda plan, corpus: [text(plan, corpus)]),
    Artifact("T6", "Depth of the encoder, additive attention", "Table 6", "table", _depth,
             steps_of([Setting(v, layers=n) for n in LAYERS for v in DEPTH_VARIANTS], True), DEEP),
    Artifact("X1", "Residual: F1 and its changes", "4.1, omitted there", "table",
             partial(_score_table, ("residual",)), steps_of(models(("residual",))), MAIN),
    Artifact("X2", "Dot attention: the start of its query", "C, no numbers there", "table",
             _queries, steps_of(QUERIES.values(), True), DEEP),
    Artifact("X3", "Strengths of tying and masked words", "promised, not printed", "table",
             _strengths, _strength_needs, MAIN),
    Artifact("X4", "Diabetes: F1 and its changes", "4.1, omitted there", "table",
             partial(_score_table, DEPTH_VARIANTS), steps_of(models(DEPTH_VARIANTS)),
             ("diabetes",), paper="F1 = 0 under uniform and permuted attention"),
    Artifact("X5", "Controls: vectors, queries, bias, norms", "ours", "table", _controls,
             control_needs, DEEP),
    Artifact("X6", "Attention against human and planted evidence", "ours; left open there", "table",
             _rationales, steps_of(models(RATED_VARIANTS, ("+",)), True), RATIONALES),
)  # fmt: skip
