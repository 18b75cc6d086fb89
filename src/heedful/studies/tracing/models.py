"""The tracing study's models, and the steps that train and trace them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

import pandas as pd

from heedful.audits.traces import accuracy, followed_tables, token_tables, window_tables
from heedful.corpora import EncodedCorpus
from heedful.models import TransformerConfig, build_narrator
from heedful.reproduction.results import Results, Step, named
from heedful.reproduction.study import Plan
from heedful.reproduction.view import View
from heedful.runs import TABLES
from heedful.studies.tracing.corpora import DIM, STORIES, fifty, text, told
from heedful.studies.tracing.learnt import (
    LEARNT,
    LEARNTS,
    LOG,
    Learnt,
    Learnts,
    Member,
    Tables,
    flow_of,
    recorded,
    row_of,
)
from heedful.studies.tracing.vectors import FIFTY, VectorChoice
from heedful.training import History, TrainConfig, fit
from heedful.training.presets import PRESETS, TRACING_VARIANTS
from heedful.training.together import fit_together

PUBLISHED, UNTRAINED, UNTRAINED_FULL = "published", "untrained", "untrained-full-norm"
RECIPES: dict[str, dict[str, Any]] = {
    ending.removeprefix("/") or PUBLISHED: changed for ending, changed in TRACING_VARIANTS.items()
}
"""What a recipe changes, by name: first-epoch-dropout, cross-entropy, positions, full-norm."""
BEFORE = {UNTRAINED: PUBLISHED, UNTRAINED_FULL: "full-norm"}
"""Models as they start, and the recipe that they start."""
COMPARED = (PUBLISHED, "full-norm", *BEFORE)
"""Models whose traces are asked what is left of their start (X-C)."""
ZERO, PADDED, ROTATED = "zero-missing", "padded-300", "rotated-300"
GLOVE_50, GLOVE_50_MISSING = "glove-50", "glove-50-missing"
VECTORS: dict[str, VectorChoice] = {
    ZERO: VectorChoice(DIM, missing="zero"),
    PADDED: VectorChoice(300, "padded"),
    ROTATED: VectorChoice(300, "rotated"),
    "reduced-50": VectorChoice(50, "reduced"),
    "reduced-25": VectorChoice(25, "reduced"),
    GLOVE_50: VectorChoice(50, source=FIFTY),
    GLOVE_50_MISSING: VectorChoice(50, source=FIFTY, as_if=DIM),
}
"""What a model reads instead of the vectors at hand, by name; all else is as published."""
VARIANTS = (*RECIPES, *VECTORS)
CHECKED = (PUBLISHED, "first-epoch-dropout", "cross-entropy")
"""Recipes that TRA-A7 compares; the others show whether the U survives them (X-V)."""
EPOCHS = 100
"""Half as many as published: with 200 the best dev score came at epoch 48 [26, 69]."""
WINDOWED, WHOLE = "windows", "narrative"
"""What the words of a narrative attend to."""

SMALL: dict[str, Any] = {
    "embedding_dim": 64, "layers": 3, "heads": 4, "head_dim": 16, "feed_forward": 32,
    "pooling_dims": (32, 16), "decider_dim": 32, "top_dropout": 0.1,
}  # fmt: skip
SMALL_TRAIN = TrainConfig(
    epochs=5, batch_size=40, learning_rate=2e-3, weight_decay=1e-4, clip_norm=0.0, patience=0
)
NOTHING = History((), float("nan"), 0)
"""How the training of an untrained model went."""
FLOW_LENGTH = 10
"""Words of the sentence in the flow diagram, as near as the test set has one."""


def vectors(plan: Plan, variant: str) -> VectorChoice:
    """What the model of a variant reads; at smoke scale a third as wide."""
    chosen = VECTORS.get(variant, VectorChoice(DIM))
    if plan.scale == "paper":
        return chosen
    width = int(SMALL["embedding_dim"])
    source = chosen.source if chosen.source == FIFTY else width
    return replace(
        chosen, dim=FIFTY if source == FIFTY else chosen.dim * width // DIM, source=source
    )


def config(plan: Plan, variant: str = PUBLISHED) -> TransformerConfig:
    """The model of a variant: the paper's sizes at the width of its vectors, or small ones."""
    changed = RECIPES.get(BEFORE.get(variant, variant), {})
    sizes = plan.pick(SMALL, {}) | {"embedding_dim": vectors(plan, variant).dim}
    return TransformerConfig(**{**sizes, **changed})


