"""Classifiers of `transformers` that a user holds in memory: a pipeline, or (model, tokenizer)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heedful.errors import InputError, UnsupportedModel
from heedful.models.huggingface.classifier import PretrainedClassifier
from heedful.models.huggingface.opening import in_sentences, reader_of, refuse

TASK = "text-classification"


def is_in_memory(given: object) -> bool:
    """Whether this is a pipeline, a pair (model, tokenizer), or a model without its tokenizer."""
    is_pipeline = hasattr(given, "task") and hasattr(given, "tokenizer")
    return is_pipeline or isinstance(given, tuple) or _is_model(given)


def read_in_memory(given: Any, **reading: Any) -> PretrainedClassifier:
    """The classifier read as it is, where it is; `reading` is as in `reader_of`.

    Its weights are shared, not copied: a model that is trained on is another one.
    """
    model, tokenizer = _parts(given)
    name = Path(str(getattr(model, "name_or_path", ""))).name or type(model).__name__
    if not _is_model(model) or model.get_output_embeddings() is not None:
        raise UnsupportedModel(
            f"{type(model).__name__} is no classifier of texts; expected a model of "
            "AutoModelForSequenceClassification. A language model is named by its folder, "
            "lm:FOLDER, and any other module is wrapped as docs/any-module.md says."
        )
    refuse(model.config, name)
    with in_sentences(name):
        found = reader_of(model, tokenizer, name, **reading)
    found.recipe = name  # which opens nothing: its weights may be nowhere but here
    return found


def _parts(given: Any) -> tuple[Any, Any]:
    """The model and its tokenizer."""
    if isinstance(given, tuple):
        if len(given) == 2 and _is_model(given[0]) and callable(given[1]):
            return given
        kinds = ", ".join(type(one).__name__ for one in given)
        raise InputError(f"Expected a pair (model, tokenizer) of transformers, got ({kinds}).")
    if _is_model(given):
        raise InputError(
            f"{type(given).__name__} reads no text without its tokenizer; give both as a pair, "
            "(model, tokenizer), or a pipeline."
        )
    if given.task != TASK:
        raise UnsupportedModel(f"Expected a pipeline of {TASK}, got one of {given.task}.")
    return given.model, given.tokenizer


def _is_model(given: object) -> bool:
    """Whether this is a model of `transformers`, which need not be imported to tell."""
    return hasattr(given, "config") and hasattr(given, "get_output_embeddings")
