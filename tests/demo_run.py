"""A small real run for the page's tests: a trained model, its findings, its instances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heedful.audits import AUDITS
from heedful.corpora.batches import collate
from heedful.corpora.documents import Document
from heedful.corpora.encoded import encode, encode_documents
from heedful.corpora.planted import planted
from heedful.corpora.texts import document_of
from heedful.importance import METHODS, explain
from heedful.jobs.audited_attention import audited_attention
from heedful.jobs.instances import choose, describe
from heedful.models import AttentionClassifier, Reading, build, parse, read
from heedful.report import render
from heedful.runs import RunFolder, write_json
from heedful.training import TrainConfig, fit
from heedful.training.checkpoints import remove_checkpoint

VERDICT: dict[str, Any] = {
    "word": "partly",
    "provisional": True,
    "sentence": "Attention is a hint, not a reason: decisions depend on it, but other words would "
    "often do as well.",
    "score": 0.5,
    "tests": [
        {
            "name": "Decisions depend on where attention lies",
            "outcome": "supports",
            "sentence": "Shuffling attention changes 31 % of the decisions.",
            "audit": "substitution",
            "value": 0.31,
            "low": 0.27,
            "high": 0.35,
            "threshold": 0.2,
        },
        {
            "name": "Attention ranks what the decision rests on",
            "outcome": "mixed",
            "sentence": "Erasing by attention comes 48 % of the way to the best order found.",
            "audit": "erasure",
            "value": 0.48,
            "low": 0.41,
            "high": 0.55,
            "threshold": 0.6,
        },
        {
            "name": "Words keep to themselves",
            "outcome": "contradicts",
            "sentence": "97 % of the words, attended alone, already give the decision.",
            "audit": "confidence",
            "value": 0.97,
            "low": 0.96,
            "high": 0.98,
            "threshold": 0.7,
        },
        {
            "name": "Deleting the attended words hurts",
            "outcome": "unknown",
            "sentence": "Could not be measured here.",
            "audit": "input-erasure",
            "value": None,
            "low": None,
            "high": None,
            "threshold": 0.05,
        },
    ],
    "advice": [
        "Show leave-one-out instead: it finds the words this model needs.",
        "Train with `+tying:10` and audit again.",
    ],
    "calibration": None,
}


class Demo(NamedTuple):
    """A run on disk with what is needed to check its page."""

    folder: Path
    page: Path
    model: AttentionClassifier
    readings: dict[str, Reading]
    """The reading that holds each document of the page, by instance id."""


def demo(
    folder: Path,
    recipe: str = "none+additive",
    extra: Sequence[Document] = (),
    *,
    test: int = 60,
    train: int = 300,
    epochs: int = 3,
    length: str = "short",
) -> Demo:
    """Trains on planted reviews, audits them and renders the page; `extra` is shown beside them."""
    corpus = planted(2, length, 0, {"train": train, "dev": 40, "test": test})
    encoded = encode(corpus)
    recipe_of = parse(recipe, embedding_dim=32, width=32)
    model = build(recipe_of.model, encoded.vocabulary, encoded.classes)
    run = RunFolder.create(
        folder, {"kind": "train", "recipe": str(recipe_of), "corpus": corpus.name, "seed": 0}
    )
    config = TrainConfig(epochs=epochs, batch_size=16, learning_rate=5e-3)
    fit(model, encoded, config, recipe_of.penalties, folder=folder)
    remove_checkpoint(folder)
    reading = read(model, collate(encoded.splits["test"], range(test)))
    importance = explain(model, reading)
    rows = {n: a.rows(model, reading, importance, 0) for n, a in AUDITS.items()}
    for name, audit in AUDITS.items():
        write_json(run.findings / f"{name}.json", audit.summarise(rows[name]))
    tags = choose(rows, reading.names, test)
    entries = describe(model, reading, importance, tags)
    readings = dict.fromkeys(reading.names, reading)
    for document in extra:
        split, _ = encode_documents([document], encoded.vocabulary)
        readings[document.id] = alone = read(model, collate(split, [0]))
        entries += describe(model, alone, explain(model, alone))
    shown = {
        "classes": list(model.classes),
        "methods": [{"name": m, "sentence": METHODS[m].sentence} for m in importance],
        "linear": True,
        "audited": audited_attention(model)._asdict(),
        "documents": len(entries),
        "instances": entries,
    }
    write_json(run.findings / "instances.json", shown)
    write_json(run.findings / "verdict.json", VERDICT)
    run.update(audited={"documents": test, "of": test, "corpus": corpus.name})
    return Demo(folder, render(folder), model, readings)


def written(id: str, text: str, label: int = -1) -> Document:
    """A document of whitespace tokens, exactly as written, without evidence."""
    document = document_of(id, text, label, "whitespace")
    tokens = tuple(text[start:end] for start, end in document.spans.tolist())
    return replace(document, tokens=tokens, evidence=np.zeros(len(tokens), bool))
