"""A model that decides: opened by name, put on a device, given a corpus as it reads it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, overload

import torch

from heedful.corpora import Corpus, EncodedCorpus, encode, match_labels
from heedful.errors import InputError, UnsupportedModel
from heedful.jobs.settings import WordSettings
from heedful.models import Classifier, NarrativeTransformer, load_model
from heedful.models.huggingface import PretrainedClassifier, is_transformer, open_classifier
from heedful.models.huggingface.in_memory import is_in_memory, read_in_memory
from heedful.models.huggingface.label_choice import LabelChoice
from heedful.models.huggingface.language_models import (
    Asking,
    is_language_model,
    open_language_model,
)
from heedful.models.saved import weights_digest
from heedful.models.saved_translator import PIECES_FILE
from heedful.runs import RunFolder
from heedful.runs.entries import refuse_pipes

Decider: TypeAlias = Classifier | PretrainedClassifier
"""A model that decides: one of our own, or any other that is read through its attention."""
Model: TypeAlias = "Decider | str | Path | Any"
"""What a user may give for a trained model: one that was opened, the path or name of one, a
pipeline of `transformers`, or a pair of its model and tokenizer."""


def device_of(name: str = "auto") -> torch.device:
    """The device of that name; `auto` is a GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).cpu()  # a device without numbers (meta) has none to give
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"Device {name!r} cannot be used here ({reason}); try cpu.") from error
    return device


@contextmanager
def repeatable(is_wanted: bool) -> Iterator[None]:
    """Lends torch in a mode where a GPU gives the same bits every time, and gives it back.

    The CPU always does, with the same number of threads.
    """
    if not is_wanted:
        yield
        return
    before = torch.are_deterministic_algorithms_enabled()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when CUDA starts
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


@contextmanager
def quick_products(device: torch.device) -> Iterator[None]:
    """Lends a card whose products of float32 matrices keep 10 bits (TF32), four times as fast.

    What is made of them, sums and softmax, keeps float32, and what is decided from unit logits
    float64. `tests/jobs/test_precision.py` says what that may change; NVIDIA_TF32_OVERRIDE=0 in the
    environment forbids it.
    """
    before = torch.get_float32_matmul_precision()
    try:
        if device.type == "cuda":
            torch.set_float32_matmul_precision("high")
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def load(
    path: str | Path | Any,
    device: str = "cpu",
    *,
    site: str = "pooled",
    long: str = "beginning",
    max_pieces: int | None = None,
    trust_remote_code: bool = False,
    asking: Asking | None = None,
) -> Decider | NarrativeTransformer:
    """The trained model of a run folder, of a folder that holds a model, or `hf:NAME` of the hub.

    Also one that is in memory already, a text classification pipeline of `transformers` or a pair
    (model, tokenizer): it is read where it is, and `device` is not looked at.

    A language model (`lm:FOLDER`) is asked as `asking` says, and chooses among labels. The folder
    of an audit stands for the model that was audited, as it was read there. `site` says which
    attention is read and edited; what is not `pooled` is for models of `transformers`, as are
    `long` (what is kept of a text that is longer than the model reads: `beginning`, `end`, `both`,
    or `refuse`), `max_pieces` and `trust_remote_code`.

    >>> import heedful, tempfile
    >>> from heedful.models import example, save_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(example(), Path(folder))
    ...     model = heedful.load(folder)
    >>> model.classes
    ('negative', 'positive')
    """
    reading: dict[str, Any] = {"site": site, "long": long, "max_pieces": max_pieces}
    if is_in_memory(path):
        return read_in_memory(path, **reading)
    opening: dict[str, Any] = {
        "device": device_of(device), "trust_remote_code": trust_remote_code,
    }  # fmt: skip
    if is_language_model(path):
        if asking is None:
            raise InputError(
                f"{path} is a language model: say what it is asked by --prompt (a template with "
                "{text} in it, or a file) and --labels (as in positive,negative)."
            )
        return open_language_model(path, asking, **reading, **opening)
    if asking is not None:
        raise InputError(f"{path} decides by itself; a prompt is for a language model, lm:FOLDER.")
    folder, is_named = Path(path), str(path).startswith("hf:")
    if not is_named and not folder.exists():
        raise InputError(f"{folder} does not exist; expected a run or model folder, or hf:NAME.")
    if not is_named and folder.is_dir():
        refuse_pipes(folder, deep=0)
    refuse_translator(folder)
    if (folder / "run.json").exists():
        run = RunFolder.open(folder)
        audited = run.record.get("audited") or {}
        place = audited.get("run") or audited.get("model")
        if place and not run.model.exists():
            if site == "pooled":
                reading["site"] = audited.get("site", site)
            if long == "beginning":
                reading["long"] = audited.get("long", long)
            said = dict(audited.get("asked") or {})
            offset, prior = said.pop("offset", None), said.pop("corrected by", "none")
            again = Asking(**said) if said else None
            trusted = trust_remote_code
            model = load(place, device, asking=again, trust_remote_code=trusted, **reading)
            if isinstance(model, PretrainedClassifier) and isinstance(model.model, LabelChoice):
                model.model.offset.copy_(torch.tensor(offset, dtype=torch.float64))
                model.model.prior = prior
            if weights_digest(deciding(model)) != run.configuration.get("model"):
                raise InputError(
                    f"{place} has changed since {path} was audited; audit it again, or name it."
                )
            return model
        folder = run.model
    if is_named or is_transformer(folder):
        return open_classifier(path if is_named else folder, **reading, **opening)
    if site != "pooled":
        raise InputError(
            f"This model has one attention, the one it pools by; --site {site} is for models of "
            "transformers."
        )
    return load_model(folder, device_of(device))


