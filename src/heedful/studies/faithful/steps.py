"""The steps of the faithful study: train models side by side, measure each, choose, imitate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from math import inf, nan
from pathlib import Path
from time import monotonic
from typing import Any

import pandas as pd

from heedful.jobs.strengths import Strength, choose
from heedful.models import AttentionClassifier, build, load_classifier, save_model
from heedful.reproduction.results import Results, Step, named
from heedful.reproduction.study import Plan
from heedful.reproduction.view import View
from heedful.runs import TABLE, TABLES, Form, read_json, write_json
from heedful.statistics import Estimate, over_seeds
from heedful.statistics.shares import exact_share
from heedful.studies.faithful.drift import Drift
from heedful.studies.faithful.examination import Measuring, Tables, measure, number, probed_words
from heedful.studies.faithful.imitation import distances, imitate
from heedful.studies.faithful.models import (
    EVIDENCE,
    JOINS,
    LONG,
    LONG_EPOCHS,
    LONGER,
    NOTES,
    TUNED,
    Setting,
    few,
    made_once,
    roster,
    searched,
    seeds_of,
    sizes,
    stretched,
    text,
)
from heedful.training import TrainConfig, fit
from heedful.training.loop import History
from heedful.training.stacked import fit_stacked

SENTENCES = 96
"""Dev documents of F2 to F7: the first three batches of 32."""
LOG = "log.json"
DRAWS = 25
"""Permutations of attention where seeds differ far more than these do."""
PLACES = 100_000
"""Most places of texts at which words are probed."""
LOGGED = ("step", "epoch", "learning_rate", "loss", "dev_loss", "dev_accuracy", "dev_entropy")
"""Of every evaluation, beside F1 of class 1."""


def training(plan: Plan, corpus: str, setting: Setting, documents: int) -> TrainConfig:
    """How a model is trained: every seed reads in its own order, texts of about the same length at
    the same time.

    Classes are weighed on clinical notes only.
    """
    config = stretched(plan, sizes(plan).train, documents)
    times = LONGER if setting.is_long else 1
    return replace(config, epochs=times * config.epochs, balanced=corpus in NOTES, length_seed=0)


def measuring(plan: Plan, corpus: str, setting: Setting, seed: int) -> Measuring:
    """What is measured of a model: the dear parts only where a table or claim asks for them.

    Made-up evidence has too few words for an estimate of information.
    """
    asked = sizes(plan).measuring
    is_main = setting == Setting(setting.variant)
    is_frozen = setting == Setting(setting.variant, is_frozen=True)
    is_tried = setting == Setting(setting.variant, strength=setting.strength) and not is_main
    is_first = seed == 0
    is_asked = seed in few(plan) and (is_main or is_frozen)
    is_informed = corpus != EVIDENCE and (is_asked or (is_tried and is_first))
    has_many = setting.is_tabled and corpus not in LONG
    return replace(
        asked,
        draws=asked.draws if has_many else min(asked.draws, DRAWS),
        types=asked.types if is_informed else 0,
        clusterings=3 if is_first and is_main else 1,
        erasure=is_main,
        sentences=SENTENCES if is_first and is_main else 0,
        is_exact=is_main,
        documents=is_main,
    )


def crew_of(setting: Setting) -> str:
    """The name of the models that are trained side by side with a setting: those of its shape.

    Strengths that are tried stand beside base; a strength chosen on dev comes later.
    """
    kind = "plain"
    if setting.variant in JOINS or setting.is_chosen:
        kind = setting.variant
    elif setting.variant == "mlm":
        kind = "mlm-tried"
    parts = [kind + ("+" if setting.attention == "+" else "-dot")]
    parts += [f"layers={setting.layers}"] if setting.layers > 1 else []
    parts += ["frozen"] if setting.is_frozen else []
    parts += ["instance"] if setting.query == "instance" else []
    parts += ["wide"] if setting.is_wide else []
    parts += ["long"] if setting.is_long else []
    return ",".join(parts)


def _member(setting: Setting, seed: int) -> str:
    return named(f"{setting.name}@{seed}")


def _save_crew(folder: Path, crew: Mapping[str, tuple[AttentionClassifier, Any]]) -> None:
    for name, (model, log) in crew.items():
        save_model(model, folder / name)
        write_json(folder / name / LOG, log)


# What goes in are models, what comes back is their folder, of which each step opens one.
CREW: Form[Any] = Form("", _save_crew, lambda folder: folder)


@made_once
def trained(plan: Plan, corpus: str, setting: Setting) -> Step[Path]:
    """The models of a setting's shape, all seeds and strengths trained at once; they stay where
    they were trained, only what is measured of them travels."""
    source = text(plan, corpus)
    crew = crew_of(setting)
    search = (chosen(plan, corpus, setting.variant),) if setting.is_chosen else ()

    def compute(results: Results) -> Any:
        members = [(s, seed) for s, seed in roster(plan, corpus) if crew_of(s) == crew]
        data = results[source]
        config = training(plan, corpus, setting, len(data.splits["train"]))
        settled = [_settled(View(results, plan, corpus), one) for one, _ in members]
        recipes = [one.recipe(sizes(plan).dim) for one in settled]
        models = [
            build(r.model, data.vocabulary, data.classes, seed,
                  None if one.is_random else data.vectors, data.tokeniser)
            for r, (one, seed) in zip(recipes, members, strict=True)
        ]  # fmt: skip
        penalties, seeds = [r.penalties for r in recipes], [seed for _, seed in members]
        started = monotonic()
        logs: list[list[dict[str, Any]]] = []
        if config.balanced:
            for model, penalty, seed in zip(models, penalties, seeds, strict=True):
                drift = Drift()
                history = fit(
                    model, data, config, penalty,
                    seed=seed, device=results.device, observers=[drift],
                )  # fmt: skip
                logs += _logs([history], drift)
        else:
            drift = Drift()
            histories = fit_stacked(
                models, data, config, penalties,
                seeds=seeds, device=results.device, observers=[drift],
            )  # fmt: skip
            logs = _logs(histories, drift)
        seconds = round(monotonic() - started, 1)
        return {
            _member(*member): (model, [entry | {"seconds": seconds} for entry in log])
            for member, model, log in zip(members, models, logs, strict=True)
        }

    inputs = {"crew": crew} | _scale(plan)
    return Step(named(corpus, "crews", crew, "models"), compute, inputs, CREW, (source, *search))


def _logs(histories: Sequence[History], drift: Drift) -> list[list[dict[str, Any]]]:
    """Every evaluation of every model: what it learnt with, what dev said, and its vectors."""
    return [
        [
            {name: entry.get(name, nan) for name in LOGGED}
            | {"dev_f1": entry["dev_f1"][-1]}
            | {"embedding": norms["embedding"], "apart": norms["apart"]}
            for entry, norms in zip(history.entries, entries, strict=True)
        ]
        for history, entries in zip(histories, drift.entries, strict=True)
    ]


def _scale(plan: Plan) -> dict[str, Any]:
    """What else a model depends on: only what the study itself sets, so that new settings of
    others do not outdate finished steps."""
    found, train = sizes(plan), sizes(plan).train
    asked: dict[str, Any] = {"dim": found.dim, "epochs": train.epochs, "rate": train.learning_rate}
    asked |= {"updates": found.updates, "strengths": [*found.tying, *found.masked]}
    return asked | {"seeds": plan.seeds}


def _settled(view: View, setting: Setting) -> Setting:
    """The setting with its strength, where that was chosen on dev."""
    if not setting.is_chosen:
        return setting
    strength = float(view.of(chosen, setting.variant)["strength"])
    return replace(setting, strength=strength)


@made_once
def measured(plan: Plan, corpus: str, setting: Setting, seed: int) -> Step[Tables]:
    """The tables of one model."""
    source, crew = text(plan, corpus), trained(plan, corpus, setting)
    wanted = measuring(plan, corpus, setting, seed)

    def compute(results: Results) -> Tables:
        folder = results[crew] / _member(setting, seed)
        model = load_classifier(folder)
        found = measure(model, results[source], wanted, seed, results.device)
        log = pd.DataFrame(read_json(folder / LOG)).astype(float)
        return found | {"log": log.assign(seed=seed)}

    asked = {"setting": asdict(setting), "seed": seed, "measuring": asdict(wanted)}
    name = named(corpus, setting.name, seed, "measures")
    return Step(name, compute, asked, TABLES, (source, crew))


@made_once
def probed(plan: Plan, corpus: str, setting: Setting, seed: int) -> Step[pd.DataFrame]:
    """How well words can be read off the states of one model."""
    source, crew = text(plan, corpus), trained(plan, corpus, setting)
    wanted = sizes(plan).measuring
    wanted = replace(wanted, pairs=min(wanted.pairs, PLACES))

    def compute(results: Results) -> pd.DataFrame:
        model = load_classifier(results[crew] / _member(setting, seed))
        return probed_words(model, results[source], wanted, results.device)

    asked = {"setting": asdict(setting), "seed": seed}
    asked |= {"types": wanted.types, "places": wanted.pairs}
    name = named(corpus, setting.name, seed, "probe")
    return Step(name, compute, asked, TABLE, (source, crew))


@made_once
def chosen(plan: Plan, corpus: str, variant: str) -> Step[Mapping[str, Any]]:
    """The strength that the study's rule picks on dev, from means over the seeds that try it."""
    base, *others = (
        [measured(plan, corpus, setting, seed) for seed in few(plan)]
        for setting in (Setting(), *searched(plan, variant))
    )
    tried = dict(zip(searched(plan, variant), others, strict=True))

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
    # The rule's old name is part of the key, so that results that were kept stay valid.
    return Step(name, compute, {"rule": "faithful.md §2.4"}, needs=needs)


