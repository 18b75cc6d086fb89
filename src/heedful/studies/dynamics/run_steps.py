"""Steps of a study of training: runs followed on fixed documents, and what they agree with.

Followed runs are large (8 bytes per token and checkpoint); the agreements made of them are small
and are all that tables and claims look at. So runs need never leave the machine that made them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from heedful.corpora import EncodedCorpus
from heedful.dynamics.agreement import concentration
from heedful.dynamics.probes import ProbeLogs, kept_saliency
from heedful.dynamics.proxy import ProxyConfig
from heedful.dynamics.trajectory import (
    ACCURACY,
    CREW,
    SECONDS,
    FollowedRun,
    joined,
    kept_checkpoints,
)
from heedful.errors import InputError
from heedful.models import AttentionClassifier, Penalties, Recipe, build
from heedful.models.recipe import described
from heedful.reproduction.results import Results, Step, named
from heedful.runs import TABLE
from heedful.studies.dynamics.comparisons import COMPARED, CorpusAgreements, compare
from heedful.studies.dynamics.frozen_probe import FrozenReader, train_frozen
from heedful.studies.dynamics.word_predictors import LOG_ODDS, Predictors, followed_documents
from heedful.training import TrainConfig
from heedful.training.config import Schedule
from heedful.training.scheduled import fit_scheduled_together


def crew(
    text: Step[EncodedCorpus],
    name: str,
    recipe: Recipe,
    seeds: Sequence[int],
    config: TrainConfig,
    schedule: Schedule,
    with_saliency: Sequence[int] = (),
    with_vectors: bool = False,
) -> Step[Mapping[str, FollowedRun]]:
    """Classifiers of several seeds trained side by side by the schedule, each followed by itself.

    By seed: α, β and right answers at each evaluation, and Δ for the seeds of `with_saliency`.
    """

    def compute(results: Results) -> Mapping[str, FollowedRun]:
        if recipe.penalties != Penalties():
            raise InputError(f"{recipe} has penalties; runs are followed without.")
        corpus = results[text]
        documents = followed_documents(corpus)
        models = [_built(corpus, recipe, seed, with_vectors) for seed in seeds]
        names, told = [str(seed) for seed in seeds], [str(seed) for seed in with_saliency]
        folder = results.scratch(step)
        fit_scheduled_together(
            models, corpus, config, seeds=seeds, schedule=schedule, device=results.device,
            observers=[ProbeLogs(folder, names, documents, told)], folder=folder,
        )  # fmt: skip
        return {one: _kept(folder / one, documents, one in told) for one in names}

    inputs = _inputs(recipe, schedule) | {"train": config.described(), "seeds": list(seeds)}
    inputs |= {"saliency": list(with_saliency), "vectors": with_vectors}
    step = Step(text.beside(name, "runs"), compute, inputs, CREW, (text,), LOG_ODDS)
    return step


def _kept(folder: Path, splits: Iterable[str], with_saliency: bool) -> FollowedRun:
    """A run from what a `ProbeLog` kept of it."""
    delta = {split: kept_saliency(folder, split) for split in splits} if with_saliency else {}
    return FollowedRun({split: kept_checkpoints(folder, split) for split in splits}, delta)


def frozen(
    text: Step[EncodedCorpus],
    recipe: Recipe,
    seeds: Sequence[int],
    config: TrainConfig,
    schedule: Schedule,
) -> Step[Mapping[str, FollowedRun]]:
    """Attention trained on random probes that never change, followed on the dev documents."""

    def compute(results: Results) -> Mapping[str, FollowedRun]:
        return {str(seed): one(results, seed) for seed in seeds}

    def one(results: Results, seed: int) -> FollowedRun:
        corpus = results[text]
        model = _built(corpus, recipe, seed, with_vectors=False)
        read, moments = FrozenReader(model, corpus.splits["dev"], results.device), {}
        started = time.perf_counter()

        def observe(step: int) -> None:
            seconds = np.array([time.perf_counter() - started])
            moments[step] = replace(read(step), scores={SECONDS: seconds})

        train_frozen(
            model, corpus.splits["train"], schedule, observe, batch_size=config.batch_size,
            learning_rate=config.learning_rate, seed=seed, device=results.device,
        )  # fmt: skip
        return FollowedRun({"dev": joined(moments)}, {})

    inputs = _inputs(recipe, schedule) | {"train": config.described(), "seeds": list(seeds)}
    return Step(text.beside("frozen", "runs"), compute, inputs, CREW, (text,))


class CrewRun(NamedTuple):
    """A followed run: the result of a step, or one of those that a crew's step gives."""

    step: Step[Any]
    seed: int | None = None
    """Which of a crew."""

    @property
    def name(self) -> str:
        """The step's name, and the seed where that does not say which run it is."""
        return self.step.name if self.seed is None else f"{self.step.name}/{self.seed}"

    def followed(self, results: Results) -> FollowedRun:
        """What was seen of it."""
        found = results[self.step]
        taken: FollowedRun = found if self.seed is None else found[str(self.seed)]
        return taken


