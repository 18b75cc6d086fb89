"""The steps of the faithful study: train and measure a model, choose a strength, imitate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import pandas as pd

from heedful.audits.imitated import distances
from heedful.corpora import EncodedCorpus
from heedful.jobs.faithfulness import Measuring, Tables, measure, number
from heedful.jobs.remedy import Strength, choose
from heedful.jobs.results import Results, Step, named
from heedful.jobs.stages import MODEL, TABLES
from heedful.jobs.study import Plan
from heedful.models import AttentionClassifier, build
from heedful.papers.faithful_models import (
    LONG,
    NOTES,
    TUNED,
    VARIANTS,
    Setting,
    by_corpus,
    sizes,
    text,
)
from heedful.statistics import Estimate, over_seeds
from heedful.training import TrainConfig, fit
from heedful.training.drift import Drift
from heedful.training.imitation import imitate

SENTENCES = 96
"""Dev documents of F2 to F7: the first three batches of 32."""


def training(plan: Plan, corpus: str) -> TrainConfig:
    """How models are trained on a corpus: classes are weighed on clinical notes only (§2.6)."""
    return replace(sizes(plan).train, balanced=corpus in NOTES)


def measuring(plan: Plan, setting: Setting, seed: int) -> Measuring:
    """What is measured of a model: the dear parts only where a table or claim asks for them."""
    asked = sizes(plan).measuring
    is_main = setting == Setting(setting.variant)
    is_frozen = setting == Setting(setting.variant, is_frozen=True)
    is_tried = setting == Setting(setting.variant, strength=setting.strength) and not is_main
    is_first = seed == 0
    return replace(
        asked,
        types=asked.types if is_main or is_frozen or (is_tried and is_first) else 0,
        clusterings=3 if is_first and is_main else 1,
        erasure=is_main,
        sentences=SENTENCES if is_first and is_main else 0,
        is_exact=is_main,
    )


def measured(plan: Plan, corpus: str, setting: Setting, seed: int) -> Step[Tables]:
    """A model trained and measured; only the tables are kept, so that they can travel.

    A strength yet to be chosen is looked up first.
    """
    source = text(plan, corpus)
    search = (chosen(plan, corpus, setting.variant),) if setting.is_chosen else ()
    wanted = measuring(plan, setting, seed)

    def compute(results: Results) -> Tables:
        now = setting
        if search:
            now = replace(setting, strength=float(results[search[0]]["strength"]))
        drift = Drift()
        model = _trained(results, plan, corpus, now, seed, [drift])
        found = measure(model, results[source], wanted, seed, results.device)
        return found | {"drift": pd.DataFrame(drift.entries)}

    asked = {"setting": asdict(setting), "seed": seed, "measuring": asdict(wanted)}
    name = named(corpus, setting.name, seed, "measures")
    return Step(name, compute, asked | _scale(plan), TABLES, (source, *search))


def _scale(plan: Plan) -> dict[str, Any]:
    """What else a model depends on: only what the study itself sets, so that new settings of
    others do not outdate finished steps."""
    found, train = sizes(plan), sizes(plan).train
    return {"dim": found.dim, "epochs": train.epochs, "rate": train.learning_rate}


def _trained(
    results: Results,
    plan: Plan,
    corpus: str,
    setting: Setting,
    seed: int,
    observers: Sequence[Drift] = (),
) -> AttentionClassifier:
    """The model of a setting, trained without checkpoints: it takes seconds to a few minutes."""
    data = results[text(plan, corpus)]
    recipe = setting.recipe(sizes(plan).dim)
    vectors = None if setting.is_random else data.vectors
    model = build(recipe.model, data.vocabulary, data.classes, seed, vectors, data.tokeniser)
    fit(
        model, data, training(plan, corpus), recipe.penalties,
        seed=seed, device=results.device, observers=observers,
    )  # fmt: skip
    return model


def searched(plan: Plan, corpus: str, variant: str) -> list[Setting]:
    """The strengths that are tried on a corpus, additive attention."""
    grid = sizes(plan).tying if variant == "tying" else by_corpus(sizes(plan).masked, corpus)
    return [Setting(variant, strength=value) for value in grid]


def search_seeds(plan: Plan, corpus: str, variant: str) -> tuple[int, ...]:
    """The seeds on which strengths are compared; masked words, twice as dear, have two at most."""
    count = by_corpus(sizes(plan).searched, corpus)
    return plan.seeds[: count if variant == "tying" else min(count, 2)]


def few_seeds(plan: Plan, corpus: str) -> tuple[int, ...]:
    """The seeds of the depth study and of the controls."""
    return plan.seeds[: by_corpus(sizes(plan).few, corpus)]


def chosen(plan: Plan, corpus: str, variant: str) -> Step[Mapping[str, Any]]:
    """The strength that the rule of §2.4 picks on dev, from means over the search's seeds."""
    seeds = search_seeds(plan, corpus, variant)
    base = [measured(plan, corpus, Setting(), seed) for seed in seeds]
    tried = {
        setting: [measured(plan, corpus, setting, seed) for seed in seeds]
        for setting in searched(plan, corpus, variant)
    }

    def compute(results: Results) -> Mapping[str, Any]:
        def mean(steps: list[Step[Tables]], name: str) -> float:
            return sum(number(results[step], name) for step in steps) / len(steps)

        rows = []
        for setting, steps in tried.items():
            f1 = mean(steps, "dev trained f1")
            flat, shuffled = (mean(steps, f"dev {e} f1") - f1 for e in ("uniform", "permuted"))
            rows.append(Strength(float(setting.strength or 0), f1, flat, shuffled))
        found = choose(mean(base, "dev trained f1"), rows)
        return asdict(found) | {"tried": [asdict(row) for row in rows]}

    needs = (*base, *(step for steps in tried.values() for step in steps))
    name = named(corpus, variant, "chosen")
    return Step(name, compute, {"rule": "faithful.md §2.4"}, needs=needs)


