"""Train a model by its recipe, from corpus to run folder."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from heedful.corpora import Corpus, EncodedCorpus, load_vectors
from heedful.corpora.in_memory import Documents
from heedful.errors import InputError
from heedful.jobs.decider import Decider, deciding, device_of, encoded_of, repeatable
from heedful.jobs.fine_tuning import DEFAULT, fine_tune
from heedful.jobs.settings import Settings, settings_for
from heedful.jobs.sources import DocumentSource, documents_of
from heedful.jobs.training_run import kept
from heedful.models import (
    Classifier,
    ModelConfig,
    Penalties,
    Recipe,
    TransformerConfig,
    TransformerRecipe,
    build,
    load_model,
    parse,
    save_model,
)
from heedful.models.huggingface import is_transformer
from heedful.models.recipe import reductions, with_settings
from heedful.models.transformer_config import NARRATIVES, TRANSFORMER
from heedful.runs.steps import digest
from heedful.training import History, Observer, evaluate, fit, objectives
from heedful.training.presets import PRESETS, nearest

LONG = 500
"""Words of an average text from which on a training is told that it could be shorter."""


def train(
    recipe: str | Recipe | TransformerRecipe,
    corpus: Corpus | EncodedCorpus | Documents = "planted",
    out: str | Path | None = None,
    *,
    settings: Settings = Settings(),
    vectors: str | Path | None = None,
    seed: int = 0,
    device: str = "auto",
    deterministic: bool = False,
    observers: Sequence[Observer] = (),
    source: DocumentSource | None = None,
    show: bool = False,
    watch: bool = False,
    penalties: Penalties = Penalties(),
    trust_remote_code: bool = False,
) -> Decider:
    """The model of a recipe, trained on a corpus; with `out`, kept in a run folder.

    `corpus` is one, its name, or documents in memory, which are split by the seed (see `audit`).

    `recipe` may be a preset such as `erasure/han-rnn`, which brings its own settings unless others
    are given, or `hf:NAME` or a folder of `transformers`, which is fine-tuned under `penalties`
    (see `fine_tune`; a recipe says its own) and brings code of its own only if that is allowed. A
    run folder that holds the same run already is resumed, or its model is given back at once.
    `source` is written into it, so that the run can open its documents again. `watch` logs at every
    evaluation how attention, what single units tell and a bag of words agree.

    >>> import heedful
    >>> from heedful.jobs.settings import settings_of
    >>> corpus = heedful.load_corpus("planted:2:short", sizes={"train": 200, "dev": 50})
    >>> small = settings_of({"train": {"epochs": 1}})
    >>> model = heedful.train("none+additive", corpus, settings=small)
    >>> model.classes
    ('negative', 'positive')
    """
    corpus, said = documents_of(corpus, seed=seed)
    for line in said if show else ():
        print(line, file=sys.stderr)
    if isinstance(recipe, str) and is_transformer(recipe):
        if vectors is not None or watch:
            raise InputError(
                "Word vectors and the watch over training are for heedful's own models; leave them "
                "out for a model of transformers."
            )
        return fine_tune(
            recipe, corpus, out, settings=DEFAULT if settings == Settings() else settings,
            penalties=penalties, seed=seed, device=device, deterministic=deterministic,
            observers=observers, source=source, show=show, trust_remote_code=trust_remote_code,
        )  # fmt: skip
    if penalties != Penalties():
        raise InputError("A recipe says its own penalties, such as bilstm+additive+tying:10.")
    if isinstance(recipe, str) and recipe in PRESETS:
        settings = settings_for(recipe, settings)
        recipe = PRESETS[recipe].recipe
    elif isinstance(recipe, str) and "/" in recipe:  # which no recipe has
        raise InputError(
            f"{recipe} is neither a preset nor a folder of transformers. {nearest(recipe)}"
        )
    target = device_of(device)
    encoded = encoded_of(corpus, settings.words)
    if show:
        _tell_length(encoded)
    table = encoded.vectors
    if vectors is not None:
        table, _ = load_vectors(vectors, encoded.vocabulary)
    if isinstance(recipe, str):
        recipe = recipe_of(recipe, None if table is None else table.shape[1], settings.model)
        recipe = replace(recipe, penalties=replace(recipe.penalties, **settings.penalties))
    if isinstance(recipe.model, ModelConfig):
        objectives.check(recipe.model, recipe.penalties)

    def learn(folder: Path | None) -> tuple[Classifier, History]:
        words, classes = encoded.vocabulary, encoded.classes
        cutting = encoded.tokeniser, settings.words.max_tokens
        model = build(recipe.model, words, classes, seed, table, *cutting)
        model.recipe = str(recipe)
        seen = list(observers)
        if watch:
            from heedful.dynamics.watch import Watch

            watching = Watch(encoded, folder, seed)
            if not watching.entries:
                watching.log(0, 0.0, model.to(target), target)
            seen.append(watching)
        with repeatable(deterministic):
            history = fit(
                model,
                encoded,
                settings.train,
                recipe.penalties,
                seed=seed,
                device=target,
                observers=seen,
                folder=folder,
                show=show,
            )
        return model.eval(), history

    return kept(
        out,
        {
            "recipe": str(recipe),
            "model": asdict(recipe.model),
            "train": settings.train.described(),
            "words": asdict(settings.words),
            "penalties": reductions(recipe.penalties),
            "vectors": vectors_digest(vectors) if vectors else None,
        },
        encoded,
        learn=learn,
        save=save_model,
        reopen=lambda folder: deciding(load_model(folder, target)),
        measure=evaluate,
        seed=seed,
        device=target,
        notes=dict(encoded.notes),
        source=source,
        vectors=None if vectors is None else str(Path(vectors).resolve()),
    )


def _tell_length(encoded: EncodedCorpus) -> None:
    """Says that texts are long, and what would cut them."""
    if "train" not in encoded.splits or not len(encoded.splits["train"]):
        return
    lengths = encoded.splits["train"].lengths
    if lengths.mean() > LONG:
        print(
            f"Texts are long: {lengths.mean():,.0f} words on average, {lengths.max():,} at most. "
            "Training takes as much longer; max_tokens under [words] of a --config file cuts them.",
            file=sys.stderr,
        )


def recipe_of(
    name: str, vectors: int | None = None, sizes: Mapping[str, Any] | None = None
) -> Recipe | TransformerRecipe:
    """What a typed recipe stands for; word vectors of that width set the sizes not given."""
    given = dict(sizes or {})
    if name == NARRATIVES:
        raise InputError(
            "This preset follows narratives, which are no classification corpus; train it with "
            "heedful.jobs.narratives.train_narrator."
        )
    if name == TRANSFORMER:
        width = {} if vectors is None else {"embedding_dim": vectors}
        if "pooling_dims" in given:  # a list, where it comes from a file
            given["pooling_dims"] = tuple(given["pooling_dims"])
        return TransformerRecipe(with_settings(TransformerConfig, width | given))
    width = {} if vectors is None else {"embedding_dim": vectors, "width": vectors}
    return parse(name, **(width | given))


def vectors_digest(vectors: str | Path) -> str:
    """A file's name with a hash of its bytes: another file of the same name is another start."""
    return f"{Path(vectors).name} {digest(Path(vectors))[:12]}"
