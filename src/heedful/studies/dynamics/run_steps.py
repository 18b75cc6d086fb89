"""Steps of a study of training: runs followed on fixed documents, and what they agree with.

Followed runs are large (8 bytes per token and checkpoint); the agreements made of them are small
and are all that tables and claims look at. So runs need never leave the machine that made them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from heedful.corpora import Encoded, EncodedCorpus
from heedful.corpora.samples import subset
from heedful.dynamics.cooccurrence import (
    EM,
    CorpusSide,
    cooccurrence,
    looked_up,
    normalised,
    side,
    table_bytes,
    translation_table,
)
from heedful.dynamics.probes import ProbeLogs, kept_saliency, probed
from heedful.dynamics.proxy import PENALTIES, ProxyConfig, logistic_sweep, train_proxy
from heedful.dynamics.trajectory import (
    ACCURACY,
    CREW,
    FOLLOWED,
    FollowedRun,
    joined,
    kept_checkpoints,
)
from heedful.errors import InputError
from heedful.models import AttentionClassifier, Penalties, Recipe, build
from heedful.models.recipe import described
from heedful.reproduction.results import Results, Step, named
from heedful.runs import TABLE, Form
from heedful.runs.randomness import numpy_generator
from heedful.studies.dynamics.comparisons import COMPARED, CorpusAgreements, compare
from heedful.studies.dynamics.frozen_probe import train_frozen
from heedful.training import TrainConfig
from heedful.training.config import Schedule
from heedful.training.scheduled import fit_scheduled_together

LOG_ODDS = 2
"""Version of the steps that keep probes: as log-odds, where the first kept log probabilities, which
tie as soon as a model is sure."""


def followed_documents(corpus: EncodedCorpus) -> dict[str, Encoded]:
    """The dev documents, and as many training documents drawn by seed 1."""
    dev, train = corpus.splits["dev"], corpus.splits["train"]
    order = numpy_generator(1, "followed training documents").permutation(len(train))
    return {"dev": dev, "train": subset(train, np.sort(order[: len(dev)]))}


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
    text: Step[EncodedCorpus], recipe: Recipe, seed: int, config: TrainConfig, schedule: Schedule
) -> Step[FollowedRun]:
    """Attention trained on a random probe that never changes, followed on the dev documents."""

    def compute(results: Results) -> FollowedRun:
        corpus = results[text]
        dev = corpus.splits["dev"]
        model = _built(corpus, recipe, seed, with_vectors=False)
        moments = {}

        def observe(step: int) -> None:
            moments[step] = probed(model, dev, results.device, step)

        train_frozen(
            model, corpus.splits["train"], schedule, observe, batch_size=config.batch_size,
            learning_rate=config.learning_rate, seed=seed, device=results.device,
        )  # fmt: skip
        return FollowedRun({"dev": joined(moments)}, {})

    inputs = _inputs(recipe, schedule) | {"train": config.described(), "seed": seed}
    return Step(text.beside("frozen", seed, "run"), compute, inputs, FOLLOWED, (text,))


class Predictors(NamedTuple):
    """What words alone say of the right answer, unit by unit of the followed documents."""

    splits: Mapping[str, Mapping[str, np.ndarray]]
    """By split and name: `proxy`, `logistic`, `counts` and `em`."""
    words: pd.DataFrame
    """A row per word: its count in train and what the proxy and the regression say of it."""


def predictors(
    text: Step[EncodedCorpus],
    config: ProxyConfig,
    penalties: Sequence[float] = PENALTIES,
    seed: int = 0,
) -> Step[Predictors]:
    """The proxy, the logistic regression and the count tables of a classification corpus."""

    def compute(results: Results) -> Predictors:
        corpus = results[text]
        train, dev = corpus.splits["train"], corpus.splits["dev"]
        types, classes = len(corpus.vocabulary), len(corpus.classes)
        bags, held = _side(train, types), _side(dev, types)
        answers, held_answers = (side(part.labels[:, None], classes) for part in (train, dev))
        proxy = train_proxy(
            bags, answers, (held, held_answers), config, seed=seed, device=results.device
        )
        regression = logistic_sweep(bags, train.labels, held, dev.labels, penalties)
        tables = {"counts": translation_table(bags, answers, 1)}
        tables["em"] = translation_table(bags, answers, EM)
        splits = {}
        for name, part in followed_documents(corpus).items():
            right = np.repeat(part.labels, part.lengths)
            splits[name] = {
                "proxy": proxy.probe(part.ids, right),
                "logistic": regression.probe(part.ids, right),
            } | {key: looked_up(table, part.ids, right) for key, table in tables.items()}
        every = np.arange(types)
        words = pd.DataFrame({"id": every, "count": np.bincount(train.ids, minlength=types)})
        for name, model in (("proxy", proxy), ("logistic", regression)):
            words[name] = model.probe(every, np.full(types, classes - 1))
        return Predictors(splits, words)

    inputs: dict[str, Any] = {"proxy": asdict(config), "penalties": list(penalties), "em": EM}
    form = PREDICTORS
    name = text.beside("predictors")
    return Step(name, compute, inputs | {"seed": seed}, form, (text,), LOG_ODDS)


def words(found: Step[Predictors]) -> Step[pd.DataFrame]:
    """The words' table of `Predictors` by itself: small, where the rest is large."""

    def compute(results: Results) -> pd.DataFrame:
        return results[found].words

    name = found.beside("words")
    return Step(name, compute, {}, TABLE, (found,))


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
    frozen: Step[FollowedRun] | None = None

    @property
    def _runs(self) -> tuple[CrewRun, ...]:
        return (self.reference, *self.comparisons.values(), *self.uniforms.values())

    @property
    def _given(self) -> tuple[Step[FollowedRun], ...]:
        return () if self.frozen is None else (self.frozen,)

    @property
    def names(self) -> list[str]:
        """Those of all runs and predictors."""
        steps: tuple[Step[Any], ...] = (self.predictors, *self._given)
        return [*(run.name for run in self._runs), *(step.name for step in steps)]

    @property
    def steps(self) -> tuple[Step[Any], ...]:
        """What computes them, each once.

        Needs are begun in this order, and predictors are one processor's longest work.
        """
        every = (self.predictors, *(run.step for run in self._runs), *self._given)
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
            frozen=None if runs.frozen is None else results[runs.frozen],
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


