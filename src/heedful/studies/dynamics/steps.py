"""The runs and steps of the dynamics study (docs/studies/dynamics.md, "Models")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from heedful.dynamics.cooccurrence import side
from heedful.dynamics.proxy import PENALTIES, ProxyConfig
from heedful.dynamics.trajectory import FollowedRun
from heedful.models import Recipe, parse
from heedful.reproduction.results import Results, Step
from heedful.reproduction.study import Plan
from heedful.runs import TABLE
from heedful.studies.dynamics import run_steps, translation, translation_steps, word_predictors
from heedful.studies.dynamics.comparisons import CorpusAgreements
from heedful.studies.dynamics.corpora import text
from heedful.studies.dynamics.run_steps import CrewRun, Runs
from heedful.studies.dynamics.translation import TRANSLATED
from heedful.studies.dynamics.word_predictors import Predictors, count_tables, words_of
from heedful.training.config import Schedule
from heedful.training.presets import DYNAMICS_TRAIN, PRESETS

REFERENCE, COMPARISONS, UNIFORMS = 20, (13, 14, 15, 16, 17), (12, 18, 19, 21, 22)
"""Seeds of run A, of B to F, and of the runs with uniform attention; the first is published."""
FROZEN = (30, 31, 32, 33, 34)
"""Seeds of the runs on a frozen probe, none of which another run starts from."""
SCHEDULE = Schedule(4_000, (0, 10, 50, 100, 150, 200, *range(250, 4_000, 250), 4_000))
SMOKE_SCHEDULE = Schedule(160, (0, 4, 8, 12, 16, 24, 32, 48, 64, 80, 100, 130, 160))
SMOKE_SIZES = {"embedding_dim": 48, "width": 32, "attention_dim": 16, "one_logit": True}


def schedule(plan: Plan) -> Schedule:
    """22 checkpoints of 4,000 steps; fewer of both at smoke scale."""
    return plan.pick(SMOKE_SCHEDULE, SCHEDULE)


def recipe(plan: Plan, attention: str) -> Recipe:
    """The study's classifier, with attention that is learnt or uniform."""
    preset = PRESETS[f"dynamics/{attention}"]
    return parse(preset.recipe, **plan.pick(SMOKE_SIZES, preset.model))


def _train(plan: Plan) -> Any:
    return plan.pick(replace(DYNAMICS_TRAIN, learning_rate=1e-2), DYNAMICS_TRAIN)


def proxy(plan: Plan, corpus: str) -> ProxyConfig:
    """The published proxy, which goes on until it has converged (its page: "Proxy")."""
    rate = 5e-5 if corpus in ("imdb", "yelp", "amazon") else 1.5e-4
    return plan.pick(ProxyConfig(32, 12, 64, 1e-2), ProxyConfig(256, 60, 64, rate, most=2_000))


def predictors(plan: Plan, corpus: str) -> Step[Predictors]:
    """Proxy, logistic regression and count tables."""
    penalties = plan.pick((1e-2, 1.0, 1e2, 1e4), PENALTIES)
    return word_predictors.predictors(text(plan, corpus), proxy(plan, corpus), penalties)


def words(plan: Plan, corpus: str) -> Step[pd.DataFrame]:
    """What proxy and regression say of each word, without their say on documents."""
    found = predictors(plan, corpus)
    return Step(found.beside("words"), lambda results: results[found].words, {}, TABLE, (found,))


def crew(
    plan: Plan, corpus: str, attention: str, with_vectors: bool = False
) -> Step[Mapping[str, FollowedRun]]:
    """All runs with attention, or with uniform attention; with word vectors the first alone."""
    count = len(plan.seeds)
    seeds = {"attention": (REFERENCE, *COMPARISONS[:count]), "uniform": UNIFORMS[:count]}
    return run_steps.crew(
        text(plan, corpus),
        f"{attention} vectors" if with_vectors else attention,
        recipe(plan, attention),
        seeds[attention][:1] if with_vectors else seeds[attention],
        _train(plan),
        schedule(plan),
        with_saliency=seeds[attention][: 1 if with_vectors else None]
        if attention == "attention"
        else [],
        with_vectors=with_vectors,
    )


