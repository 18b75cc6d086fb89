"""Steps of studies that follow attention: Transformers trained on texts or narratives, traced."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from heedful.audits.traces import accuracy, followed_tables, token_tables, window_tables
from heedful.corpora import Encoded, EncodedCorpus, collate
from heedful.corpora.narrative_batches import (
    NarrativeCorpus,
    encode_narratives,
    load_narratives,
    save_narratives,
)
from heedful.corpora.narratives import Narratives
from heedful.jobs.instance_layers import describe_flow
from heedful.models import (
    NarrativeTransformer,
    TransformerClassifier,
    TransformerConfig,
    build,
    build_narrator,
    load_model,
    save_model,
)
from heedful.models.tracing import layers_of
from heedful.reproduction.results import Results, Step, named
from heedful.runs import TABLES, Form, read_json, write_json
from heedful.studies.tracing.vectors import FIFTY, VectorChoice, made_up, shaped
from heedful.training import History, TrainConfig, fit
from heedful.training.together import fit_together

TRAINING, LOG = "training.json", "log"
Tables = Mapping[str, pd.DataFrame]


class Learnt(NamedTuple):
    """A trained model and how its training went."""

    model: Any
    """TransformerClassifier or NarrativeTransformer."""
    training: Mapping[str, Any]
    """parameters, epochs, best_epoch, best, seconds, how many were trained together in that time,
    and the log: a list for each of its columns, an entry for every epoch."""


Learnts: TypeAlias = Mapping[str, Learnt]
"""Models that were trained together, by name."""


def _save(folder: Path, learnt: Learnt) -> None:
    save_model(learnt.model, folder)
    write_json(folder / TRAINING, learnt.training)


def _load(folder: Path) -> Learnt:
    return Learnt(load_model(folder), read_json(folder / TRAINING))


def _save_all(folder: Path, learnts: Learnts) -> None:
    for name, learnt in learnts.items():
        _save(folder / name, learnt)


def _load_all(folder: Path) -> Learnts:
    return {path.name: _load(path) for path in sorted(folder.iterdir())}


LEARNTS: Form[Learnts] = Form("", _save_all, _load_all)
LEARNT: Form[Learnt] = Form("", _save, _load)
NARRATIVES: Form[NarrativeCorpus] = Form("", save_narratives, load_narratives)


def parameters(model: TransformerClassifier | NarrativeTransformer) -> int:
    """How many numbers are trained."""
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


class Member(NamedTuple):
    """One of several Transformers that are trained together."""

    variant: str
    config: TransformerConfig
    vectors: VectorChoice
    seed: int

    @property
    def name(self) -> str:
        """How it is found among the others."""
        return f"{self.variant},{self.seed}"

    def fresh(self, corpus: EncodedCorpus, fifty: pd.DataFrame | None) -> TransformerClassifier:
        """As it starts, with the word vectors that it reads."""
        found, lacks = corpus.vectors, None
        if found is None:  # planted words have none
            found = made_up(len(corpus.vocabulary), self.vectors.source)
        if fifty is not None and self.vectors.source == fifty.shape[1]:
            lacks = np.isnan(found).any(1) if self.vectors.as_if else None
            found = fifty.to_numpy()
        given = shaped(found, self.vectors, self.seed, lacks)
        words, classes = corpus.vocabulary, corpus.classes
        return build(self.config, words, classes, self.seed, given, corpus.tokeniser)


def learnt_together(
    text: Step[EncodedCorpus],
    fifty: Step[pd.DataFrame],
    members: Sequence[Member],
    training: TrainConfig,
    name: str,
) -> Step[Learnts]:
    """Transformers of one shape trained side by side on a prepared corpus, by `Member.name`."""
    needs = (text, fifty) if any(m.vectors.source == FIFTY for m in members) else (text,)

    def compute(results: Results) -> Learnts:
        corpus = results[text]
        started = time.perf_counter()
        others = results[fifty] if fifty in needs else None
        models = [member.fresh(corpus, others) for member in members]
        histories = fit_together(
            models, corpus, training, seeds=[member.seed for member in members],
            device=results.device, folder=results.scratch(step), show=results.show,
            is_halved=True,
        )  # fmt: skip
        seconds = time.perf_counter() - started
        return {
            member.name: _record(model, history, training.select, seconds, len(members))
            for member, model, history in zip(members, models, histories, strict=True)
        }

    inputs = {
        "members": [[m.name, asdict(m.config), asdict(m.vectors)] for m in members],
        "train": asdict(training),
        "products on a GPU": "bfloat16",
    }
    step = Step(text.beside(name, "models"), compute, inputs, LEARNTS, needs)
    return step


def untrained(text: Step[EncodedCorpus], member: Member) -> Step[Learnts]:
    """A Transformer as it starts."""

    def compute(results: Results) -> Learnts:
        model = member.fresh(results[text], None)
        return {member.name: _record(model, History((), float("nan"), 0), "accuracy", 0.0, 1)}

    inputs: dict[str, Any] = {"model": asdict(member.config), "seed": member.seed}
    inputs |= {"vectors": asdict(member.vectors)}
    return Step(
        text.beside(member.variant, member.seed, "model"), compute, inputs, LEARNTS, (text,)
    )


def learnt_narrator(
    text: Step[NarrativeCorpus],
    config: TransformerConfig,
    seed: int,
    training: TrainConfig | None,
    variant: str,
) -> Step[Learnt]:
    """A model that follows narratives, trained alone; without a training, as it starts."""

    def compute(results: Results) -> Learnt:
        corpus = results[text]
        model = build_narrator(config, corpus.vocabulary, seed, corpus.vectors)
        started, history = time.perf_counter(), History((), float("nan"), 0)
        if training is not None:
            history = fit(
                model, corpus, training, seed=seed, device=results.device,
                folder=results.scratch(step),
            )  # fmt: skip
        metric = "ccc" if training is None else training.select
        return _record(model, history, metric, time.perf_counter() - started, 1)

    inputs = {"model": asdict(config), "seed": seed}
    inputs["train"] = None if training is None else asdict(training)
    step = Step(text.beside(variant, seed, "model"), compute, inputs, LEARNT, (text,))
    return step


def _record(model: Any, history: History, metric: str, seconds: float, together: int) -> Learnt:
    """A trained model with what is told of its training."""
    epochs = [entry["epoch"] for entry in history.entries]
    best = [e["epoch"] for e in history.entries if e["step"] == history.best_step]
    record = {
        "parameters": parameters(model),
        "epochs": epochs[-1] if epochs else 0,
        "best_epoch": best[-1] if best else 0,
        "best": history.best,
        "seconds": seconds,
        "together": together,
        LOG: {
            name: [entry[name] for entry in history.entries]
            for name in ("epoch", "learning_rate", "loss", f"dev_{metric}")
        },
    }
    return Learnt(model.cpu().eval(), record)


def _row(found: Learnt) -> dict[str, list[Any]]:
    return {name: [value] for name, value in found.training.items() if name != LOG}


def traced(text: Step[EncodedCorpus], models: Step[Learnts], member: Member) -> Step[Tables]:
    """Tables `tokens`, `cells`, `documents` of the test texts, one row of `training`, its `log`."""

    def compute(results: Results) -> Tables:
        found = results[models][member.name]
        tables = token_tables(found.model, results[text].splits["test"], results.device)
        row = _row(found) | {"accuracy": [accuracy(tables["documents"])]}
        log = pd.DataFrame(found.training[LOG])
        log = log.assign(setting="", seed=member.seed, seconds=found.training["seconds"])
        return {**tables, "training": pd.DataFrame(row), LOG: log}

    name = text.beside(member.variant, member.seed, "traces")
    inputs = {"split": "test", "member": member.name}
    return Step(name, compute, inputs, TABLES, (text, models))


def told(
    corpus: str,
    load: Callable[[], Narratives],
    inputs: Mapping[str, Any],
    vectors: Path | str | None = None,
) -> Step[NarrativeCorpus]:
    """Narratives in windows, with the vectors of their words."""

    def compute(results: Results) -> NarrativeCorpus:
        return encode_narratives(load(), vectors)

    keyed = {**inputs, "vectors": None if vectors is None else Path(vectors).name}
    return Step(named(corpus, "corpus"), compute, keyed, NARRATIVES)


def followed(text: Step[NarrativeCorpus], model: Step[Learnt]) -> Step[Tables]:
    """Tables `windows` (narrative, window, seconds, rating, guess), `narratives` (ccc of each) and
    one row of `training`, over the test narratives."""

    def compute(results: Results) -> Tables:
        found = results[model]
        tables = followed_tables(found.model, results[text].splits["test"], results.device)
        return tables | {"training": pd.DataFrame(_row(found))}

    return Step(model.beside("followed"), compute, {"split": "test"}, TABLES, (text, model))


def traced_windows(text: Step[NarrativeCorpus], model: Step[Learnt]) -> Step[Tables]:
    """Tables `tokens` and `cells` of the windows of the test narratives."""

    def compute(results: Results) -> Tables:
        return window_tables(results[model].model, results[text].splits["test"], results.device)

    return Step(model.beside("traces"), compute, {"split": "test"}, TABLES, (text, model))


def flow_of(
    model: TransformerClassifier, encoded: Encoded, documents: pd.DataFrame, length: int
) -> dict[str, Any]:
    """The flow through one text of about a length, rightly decided as a positive class.

    Without one that is decided rightly the nearest in length is shown; the last two classes count
    as positive, or the last of fewer than four.
    """
    best = len(model.classes) - (2 if len(model.classes) > 3 else 1)
    right = documents[
        (documents["label"] == documents["prediction"]) & (documents["label"] >= best)
    ]
    chosen = right if len(right) else documents
    away = (chosen["length"] - length).abs()
    name = str(chosen["instance"].iloc[int(away.to_numpy().argmin())])
    batch = collate(encoded, [encoded.names.index(name)])
    words = batch.words(model.vocabulary)[0]
    stack = layers_of(deepcopy(model).double(), batch)
    attention = [layer.matrix()[0].numpy().round(6).tolist() for layer in stack.layers]
    return describe_flow(stack, 0, words) | {"instance": name, "attention": attention}