@made_once
def imitated(plan: Plan, corpus: str, variant: str, divergence: str = "jsd") -> Step[Tables]:
    """The adversaries of a variant (additive), one for each seed and λ, trained at once.

    A table for each λ: how far attention and output lie on every test document, seed by seed.
    """
    source, crew = text(plan, corpus), trained(plan, corpus, Setting(variant))
    usual, strengths = sizes(plan).imitation, adversaries(plan, variant, divergence)
    if corpus in LONG:
        usual = replace(usual, epochs=min(usual.epochs, LONG_EPOCHS), patience=2)

    def compute(results: Results) -> Tables:
        data, setting = results[source], Setting(variant)
        config = stretched(plan, usual, len(data.splits["train"]))
        firsts = [
            load_classifier(results[crew] / _member(setting, seed)).to(results.device)
            for seed in few(plan)
        ]
        settled = _settled(View(results, plan, corpus), setting)
        # Other seeds than the models' own: with λ = 0 they would be the same models.
        started = monotonic()
        found = imitate(
            firsts, data, strengths, config, settled.recipe(sizes(plan).dim).penalties,
            divergence=divergence, seeds=[1_000 + seed for seed in few(plan)],
            device=results.device,
        )  # fmt: skip
        took = round(monotonic() - started, 1)
        log = [
            {"setting": f"adversary {divergence} λ={strength:g}", "seed": seed, **entry}
            for seed, each in zip(few(plan), found, strict=True)
            for strength, second in zip(strengths, each, strict=True)
            for entry in second.log
        ]
        tables: dict[str, list[pd.DataFrame]] = {f"{strength:g}": [] for strength in strengths}
        for seed, first, seconds in zip(few(plan), firsts, found, strict=True):
            copies = [second.model for second in seconds]
            apart = distances(copies, first, data.splits["test"], results.device)
            for parts, rows in zip(tables.values(), apart, strict=True):
                rows = rows.astype({"jsd": "float32", "tvd": "float32"})
                parts.append(rows.assign(seed=seed))
        told = pd.DataFrame(log).assign(seconds=took)
        return {"log": told} | {
            name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()
        }

    name = named(corpus, Setting(variant).name, divergence, "adversaries")
    asked = {"strengths": strengths, "divergence": divergence, "epochs": usual.epochs}
    asked |= {"seeds": few(plan), "updates": sizes(plan).updates}
    asked |= {"patience": usual.patience, "rate": usual.learning_rate}
    needs = (source, crew, *((chosen(plan, corpus, variant),) if variant in TUNED else ()))
    return Step(name, compute, asked, TABLES, needs)


