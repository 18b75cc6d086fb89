"""Where fine-tuning starts and what it leaves: a folder of `transformers`, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

from heedful.corpora.labels import match_labels
from heedful.errors import InputError
from heedful.models.huggingface.classifier import PretrainedClassifier
from heedful.models.huggingface.opening import (
    PREFIX,
    class_names,
    in_sentences,
    quietly,
    reader_of,
    refuse,
    refuse_code,
    refuse_counts,
)
from heedful.models.huggingface.pieces import FastTokeniser
from heedful.models.saved import refuse_large
from heedful.runs.atomic import writing_folder
from heedful.runs.randomness import seeded

Head = Literal["kept", "fresh"]


class Started(NamedTuple):
    """A pretrained model that is ready to be fine-tuned."""

    model: PretrainedClassifier
    head: Head
    """Whether it decided between these labels before, or got a random head for them."""


def start_from(
    place: str | Path,
    classes: Sequence[str],
    *,
    seed: int = 0,
    long: str = "beginning",
    max_pieces: int | None = None,
    trust_remote_code: bool = False,
) -> Started:
    """The model of a folder or of a name on the hub, in float32, with a head for these classes.

    A head that was trained for these very labels is kept, in its own order; an encoder without a
    head and a classifier for other labels get a fresh one, which depends on the seed alone.
    """
    name = str(place).removeprefix(PREFIX)
    remote = {"trust_remote_code": trust_remote_code}
    with in_sentences(name), quietly(), seeded(seed):
        from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

        refuse_counts(name)
        config = AutoConfig.from_pretrained(name, **remote)
        head: Head = "kept" if _decides_for(config, classes) else "fresh"
        if head == "fresh":
            config.problem_type = None
            config.id2label = dict(enumerate(classes))
            config.label2id = {label: number for number, label in enumerate(classes)}
        refuse(config, name)
        refuse_code(config, name, trust_remote_code)
        kind: Any = AutoModelForSequenceClassification
        refuse_large(lambda: kind.from_config(config, **remote), name)
        model, loaded = AutoModelForSequenceClassification.from_pretrained(
            name,
            config=config,
            dtype=torch.float32,
            output_loading_info=True,
            use_safetensors=True,
            ignore_mismatched_sizes=head == "fresh",
            **remote,
        )
        _refuse_missing(model, loaded["missing_keys"], name, head)
        if head == "fresh":
            _reset_head(model)
        tokenizer = AutoTokenizer.from_pretrained(name, **remote)
    return Started(reader_of(model, tokenizer, name, long=long, max_pieces=max_pieces), head)


def save_classifier(model: PretrainedClassifier, folder: Path) -> None:
    """Writes a folder that `transformers` opens, as a whole or not at all."""
    with writing_folder(folder) as written:
        write_classifier(model, written)


def write_classifier(model: PretrainedClassifier, folder: Path) -> None:
    """Writes safetensors, tokenizer and labels into a folder that is there.

    The tokenizer's limit becomes what the model was given to read, so that it reads the same again.
    """
    inner: Any = model.model
    if not isinstance(model.subwords, FastTokeniser) or not hasattr(inner, "save_pretrained"):
        raise InputError(
            f"{type(inner).__name__} is no model of transformers, so it has no folder of "
            "theirs; save its weights yourself."
        )
    model.subwords.tokenizer.model_max_length = model.max_pieces
    with quietly():
        inner.save_pretrained(folder)
        model.subwords.tokenizer.save_pretrained(folder)


def _decides_for(config: Any, classes: Sequence[str]) -> bool:
    """Whether the model has a head, and for as many labels of these names."""
    has_head = any("ForSequenceClassification" in name for name in config.architectures or ())
    if not has_head or config.num_labels != len(classes):
        return False
    try:
        match_labels(class_names(config), tuple(classes))
    except InputError:
        return False
    return config.problem_type not in ("regression", "multi_label_classification")


def _refuse_missing(model: Any, missing: Sequence[str], name: str, head: Head) -> None:
    """Raises where weights of the encoder, or of a head that should be there, are missing."""
    encoder = f"{model.base_model_prefix}."
    lost = [
        key
        for key in sorted(missing)
        if head == "kept" or (key.startswith(encoder) and ".pooler." not in key)
    ]
    if lost:
        raise InputError(
            f"{name} lacks weights of its own architecture ({', '.join(lost[:3])}, {len(lost)} in "
            "all); fine-tuning would start from random ones. Save the whole model."
        )


def _reset_head(model: Any) -> None:
    """Draws everything outside the encoder anew."""
    for part in model.children():
        if part is model.base_model:
            continue
        for module in part.modules():
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()