class Runs(NamedTuple):
    """The runs that one corpus is compared by."""

    reference: CrewRun
    comparisons: Mapping[str, CrewRun]
    uniforms: Mapping[str, CrewRun]
    predictors: Step[Predictors]
    frozen: Mapping[str, CrewRun] = MappingProxyType({})

    @property
    def _runs(self) -> tuple[CrewRun, ...]:
        every = self.comparisons, self.uniforms, self.frozen
        return (self.reference, *(run for kind in every for run in kind.values()))

    @property
    def names(self) -> list[str]:
        """Those of all runs and predictors."""
        return [*(run.name for run in self._runs), self.predictors.name]

    @property
    def steps(self) -> tuple[Step[Any], ...]:
        """What computes them, each once.

        Needs are begun in this order, and predictors are one processor's longest work.
        """
        every: tuple[Step[Any], ...] = (self.predictors, *(run.step for run in self._runs))
        return tuple({step.name: step for step in every}.values())


def agreements(
    runs: Runs,
    split: str,
    performance: str = ACCURACY,
    *,
    is_brief: bool = False,
    is_ranked: bool = True,
    tag: str = "",
) -> Step[CorpusAgreements]:
    """All agreements of a corpus's runs on one split, row by row; see `compare`."""

    def compute(results: Results) -> CorpusAgreements:
        return compare(
            runs.reference.followed(results),
            {name: run.followed(results) for name, run in runs.comparisons.items()},
            {name: run.followed(results) for name, run in runs.uniforms.items()},
            results[runs.predictors].splits[split],
            split,
            performance=performance,
            frozen={name: run.followed(results) for name, run in runs.frozen.items()},
            is_brief=is_brief,
            is_ranked=is_ranked,
            device=results.device,
        )

    corpus = runs.reference.step.name.split("/")[0]
    inputs = {"split": split, "performance": performance, "brief": is_brief}
    inputs |= {"ranked": is_ranked}
    inputs |= {"runs": runs.names}
    parts = [part for part in (split, performance, tag) if part]
    name = named(corpus, " ".join(parts), "agreements")
    return Step(name, compute, inputs, COMPARED, runs.steps)


def logged(text: Step[Any], runs: Runs, training: Any, proxy: ProxyConfig) -> Step[pd.DataFrame]:
    """The training log of a corpus's runs: a row per run and evaluation, and per proxy epoch.

    `training` and `proxy` are what they were trained by, with a batch size and a learning rate.
    """

    def compute(results: Results) -> pd.DataFrame:
        kinds = {
            "attention": [runs.reference, *runs.comparisons.values()],
            "uniform": runs.uniforms.values(),
            "frozen": runs.frozen.values(),
        }
        tables = [
            _log(run.followed(results)).assign(kind=kind, run=_seed(run.name))
            for kind, every in kinds.items()
            for run in every
        ]
        learnt = pd.concat(tables, ignore_index=True).assign(rate=training.learning_rate)
        updates = max(len(results[text].splits["train"]) // training.batch_size, 1)
        learnt["epoch"] = learnt["step"] / updates
        epochs = results[runs.predictors].epochs.assign(rate=proxy.learning_rate)
        table = pd.concat([learnt, epochs.assign(kind="proxy", run="0")], ignore_index=True)
        return table[["kind", "run", *(c for c in table if c not in ("kind", "run"))]]

    name = named(runs.reference.step.name.split("/")[0], "log")
    inputs = {"runs": runs.names}
    return Step(name, compute, inputs, TABLE, (text, *runs.steps))


def _seed(name: str) -> str:
    """The seed in a run's name: the last of a crew's, the last but one of a step's."""
    return next(part for part in reversed(name.split("/")) if part.isdigit())


def _log(run: FollowedRun) -> pd.DataFrame:
    """A row per evaluation: how well it does on dev and on training texts, and entropy on dev."""
    dev = run.splits["dev"]
    told = {"step": dev.steps, "dev": dev.performance()}
    if "train" in run.splits:
        told["train"] = run.splits["train"].performance()
    told["entropy"] = np.nanmean(concentration(dev.attention, dev.lengths), axis=1)
    told |= {name: dev.performance(name) for name in dev.scores}
    return pd.DataFrame(told)


def _built(
    corpus: EncodedCorpus, recipe: Recipe, seed: int, with_vectors: bool
) -> AttentionClassifier:
    vectors = corpus.vectors if with_vectors else None
    if with_vectors and vectors is None:
        raise InputError(f"{corpus.name} was prepared without word vectors.")
    model = recipe.model
    if vectors is not None:
        model = replace(model, embedding_dim=vectors.shape[1])
    words, classes = corpus.vocabulary, corpus.classes
    return build(model, words, classes, seed, vectors, corpus.tokeniser)


def _inputs(recipe: Recipe, schedule: Schedule) -> dict[str, Any]:
    return {
        "recipe": str(recipe),
        "model": described(recipe.model),
        "penalties": asdict(recipe.penalties),
        "schedule": asdict(schedule),
    }
