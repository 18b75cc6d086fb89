"""Train a model by its recipe, from corpus to run folder."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from heedful.corpora import Corpus, EncodedCorpus, load_corpus, load_vectors
from heedful.jobs.opening import deterministic, device_of, encoded_of
from heedful.jobs.settings import Settings, preset_settings
from heedful.jobs.sources import Source
from heedful.models import AttentionClassifier, Recipe, build, load_model, parse, save_model
from heedful.runs import RunFolder
from heedful.training import History, Observer, evaluate, fit, objectives
from heedful.training.presets import PRESETS


def train(
    recipe: str | Recipe,
    corpus: str | Corpus | EncodedCorpus = "planted",
    out: str | Path | None = None,
    *,
    settings: Settings = Settings(),
    vectors: str | Path | None = None,
    seed: int = 0,
    device: str = "auto",
    is_deterministic: bool = False,
    observers: Sequence[Observer] = (),
    source: Source | None = None,
    show: bool = False,
) -> AttentionClassifier:
    """The model of a recipe, trained on a corpus; with `out`, kept in a run folder.

    `recipe` may be a preset such as `erasure/han-rnn`, which brings its own settings unless others
    are given. A run folder that holds the same run already is resumed, or its model is given back
    at once. `source` is written into it, so that the run can open its documents again.

    >>> import heedful
    >>> from heedful.jobs.settings import settings_of
    >>> corpus = heedful.load_corpus("planted:2:short", sizes={"train": 200, "dev": 50})
    >>> small = settings_of({"train": {"epochs": 1}})
    >>> model = heedful.train("none+additive", corpus, settings=small)
    >>> model.classes
    ('negative', 'positive')
    """
    if isinstance(corpus, str):
        corpus = load_corpus(corpus, seed=seed)
    if isinstance(recipe, str) and recipe in PRESETS:
        settings = preset_settings(recipe) if settings == Settings() else settings
        recipe = PRESETS[recipe].recipe
    target = device_of(device)
    encoded = encoded_of(corpus, settings.words)
    table = encoded.vectors
    if vectors is not None:
        table, _ = load_vectors(vectors, encoded.vocabulary)
    if not isinstance(recipe, Recipe):
        width = {} if table is None else {"embedding_dim": table.shape[1], "width": table.shape[1]}
        recipe = parse(recipe, **(width | dict(settings.model)))
    objectives.check(recipe.model, recipe.penalties)

    def learn(folder: Path | None) -> tuple[AttentionClassifier, History]:
        words, classes = encoded.vocabulary, encoded.classes
        cutting = encoded.tokeniser, settings.words.max_tokens
        model = build(recipe.model, words, classes, seed, table, *cutting)
        model.recipe = str(recipe)
        with deterministic(is_deterministic):
            history = fit(
                model,
                encoded,
                settings.train,
                recipe.penalties,
                seed=seed,
                device=target,
                observers=observers,
                folder=folder,
                show=show,
            )
        return model.eval(), history

    if out is None:
        return learn(None)[0]
    run = RunFolder.create(
        out,
        {
            "kind": "train",
            "recipe": str(recipe),
            "model": asdict(recipe.model),
            "train": asdict(settings.train),
            "words": asdict(settings.words),
            "corpus": encoded.name,
            "vectors": _digest(Path(vectors)) if vectors else None,
            "seed": seed,
        },
        seeds={"all": seed},
        device=str(target),
        corpus=encoded.fingerprint,
    )
    if run.is_finished("train"):
        return load_model(run.model, target)
    started = time.perf_counter()
    with run.locked():
        run.update(notes=dict(encoded.notes), source=source.to_json() if source else None)
        model, history = learn(run.path)
        save_model(model, run.model)
        run.update(best_dev=history.best, best_step=history.best_step)
        if "test" in encoded.splits:
            run.update(test=asdict(evaluate(model, encoded.splits["test"], target)))
        run.finish("train", time.perf_counter() - started)
    return model


def _digest(vectors: Path) -> str:
    """A file's name with a hash of its bytes: another file of the same name is another start."""
    with vectors.open("rb") as file:
        return f"{vectors.name} {hashlib.file_digest(file, 'sha256').hexdigest()[:12]}"
