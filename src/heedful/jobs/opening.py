"""Finding what the user named: a device, a corpus, a model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch

from heedful.corpora import Corpus, EncodedCorpus, encode
from heedful.errors import InputError
from heedful.jobs.settings import WordSettings
from heedful.models import AttentionClassifier, load_model
from heedful.runs import RunFolder


def device_of(name: str = "auto") -> torch.device:
    """The device of that name; `auto` is a GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"Device {name!r} cannot be used here ({reason}); try cpu.") from error
    return device


@contextmanager
def deterministic(is_wanted: bool) -> Iterator[None]:
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


def load(path: str | Path, device: str = "cpu") -> AttentionClassifier:
    """The trained model of a run folder, or of a folder that holds a model.

    >>> import heedful, tempfile
    >>> from heedful.models import example, save_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(example(), Path(folder))
    ...     model = heedful.load(folder)
    >>> model.classes
    ('negative', 'positive')
    """
    folder = Path(path)
    if not folder.exists():
        raise InputError(f"{folder} does not exist; expected a run or model folder.")
    if (folder / "run.json").exists():
        folder = RunFolder.open(folder).model
    return load_model(folder, device_of(device))


def encoded_of(corpus: Corpus | EncodedCorpus, words: WordSettings) -> EncodedCorpus:
    """The corpus as ids, with the vocabulary of its training documents."""
    if isinstance(corpus, EncodedCorpus):
        return corpus
    sizes = words.min_count, words.max_size, words.max_tokens
    return encode(corpus, None, *sizes, words.words_of)


def read_by(model: AttentionClassifier, corpus: Corpus | EncodedCorpus) -> EncodedCorpus:
    """The corpus as ids of the model's own vocabulary, with the model's order of classes."""
    strangers = set(corpus.classes) - set(model.classes)
    if strangers:
        raise InputError(
            f"The model knows the labels {', '.join(model.classes)}; the data also has "
            f"{', '.join(sorted(strangers))}. Rename or remove those rows."
        )
    if isinstance(corpus, EncodedCorpus):
        if corpus.vocabulary != model.vocabulary or corpus.classes != model.classes:
            raise InputError(
                f"The prepared corpus {corpus.name} has another vocabulary than the model; "
                "give the raw corpus, or train from the prepared files."
            )
        return corpus
    known = _relabelled(corpus, model.classes)
    return encode(known, model.vocabulary, max_tokens=model.max_tokens)


def _relabelled(corpus: Corpus, classes: tuple[str, ...]) -> Corpus:
    if corpus.classes == classes:
        return corpus
    index = [classes.index(name) for name in corpus.classes]
    splits = {
        split: [replace(d, label=index[d.label] if d.label >= 0 else -1) for d in documents]
        for split, documents in corpus.splits.items()
    }
    return replace(corpus, classes=classes, splits=splits)
