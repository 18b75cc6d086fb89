"""Where a run's documents came from, so that the run can open them again by itself."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any, overload

from heedful.corpora import Corpus, EncodedCorpus, load_corpus, load_prepared, read_file, read_texts
from heedful.corpora.in_memory import Documents
from heedful.corpora.labels import Labelling
from heedful.errors import InputError, intact, unknown
from heedful.runs import RunFolder


@dataclass(frozen=True)
class DocumentSource:
    """A corpus by name, a prepared folder or a file, with what was asked of it."""

    corpus: str | None = None
    """Name of a corpus, or folder of a prepared one."""
    data: str | None = None
    """The user's own file."""
    text: str | None = None
    label: str | None = None
    split: str | None = None
    """Columns of the file, where they were named."""
    seed: int = 0
    """Seed of generated and split documents."""
    sizes: Mapping[str, int] | None = None
    """Documents of each split of a generated corpus."""
    data_root: str | None = None
    second: str | None = None
    """Column of the second text, in a file of pairs."""
    labels: str | None = None
    """Other names of the labels, as `--labels` takes them."""
    threshold: float | None = None
    """Where ratings of the file are cut in two."""

    def __post_init__(self) -> None:
        if (self.corpus is None) == (self.data is None):
            raise InputError("Give either --corpus or --data; the other one is left out.")

    @property
    def name(self) -> str:
        """A short name for folders."""
        return Path(self.data).stem if self.data is not None else Path(str(self.corpus)).name

    def open(self) -> tuple[Corpus | EncodedCorpus, tuple[str, ...]]:
        """The documents, and what was guessed on the way, in lines."""
        if self.data is not None:
            named = (self.text, self.label, self.split)
            found = read_file(
                self.data, *named, seed=self.seed, second=self.second, labels=self.labels,
                threshold=self.threshold,
            )  # fmt: skip
            return found.corpus, found.said
        name = str(self.corpus)
        if Path(name).is_dir():
            return load_prepared(name), ()
        columns = {"text": self.text, "label": self.label, "split": self.split, "sizes": self.sizes}
        options = {key: value for key, value in columns.items() if value is not None}
        documents = load_corpus(name, self.data_root, self.seed, **options)
        return renamed(documents, self.labels), ()

    def is_same_file(self, path: Path) -> bool:
        """Whether the source is that very file."""
        return self.data is not None and Path(self.data).resolve() == path.resolve()

    def options(self) -> str:
        """The source as it is typed on a command line: `--data reviews.csv --label stars`."""
        root = None if self.data_root == os.environ.get("HEEDFUL_DATA") else self.data_root
        named = {
            "corpus": self.corpus, "data": self.data and nearby(self.data), "text": self.text,
            "text2": self.second, "label": self.label, "split": self.split, "labels": self.labels,
            "threshold": None if self.threshold is None else f"{self.threshold:g}",
            "data-root": root, "seed": self.seed or None,
        }  # fmt: skip
        return " ".join(f"--{name} {quote(str(said))}" for name, said in named.items() if said)

    def to_json(self) -> dict[str, Any]:
        """The source as plain data, for run.json."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def nearby(path: str | Path) -> str:
    """A path as seen from here: relative to the working folder where it lies inside."""
    inside = os.path.relpath(path)
    return str(path) if inside.startswith(os.pardir) else inside


def source_of(run: Path) -> DocumentSource | None:
    """What a run was trained on; none when the folder does not say."""
    if not (run / "run.json").is_file():
        return None
    stored = RunFolder.open(run).record.get("source")
    with intact(run / "run.json"):
        return DocumentSource(**stored) if isinstance(stored, Mapping) else None


def documents_of(
    data: Corpus | EncodedCorpus | Documents,
    classes: Sequence[str] | None = None,
    *,
    seed: int = 0,
    tokeniser: str = "words",
    text: str | None = None,
    text2: str | None = None,
    label: str | None = None,
    labels: str | Mapping[str, str] | None = None,
    threshold: float | None = None,
) -> tuple[Corpus | EncodedCorpus, tuple[str, ...]]:
    """What a user gave as documents, and what was guessed on the way, in lines.

    A corpus, or its name; or what is held in memory: all of it for a trained model, which has
    `classes`, and else split by the seed as a file is.
    """
    if isinstance(data, str):
        columns = {"text": text, "label": label, "threshold": threshold, "second": text2}
        given: dict[str, Any] = {
            name: value for name, value in columns.items() if value is not None
        }
        data = load_corpus(data, None, seed, **given)
    if isinstance(data, Corpus | EncodedCorpus):
        return renamed(data, labels), ()
    if classes is None:
        found = read_file(
            data, text, label, seed=seed, second=text2, labels=labels, threshold=threshold
        )
    else:
        found = read_texts(
            data, classes, text, label, tokeniser=tokeniser, second=text2, labels=labels,
            threshold=threshold,
        )  # fmt: skip
    return found.corpus, found.said


@overload
def renamed(corpus: Corpus, labels: str | Mapping[str, str] | None) -> Corpus: ...
@overload
def renamed(
    corpus: Corpus | EncodedCorpus, labels: str | Mapping[str, str] | None
) -> Corpus | EncodedCorpus: ...
def renamed(
    corpus: Corpus | EncodedCorpus, labels: str | Mapping[str, str] | None
) -> Corpus | EncodedCorpus:
    """The corpus with other names of its classes, as `--labels` gives them.

    >>> renamed(load_corpus("planted"), "negative=LABEL_0").classes
    ('LABEL_0', 'positive')
    """
    names = Labelling.of(labels).names
    for name in names:
        if name not in corpus.classes:
            raise unknown("label", name, corpus.classes)
    return replace(corpus, classes=tuple(names.get(name, name) for name in corpus.classes))
