"""The tracing study's Transformers as they were trained, what is told of them, and how they lie."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from heedful.corpora import Encoded, EncodedCorpus, collate
from heedful.jobs.instance_layers import describe_flow
from heedful.models import (
    NarrativeTransformer,
    TransformerClassifier,
    TransformerConfig,
    build,
    load_model,
    save_model,
)
from heedful.models.tracing import layers_of
from heedful.runs import Form, read_json, write_json
from heedful.studies.tracing.vectors import VectorChoice, made_up, shaped
from heedful.training import History

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


def recorded(model: Any, history: History, metric: str, seconds: float, together: int) -> Learnt:
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


def row_of(found: Learnt) -> dict[str, list[Any]]:
    """What is told of a training, as columns of one row."""
    return {name: [value] for name, value in found.training.items() if name != LOG}


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
