"""Every corpus by name.

NAME          what
planted       the embedded default, 2 classes; planted:3, planted:5, planted:2:short
synthetic     bags of words tied to classes, embedded: synthetic:data1, data2, three, ratio-1-2
FAMILY        a corpus of the data root, its default task: sst is sst:2
FAMILY:TASK   another task: sst:5, imdb:stars, ag_news:world-business,
              20newsgroups:rec.sport.baseball,rec.sport.hockey
.../RECIPE    the pre-processing of a study: sst:2/polarity, imdb:2/jw
hf:NAME       a set of the Hugging Face hub (hf:NAME:CONFIG)
a path        the user's file: reviews.csv
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from heedful.corpora import eraser, imdb, messages, newsgroups, sst, zhang
from heedful.corpora.documents import Corpus
from heedful.corpora.entries import CATALOGUE, Entry
from heedful.corpora.files import read_file
from heedful.corpora.hub import read_hub
from heedful.corpora.planted import LENGTHS, planted
from heedful.corpora.recipes import PLAIN, CorpusRecipe, Wanted
from heedful.corpora.root import locate, root_of
from heedful.corpora.synthetic import synthetic
from heedful.corpora.tables import SUFFIXES, suffix_of
from heedful.errors import InputError, unknown

READERS: dict[str, Callable[..., Corpus]] = {
    "sst": sst.read_sst,
    "imdb": imdb.read_imdb,
    "imdb_diao": imdb.read_imdb_diao,
    "20newsgroups": newsgroups.read_newsgroups,
    "sms": messages.read_sms,
    "amazon": messages.read_amazon,
    "eraser_movies": eraser.read_eraser,
} | {family: partial(zhang.read_zhang, family) for family in zhang.FAMILIES}
"""What reads a classification corpus: (`Wanted`, options) to a corpus."""


def parse_name(name: str) -> tuple[Entry, str, str]:
    """The entry, the task and the recipe (`""` for none) that a corpus name asks for."""
    base, _, recipe = name.partition("/")
    family, _, task = base.partition(":")
    if family not in CATALOGUE:
        raise unknown("corpus", family, CATALOGUE)
    entry = CATALOGUE[family]
    if entry.tasks and not task:
        task = entry.tasks[0]
    known = task in entry.tasks or (not entry.tasks and not task)
    if not known and not entry.free_task:
        raise unknown(f"task of {family}", task, entry.tasks or ("(none)",))
    if recipe and recipe not in entry.variants:
        raise unknown(f"recipe of {family}", recipe, entry.variants or ("(none)",))
    return entry, task, recipe


def _planted(task: str, seed: int, **options: Any) -> Corpus:
    classes, _, length = task.partition(":")
    return planted(int(classes), length or LENGTHS[0], seed, **options)


def load_corpus(
    name: str = "planted",
    data_root: str | Path | None = None,
    seed: int = 0,
    **options: Any,
) -> Corpus:
    """The corpus of that name (see the module's head); real ones are read from the data root.

    Options go to the reader: `sizes` (planted), `instances` (synthetic), `keep` (20newsgroups),
    `limit` (the large CSVs), `text`, `label`, `split` (files, hub).

    >>> corpus = load_corpus("planted:5", sizes={"train": 10})
    >>> corpus.classes[0], len(corpus.splits["train"])
    ('very negative', 10)
    """
    if name.startswith("hf:"):
        return read_hub(name.removeprefix("hf:"), seed=seed, **options)
    if suffix_of(Path(name)) in SUFFIXES or os.path.isfile(name):  # names may be longer than a path
        return read_file(name, seed=seed, **options).corpus
    entry, task, recipe = parse_name(name)
    if entry.name == "planted":
        return _planted(task, seed, **options)
    if entry.name == "synthetic":
        return synthetic(task, seed, **options)
    if entry.name not in READERS:
        how = "load_lexicon" if entry.name == "warriner" else "load_parallel"
        raise InputError(f"{entry.name} is no classification corpus; read it with {how}.")
    full = entry.name + (f":{task}" if task else "") + (f"/{recipe}" if recipe else "")
    if recipe == "erasure" and not task and entry.stand_in_for:
        options = {"stand_in_for": entry.stand_in_for, **options}
    chosen = entry.variants[recipe] if recipe else PLAIN
    root = root_of(data_root)
    try:
        return READERS[entry.name](Wanted(root, task, chosen, seed, full), **options)
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        files = ", ".join(entry.files)
        raise InputError(
            f"{files} in {root} cannot be read as {entry.name} ({type(error).__name__}: {error}); "
            f"fetch it again from {entry.source}."
        ) from error


def recipe_of(name: str) -> CorpusRecipe:
    """The recipe that a corpus name asks for; its `min_count` is for `encode` and `prepare`."""
    if name.startswith("hf:") or suffix_of(Path(name)) in SUFFIXES:
        return PLAIN
    entry, _, recipe = parse_name(name)
    return entry.variants[recipe] if recipe else PLAIN


@dataclass(frozen=True)
class Availability:
    """One line of `heedful corpora`."""

    name: str
    what: str
    classes: str
    is_present: bool
    missing: tuple[str, ...]
    """Files to put in the data root."""
    source: str
    variants: tuple[str, ...]
    stand_in_for: str | None


def available(data_root: str | Path | None = None) -> list[Availability]:
    """What is present here and, for the rest, which files to put where and where they come from.

    Without any data root everything but the embedded corpora is missing.
    """
    try:
        root: Path | None = root_of(data_root)
    except InputError:
        if data_root is not None:
            raise
        root = None
    rows = []
    for entry in CATALOGUE.values():
        missing = tuple(
            file
            for file in entry.files
            if root is None
            or not any(locate(root, name) for name in (file, *entry.alternatives.get(file, ())))
        )
        rows.append(
            Availability(
                name=entry.name,
                what=entry.what,
                classes=entry.classes,
                is_present=not missing,
                missing=missing,
                source=entry.source,
                variants=(
                    *(f"{entry.name}:{task}" for task in entry.tasks),
                    *(f".../{recipe}" for recipe in entry.variants),
                ),
                stand_in_for=entry.stand_in_for,
            )
        )
    return rows