def count_tables(sources: CorpusSide, answers: CorpusSide) -> dict[str, Any]:
    """How far the proxy's count table is from Model 1's first step, both normalised (DYN-15)."""
    counted = normalised(cooccurrence(sources, answers))
    learnt = translation_table(sources, answers, 1)
    difference = abs(counted - learnt)
    return {
        "largest difference": float(difference.max()) if difference.nnz else 0.0,
        "entries": int(learnt.nnz),
        "bytes": table_bytes(learnt),
    }


def tables(text: Step[EncodedCorpus]) -> Step[dict[str, Any]]:
    """`count_tables` of a classification corpus: words and classes."""

    def compute(results: Results) -> dict[str, Any]:
        corpus = results[text]
        train = corpus.splits["train"]
        answers = side(train.labels[:, None], len(corpus.classes))
        return count_tables(_side(train, len(corpus.vocabulary)), answers)

    return Step(text.beside("tables"), compute, {}, needs=(text,))


def sizes(text: Step[EncodedCorpus]) -> Step[dict[str, Any]]:
    """Median lengths without start and end symbols, documents, vocabulary (T9)."""

    def compute(results: Results) -> dict[str, Any]:
        corpus = results[text]
        found: dict[str, Any] = {"vocabulary": len(corpus.vocabulary)}
        for split in ("train", "dev"):
            part = corpus.splits[split]
            found[split] = {"documents": len(part), "median": float(np.median(part.lengths) - 2)}
        return found

    return Step(text.beside("sizes"), compute, {}, needs=(text,))


def _side(encoded: Encoded, types: int) -> CorpusSide:
    return CorpusSide(encoded.ids.astype(np.int64), encoded.starts, types)


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


def _save_predictors(folder: Any, found: Predictors) -> None:
    from safetensors.numpy import save_file

    for split, vectors in found.splits.items():
        arrays = {name: np.ascontiguousarray(v.astype(np.float32)) for name, v in vectors.items()}
        save_file(arrays, str(folder / f"{split}.safetensors"))
    found.words.to_parquet(folder / "words.parquet", index=False)


def _load_predictors(folder: Any) -> Predictors:
    from safetensors.numpy import load_file

    splits = {path.stem: load_file(str(path)) for path in sorted(folder.glob("*.safetensors"))}
    return Predictors(splits, pd.read_parquet(folder / "words.parquet"))


PREDICTORS: Form[Predictors] = Form("", _save_predictors, _load_predictors)
"""How predictors lie on disk as the result of a step."""