def imitated_model(plan: Plan, corpus: str, variant: str) -> Step[AttentionClassifier]:
    """The model (first seed, additive) that adversaries imitate; it is needed where they train."""
    source = text(plan, corpus)
    search = (chosen(plan, corpus, variant),) if variant in TUNED else ()

    def compute(results: Results) -> AttentionClassifier:
        return _trained(results, plan, corpus, _settled(results, plan, corpus, variant), 0)

    name = named(corpus, Setting(variant).name, 0, "model")
    return Step(name, compute, _scale(plan), MODEL, (source, *search))


def _settled(results: Results, plan: Plan, corpus: str, variant: str) -> Setting:
    strength = None
    if variant in TUNED:
        strength = float(results[chosen(plan, corpus, variant)]["strength"])
    return Setting(variant, strength=strength)


def imitated(
    plan: Plan, corpus: str, variant: str, strength: float, divergence: str = "jsd"
) -> Step[Tables]:
    """One trained adversary: how far its attention and its output lie on each test document."""
    source, model = text(plan, corpus), imitated_model(plan, corpus, variant)
    config = sizes(plan).imitation

    def compute(results: Results) -> Tables:
        data: EncodedCorpus = results[source]
        first = results[model].to(results.device)
        penalties = _settled(results, plan, corpus, variant).recipe(sizes(plan).dim).penalties
        # Another seed than the model's own: with λ = 0 it would be the same model.
        second = imitate(
            first, data, strength, config, penalties,
            divergence=divergence, seed=1_000, device=results.device,
        ).model  # fmt: skip
        rows = distances(second, first, data.splits["test"], results.device)
        return {"instances": rows.astype({"jsd": "float32", "tvd": "float32"})}

    name = named(corpus, Setting(variant).name, divergence, f"strength={strength:g}", "adversary")
    asked = {"strength": strength, "divergence": divergence, "epochs": config.epochs}
    asked |= {"patience": config.patience, "rate": config.learning_rate}
    return Step(name, compute, asked, TABLES, (source, model))


def adversaries(plan: Plan, corpus: str, variant: str, divergence: str = "jsd") -> list[float]:
    """The λ of the adversaries trained against a variant."""
    is_main = variant in ("base", "mlm") and divergence == "jsd" and corpus not in LONG
    return list(sizes(plan).adversary if is_main else sizes(plan).few_adversary)


def attacked(plan: Plan, corpus: str) -> tuple[str, ...]:
    """The variants that adversaries imitate: all of them, or those of F1 on long texts."""
    return ("base", "mlm") if corpus in LONG else VARIANTS


def per_seed(
    results: Results,
    plan: Plan,
    corpus: str,
    setting: Setting,
    name: str,
    seeds: tuple[int, ...] | None = None,
) -> list[float]:
    """One number of each seed's model (see `value_of`)."""
    chosen_seeds = plan.seeds if seeds is None else seeds
    return [value_of(results[measured(plan, corpus, setting, seed)], name) for seed in chosen_seeds]


def value_of(tables: Tables, name: str) -> float:
    """A number of one model by its name, or in points by what was asked.

    `points EDIT SCORE` is a test score, `change EDIT SCORE` its change from trained attention;
    `dev f1`, `dev uniform` and `dev permuted` are F1 and its changes on dev.
    """
    kind, _, rest = name.partition(" ")
    if kind == "dev":
        f1 = number(tables, "dev trained f1")
        return 100 * (f1 if rest == "f1" else number(tables, f"dev {rest} f1") - f1)
    if kind not in ("points", "change"):
        return number(tables, name)
    edit, _, score = rest.partition(" ")
    value = number(tables, f"test {edit.replace('_', ' ')} {score}")
    return 100 * (value - (number(tables, f"test trained {score}") if kind == "change" else 0))


def minus(
    results: Results,
    plan: Plan,
    corpus: str,
    first: Setting,
    second: Setting,
    name: str,
    seeds: tuple[int, ...] | None = None,
) -> Estimate:
    """First minus second setting, paired by seed."""
    one = per_seed(results, plan, corpus, first, name, seeds)
    two = per_seed(results, plan, corpus, second, name, seeds)
    return over_seeds([a - b for a, b in zip(one, two, strict=True)])