def runs(plan: Plan, corpus: str) -> Runs:
    """All runs of a corpus."""
    if corpus in TRANSLATED:
        return translation.runs(plan, corpus)
    count = len(plan.seeds)
    attending, uniform = (crew(plan, corpus, kind) for kind in ("attention", "uniform"))
    frozen = run_steps.frozen(
        text(plan, corpus), recipe(plan, "attention"), FROZEN[:count], _train(plan), schedule(plan)
    )
    return Runs(
        CrewRun(attending, REFERENCE),
        {str(seed): CrewRun(attending, seed) for seed in COMPARISONS[:count]},
        {str(seed): CrewRun(uniform, seed) for seed in UNIFORMS[:count]},
        predictors(plan, corpus),
        {str(seed): CrewRun(frozen, seed) for seed in FROZEN[:count]},
    )


def logged(plan: Plan, corpus: str) -> Step[pd.DataFrame]:
    """The training log of a corpus's runs."""
    if corpus in TRANSLATED:
        return translation.logged(plan, corpus)
    every, learnt = runs(plan, corpus), (_train(plan), proxy(plan, corpus))
    return run_steps.logged(text(plan, corpus), every, *learnt)


def compared(
    plan: Plan, corpus: str, split: str = "dev", performance: str = "accuracy"
) -> Step[CorpusAgreements]:
    """Agreements of a corpus on one split; of a translator also with BLEU as its performance."""
    # Only dev agreements are ranked (T3, T4), and only those by accuracy checked.
    is_dev = split == "dev"
    return run_steps.agreements(
        runs(plan, corpus), split, performance,
        is_brief=not is_dev or performance != "accuracy", is_ranked=is_dev,
    )  # fmt: skip


def with_vectors(plan: Plan, corpus: str) -> Step[CorpusAgreements] | None:
    """The same with pre-trained word vectors, one reference and one uniform run (DYN-A4)."""
    if corpus == "planted":
        return None
    first = UNIFORMS[0]
    attending, uniform = (crew(plan, corpus, kind, True) for kind in ("attention", "uniform"))
    pair = Runs(
        CrewRun(attending, REFERENCE),
        {},
        {str(first): CrewRun(uniform, first)},
        predictors(plan, corpus),
    )
    return run_steps.agreements(pair, "dev", is_brief=True, is_ranked=False, tag="vectors")


def sizes(plan: Plan, corpus: str) -> Step[dict[str, Any]]:
    """Median lengths without start and end symbols, documents, vocabulary (T9)."""
    if corpus in TRANSLATED:
        return translation_steps.pair_sizes(translation.text(plan, corpus))
    place = text(plan, corpus)

    def compute(results: Results) -> dict[str, Any]:
        read = results[place]
        found: dict[str, Any] = {"vocabulary": len(read.vocabulary)}
        for split in ("train", "dev"):
            part = read.splits[split]
            found[split] = {"documents": len(part), "median": float(np.median(part.lengths) - 2)}
        return found

    return Step(place.beside("sizes"), compute, {}, needs=(place,))


def tables(plan: Plan, corpus: str) -> Step[dict[str, Any]]:
    """The proxy's count table against Model 1's (DYN-15)."""
    if corpus in TRANSLATED:
        return translation_steps.pair_tables(translation.text(plan, corpus))
    place = text(plan, corpus)

    def compute(results: Results) -> dict[str, Any]:
        read = results[place]
        answers = side(read.splits["train"].labels[:, None], len(read.classes))
        return count_tables(words_of(read.splits["train"], len(read.vocabulary)), answers)

    return Step(place.beside("tables"), compute, {}, needs=(place,))
