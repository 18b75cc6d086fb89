"""The steps most studies share: prepare a corpus, train a model for a seed, audit it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from heedful.corpora import Corpus, EncodedCorpus, load_prepared, prepare
from heedful.corpora.root import root_of
from heedful.errors import InputError
from heedful.models import AttentionClassifier, Recipe, build, load_classifier, parse, save_model
from heedful.models.recipe import described
from heedful.reproduction.results import Results, Step, named
from heedful.reproduction.study import Plan
from heedful.runs import TABLES, Form
from heedful.training import TrainConfig, fit


def _save_model(folder: Path, model: AttentionClassifier) -> None:
    save_model(model, folder)


MODEL: Form[AttentionClassifier] = Form("", _save_model, load_classifier)
GLOVE = "glove/glove.6B.100d.subset.txt.gz"


def word_vectors(plan: Plan) -> Path:
    """The file of the vectors at hand; a machine that only has prepared files needs its name."""
    try:
        return root_of(plan.data_root) / GLOVE
    except InputError:
        return Path(GLOVE)


def prepared(
    plan: Plan, corpus: str, vectors: Path | str | None = None, **settings: Any
) -> Step[EncodedCorpus]:
    """The corpus as ids, without the raw text: training elsewhere can start from its folder.

    `vectors` is a file of word vectors; `settings` go to `prepare`: min_count, max_size,
    max_tokens.
    """
    source = plan.source(corpus)

    def compute(results: Results) -> Corpus:
        if source.load is None:
            raise InputError(f"{source.title} has no documents to prepare.")
        return source.load(plan)

    def save(folder: Path, read: Corpus) -> None:
        prepare(read, folder, vectors, **settings)

    inputs = {
        "corpus": corpus,
        "scale": plan.scale,
        "source": source.inputs,
        "vectors": None if vectors is None else Path(vectors).name,
        "prepare": settings,
    }
    # What goes in is a corpus with its text, what comes back is its ids: hence Any.
    form: Form[Any] = Form("", save, load_prepared)
    return Step(named(corpus, "corpus"), compute, inputs, form)


def trained(
    plan: Plan,
    text: Step[EncodedCorpus],
    recipe: str | Recipe,
    seed: int,
    config: TrainConfig = TrainConfig(),
    tag: str = "",
    **sizes: Any,
) -> Step[AttentionClassifier]:
    """The model of a recipe trained on a prepared corpus; a kill goes on from its checkpoint.

    `sizes` are fields of ModelConfig; `tag` tells apart models that differ in nothing else that
    is in the name (sizes, training).
    """
    chosen = parse(recipe, **sizes) if isinstance(recipe, str) else recipe

    def compute(results: Results) -> AttentionClassifier:
        corpus = results[text]
        words, classes = corpus.vocabulary, corpus.classes
        model = build(chosen.model, words, classes, seed, corpus.vectors, corpus.tokeniser)
        fit(
            model, corpus, config, chosen.penalties,
            seed=seed, device=results.device, folder=results.scratch(step),
        )  # fmt: skip
        return model

    inputs = {"recipe": str(chosen), "model": described(chosen.model), "seed": seed}
    inputs |= {"penalties": asdict(chosen.penalties), "train": config.described()}
    name = text.beside(*_tagged(str(chosen), tag), seed, "model")
    step = Step(name, compute, inputs, MODEL, (text,))
    return step


def audited(
    plan: Plan,
    text: Step[EncodedCorpus],
    model: Step[AttentionClassifier],
    audits: Sequence[str],
    methods: Sequence[str] = ("random", "attention", "gradient", "product"),
    split: str = "test",
    seed: int = 0,
    tag: str = "",
) -> Step[Mapping[str, pd.DataFrame]]:
    """The per-instance rows of each named audit over one split, by the audit's name."""

    def compute(results: Results) -> Mapping[str, pd.DataFrame]:
        from heedful.audits import AUDITS
        from heedful.audits.examination import examine

        asked = {name: AUDITS[name].rows for name in audits}
        opened, documents = results[model].to(results.device), results[text].splits[split]
        return examine(opened, documents, asked, methods, seed=seed, device=results.device)

    inputs = {"audits": list(audits), "methods": list(methods), "split": split, "seed": seed}
    name = model.beside(*_tagged("rows", tag))
    return Step(name, compute, inputs, TABLES, (text, model))


def _tagged(part: str, tag: str) -> list[str]:
    return [f"{part},{tag}" if tag else part]