def member(plan: Plan, variant: str, seed: int) -> Member:
    """A classifier of a variant; an untrained one is as its recipe starts."""
    return Member(variant, config(plan, variant), vectors(plan, variant), seed)


def trained(plan: Plan, corpus: str, variant: str, seed: int) -> Step[Learnts]:
    """The classifiers of a variant by `Member.name`, all its seeds side by side.

    An untrained one stands alone, as it starts.
    """
    words = text(plan, corpus)
    if variant in BEFORE:
        return _untrained(words, member(plan, variant, seed))
    members = [member(plan, variant, each) for each in plan.seeds]
    training = plan.pick(SMALL_TRAIN, replace(PRESETS["tracing/sst"].train, epochs=EPOCHS))
    others = fifty(plan, corpus)
    needs = (words, others) if any(m.vectors.source == FIFTY for m in members) else (words,)

    def compute(results: Results) -> Learnts:
        read = results[words]
        started = time.perf_counter()
        narrow = results[others] if others in needs else None
        models = [one.fresh(read, narrow) for one in members]
        histories = fit_together(
            models, read, training, seeds=[one.seed for one in members],
            device=results.device, folder=results.scratch(step), show=results.show,
            is_halved=True,
        )  # fmt: skip
        seconds = time.perf_counter() - started
        return {
            one.name: recorded(model, history, training.select, seconds, len(members))
            for one, model, history in zip(members, models, histories, strict=True)
        }

    inputs = {
        "members": [[m.name, asdict(m.config), asdict(m.vectors)] for m in members],
        "train": asdict(training),
        "products on a GPU": "bfloat16",
    }
    step = Step(words.beside(variant, "models"), compute, inputs, LEARNTS, needs)
    return step


def _untrained(words: Step[EncodedCorpus], one: Member) -> Step[Learnts]:
    def compute(results: Results) -> Learnts:
        model = one.fresh(results[words], None)
        return {one.name: recorded(model, NOTHING, "accuracy", 0.0, 1)}

    inputs: dict[str, Any] = {"model": asdict(one.config), "seed": one.seed}
    inputs |= {"vectors": asdict(one.vectors)}
    return Step(words.beside(one.variant, one.seed, "model"), compute, inputs, LEARNTS, (words,))


def narrator_config(plan: Plan, reads: str = WINDOWED) -> TransformerConfig:
    """The model of narratives; at smoke scale smaller still."""
    chosen = replace(config(plan), reads=reads)
    return plan.pick(replace(chosen, embedding_dim=48, layers=2), chosen)


def narrator(plan: Plan, corpus: str, reads: str, seed: int) -> Step[Learnt]:
    """A model that follows narratives, by what its words attend to; or one that is untrained."""
    small = replace(SMALL_TRAIN, epochs=12, batch_size=6, learning_rate=2e-3, select="ccc")
    training: TrainConfig | None = plan.pick(small, PRESETS["tracing/send"].train)
    training = None if reads == UNTRAINED else training
    chosen = narrator_config(plan, WINDOWED if reads == UNTRAINED else reads)
    stories = told(plan, corpus)

    def compute(results: Results) -> Learnt:
        read = results[stories]
        model = build_narrator(chosen, read.vocabulary, seed, read.vectors)
        started, history = time.perf_counter(), NOTHING
        if training is not None:
            history = fit(
                model, read, training, seed=seed, device=results.device,
                folder=results.scratch(step),
            )  # fmt: skip
        metric = "ccc" if training is None else training.select
        return recorded(model, history, metric, time.perf_counter() - started, 1)

    inputs = {"model": asdict(chosen), "seed": seed}
    inputs["train"] = None if training is None else asdict(training)
    step = Step(stories.beside(reads, seed, "model"), compute, inputs, LEARNT, (stories,))
    return step