def adversaries(plan: Plan, variant: str, divergence: str = "jsd") -> list[float]:
    """The λ of the adversaries trained against a variant."""
    is_main = variant in ("base", "mlm") and divergence == "jsd"
    return list(sizes(plan).adversary if is_main else sizes(plan).few_adversary)


def per_seed(
    view: View, setting: Setting, name: str, seeds: Sequence[int] | None = None
) -> list[float]:
    """One number of each seed's model (see `value_of`), of all its seeds unless some are named."""
    asked = seeds_of(view.plan, view.corpus, setting) if seeds is None else seeds
    return [value_of(view.of(measured, setting, seed), name) for seed in asked]


def instances(view: View, setting: Setting) -> list[pd.DataFrame]:
    """The per-document rows of every seed, of a plain model with additive attention."""
    seeds = seeds_of(view.plan, view.corpus, setting)
    return [view.of(measured, setting, seed)["instances"] for seed in seeds]


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


def logs_of(view: View, setting: Setting) -> list[pd.DataFrame]:
    """Every evaluation of every seed's training."""
    seeds = seeds_of(view.plan, view.corpus, setting)
    return [view.of(measured, setting, seed)["log"] for seed in seeds]


def differences(view: View, first: Setting, second: Setting, name: str) -> list[float]:
    """First minus second setting, for every seed that both have."""
    seeds = seeds_of(view.plan, view.corpus, first, second)
    one, two = (per_seed(view, setting, name, seeds) for setting in (first, second))
    return [a - b for a, b in zip(one, two, strict=True)]


def minus(view: View, first: Setting, second: Setting, name: str, most: float = inf) -> Estimate:
    """The mean difference, paired by seed; it is at most `most` in size."""
    return over_seeds(differences(view, first, second, name), -most, most)


def lower(view: View, first: Setting, second: Setting, name: str) -> Estimate:
    """The share of trainings in which the first setting's number is the lower one.

    The exact interval leaves out a half where the sign test rejects; ties are left out, as there.
    It says nothing of sizes and needs no shape: drops have two modes over seeds.
    """
    apart = [value for value in differences(view, first, second, name) if value]
    return exact_share(sum(value < 0 for value in apart), len(apart))