def decider_of(model: Model, device: str = "cpu", **reading: Any) -> Decider:
    """The model itself where it was opened already, else as `load` opens it, `reading` as there."""
    if isinstance(model, str | Path) or is_in_memory(model):
        return deciding(load(model, device, **reading))
    found: Decider = model
    return found


def is_trained(name: str | Path) -> bool:
    """Whether this names a trained model: an existing path, or `hf:NAME`."""
    return Path(name).exists() or is_transformer(name) or is_language_model(name)


def refuse_translator(run: str | Path) -> None:
    """Raises at a translator, which decides nothing that these audits ask about.

    `run` is its run folder, or the model's own.
    """
    folder = Path(run)
    is_model = (folder / PIECES_FILE).is_file()
    is_run = (folder / "run.json").is_file()
    if is_model or (is_run and RunFolder.open(folder).configuration.get("kind") == "translator"):
        page = (folder.parent if is_model else folder) / "index.html"
        raise UnsupportedModel(
            f"{run} holds a translator, which `heedful translator` has audited already; see {page}."
        )


def lacking(corpus: Corpus | EncodedCorpus, split: str) -> tuple[str, ...]:
    """The classes of which the split has no document."""
    return tuple(name for name, count in corpus.counts(split).items() if not count)


@overload
def deciding(model: Classifier | NarrativeTransformer) -> Classifier: ...
@overload
def deciding(model: Decider | NarrativeTransformer) -> Decider: ...
def deciding(model: Decider | NarrativeTransformer) -> Decider:
    """The model itself, if it decides; a model that rates narratives over time is refused."""
    if isinstance(model, NarrativeTransformer):
        raise UnsupportedModel(
            "This model rates a narrative over time and decides nothing, so no audit can ask "
            "whether its decision changes; trace it instead."
        )
    return model


def encoded_of(corpus: Corpus | EncodedCorpus, words: WordSettings) -> EncodedCorpus:
    """The corpus as ids, with the vocabulary of its training documents."""
    if isinstance(corpus, EncodedCorpus):
        return corpus
    sizes = words.min_count, words.max_size, words.max_tokens
    return encode(corpus, None, *sizes, words.words_of)


def read_by(
    model: Decider,
    corpus: Corpus | EncodedCorpus,
    only: Mapping[str, Sequence[int]] | None = None,
) -> EncodedCorpus:
    """The corpus as ids of the model's own vocabulary, with the model's order of classes.

    Labels are matched by name, whatever their case, or by the number of a class; see
    `match_labels`. `only` is as in `PretrainedClassifier.encode`, for such a model.
    """
    index = match_labels(model.classes, corpus.classes).places
    if isinstance(model, PretrainedClassifier):
        if isinstance(corpus, EncodedCorpus):
            raise InputError(
                f"The prepared corpus {corpus.name} holds the ids of another vocabulary; this "
                "model cuts texts by its own tokenizer, so give the raw corpus."
            )
        return model.encode(_relabelled(corpus, model.classes, index), only)
    if isinstance(corpus, EncodedCorpus):
        if corpus.vocabulary != model.vocabulary or corpus.classes != model.classes:
            raise InputError(
                f"The prepared corpus {corpus.name} has another vocabulary than the model; "
                "give the raw corpus, or train from the prepared files."
            )
        return corpus
    known = _relabelled(corpus, model.classes, index)
    return encode(known, model.vocabulary, max_tokens=model.max_tokens)


def _relabelled(corpus: Corpus, classes: tuple[str, ...], places: Mapping[str, int]) -> Corpus:
    if corpus.classes == classes:
        return corpus
    index = [places[name] for name in corpus.classes]
    splits = {
        split: [replace(d, label=index[d.label] if d.label >= 0 else -1) for d in documents]
        for split, documents in corpus.splits.items()
    }
    return replace(corpus, classes=classes, splits=splits)