def traces(plan: Plan, corpus: str, variant: str, seed: int) -> Step[Tables]:
    """`tokens`, `cells` (and `documents`, `training`, `log` of texts) of one model on the test set.

    For narratives the variants are `published` (windows) and `untrained`.
    """
    if corpus in STORIES:
        return _traced_windows(plan, corpus, UNTRAINED if variant == UNTRAINED else WINDOWED, seed)
    words, models = text(plan, corpus), trained(plan, corpus, variant, seed)
    one = member(plan, variant, seed)

    def compute(results: Results) -> Tables:
        found = results[models][one.name]
        tables = token_tables(found.model, results[words].splits["test"], results.device)
        row = row_of(found) | {"accuracy": [accuracy(tables["documents"])]}
        log = pd.DataFrame(found.training[LOG])
        log = log.assign(setting="", seed=seed, seconds=found.training["seconds"])
        return {**tables, "training": pd.DataFrame(row), LOG: log}

    inputs = {"split": "test", "member": one.name}
    return Step(words.beside(variant, seed, "traces"), compute, inputs, TABLES, (words, models))


def _traced_windows(plan: Plan, corpus: str, reads: str, seed: int) -> Step[Tables]:
    stories, model = told(plan, corpus), narrator(plan, corpus, reads, seed)

    def compute(results: Results) -> Tables:
        return window_tables(results[model].model, results[stories].splits["test"], results.device)

    return Step(model.beside("traces"), compute, {"split": "test"}, TABLES, (stories, model))


def decisions(plan: Plan, corpus: str, variant: str, seed: int) -> Step[Tables]:
    """`documents`, `training` and `log` of one classifier: the small part of its traces."""
    seen = traces(plan, corpus, variant, seed)

    def compute(results: Results) -> Tables:
        tables = {name: results[seen][name] for name in ("documents", "training", "log")}
        if variant not in COMPARED:
            documents = tables["documents"]
            tables["documents"] = documents[[c for c in documents if " " not in str(c)]]
        return tables

    return Step(seen.beside("decisions"), compute, {}, TABLES, (seen,))


def followed(plan: Plan, corpus: str, reads: str, seed: int) -> Step[Tables]:
    """Tables `windows` (narrative, window, seconds, rating, guess), `narratives` (ccc of each) and
    one row of `training`, over the test narratives."""
    stories, model = told(plan, corpus), narrator(plan, corpus, reads, seed)

    def compute(results: Results) -> Tables:
        found = results[model]
        tables = followed_tables(found.model, results[stories].splits["test"], results.device)
        return tables | {"training": pd.DataFrame(row_of(found))}

    return Step(model.beside("followed"), compute, {"split": "test"}, TABLES, (stories, model))


def variants_of(plan: Plan, corpus: str) -> tuple[str, ...]:
    """The models of a corpus that tables show, untrained ones included."""
    if corpus in STORIES:
        return (PUBLISHED, UNTRAINED)
    return (*VARIANTS, *BEFORE)


def needs_variants(plan: Plan, corpus: str) -> Iterable[Step[Any]]:
    """What every model of a corpus decided."""
    kinds = variants_of(plan, corpus)
    return [decisions(plan, corpus, kind, seed) for kind in kinds for seed in plan.seeds]


def needs_followed(plan: Plan, corpus: str) -> Iterable[Step[Any]]:
    """The ratings of both kinds of narrator."""
    return [followed(plan, corpus, reads, s) for reads in (WINDOWED, WHOLE) for s in plan.seeds]


def flow(plan: Plan, corpus: str) -> Step[dict[str, Any]]:
    """The sentence of the flow diagram: of about ten words, rightly decided positive."""
    first = plan.seeds[0]
    words, models = text(plan, corpus), trained(plan, corpus, PUBLISHED, first)
    seen = traces(plan, corpus, PUBLISHED, first)

    def compute(results: Results) -> dict[str, Any]:
        model = results[models][member(plan, PUBLISHED, first).name].model
        documents = results[seen]["documents"]
        return flow_of(model, results[words].splits["test"], documents, FLOW_LENGTH)

    inputs = {"length": FLOW_LENGTH}
    return Step(named(corpus, "flow"), compute, inputs, needs=(words, models, seen), version=2)


def needs_flow(plan: Plan, corpus: str) -> Iterable[Step[Any]]:
    """The flow of one sentence."""
    return (flow(plan, corpus),)


def needs_efforts(plan: Plan, corpus: str) -> Iterable[Step[Any]]:
    """How every training of a corpus went."""
    return (needs_followed if corpus in STORIES else needs_variants)(plan, corpus)


def narrative_ccc(view: View, reads: str) -> pd.DataFrame:
    """CCC by narrative (rows) and seed (columns)."""
    tables = {s: view.of(followed, reads, s)["narratives"] for s in view.seeds}
    return pd.DataFrame({seed: t.set_index("narrative")["ccc"] for seed, t in tables.items()})
