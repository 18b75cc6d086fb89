"""Named ways to make a corpus of raw texts: token rule, filters, splits.

A recipe is asked for after a slash: `sst:2/polarity`; those of the studies are in `recipes.toml`.
Draws are by (seed, id), so the published seeds give the published sizes but not the same documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from heedful.corpora.documents import SPLITS, Corpus, Document
from heedful.corpora.splits import draw, keyed_split
from heedful.corpora.texts import document_of
from heedful.corpora.vocabulary import END, SPECIALS, START, UNKNOWN
from heedful.runs.data_files import data_beside


class Row(NamedTuple):
    """A raw text as a reader finds it."""

    id: str
    text: str
    label: int


@dataclass(frozen=True)
class CorpusRecipe:
    """How documents are made of rows."""

    what: str = "our reading: words and marks, nothing dropped"
    """One sentence for `heedful corpora`."""
    tokeniser: str = "words"
    """The token rule."""
    longer_than: int | None = None
    """Keep documents with more tokens than this."""
    shorter_than: int | None = None
    """Keep documents with fewer tokens than this."""
    loses_ends: bool = False
    """A bound that is not given is the shortest or longest length found, and is strict too."""
    is_pooled: bool = False
    """Train and test are put together before splitting."""
    test_share: float | None = None
    """Share of the test documents (or of all, when pooled) that is kept as test."""
    dev_share: float = 0.1
    """Share of the training documents that becomes dev where there is none; 0 for no dev."""
    seed: int | None = None
    """The study's seed for its splits; None takes the caller's."""
    min_count: int = 1
    """How often a word must occur in train to enter the vocabulary (for `encode`)."""
    with_title: bool = True
    """Whether a title is part of the text."""
    drops_integers: bool = False
    """Whether integers of two or more digits read as unknown."""
    keeps_breaks: bool = False
    """Whether a line break written as `<br />` stays in the text, where it reads as a word."""
    has_marks: bool = False
    """Whether `<bos>` and `<eos>` are tokens of every document."""
    checked_on: int | None = None
    """This many test documents, drawn by the seed, are dev and test at once."""
    caps: tuple[int, int] | None = None
    """Train keeps documents of at most so many sentences and tokens in each."""


PLAIN = CorpusRecipe()


class Wanted(NamedTuple):
    """What a reader is asked for."""

    root: Path
    """The data root."""
    task: str
    recipe: CorpusRecipe
    seed: int
    name: str
    """How the corpus was asked for, and what it is called."""


def _recipes() -> dict[str, dict[str, CorpusRecipe]]:
    found = data_beside(__file__)
    shared = found.pop("shared") | {"": {}}
    return {
        corpus: {
            name: CorpusRecipe(**shared[fields.pop("like", "")] | fields)
            for name, fields in variants.items()
        }
        for corpus, variants in found.items()
    }


RECIPES = _recipes()
"""Recipes besides the plain reading, by corpus."""


def _filtered(
    documents: Sequence[Document], recipe: CorpusRecipe, notes: Counter[str]
) -> list[Document]:
    """The documents whose length lies within the recipe's bounds."""
    lengths = [len(document.tokens) for document in documents]
    above, below = recipe.longer_than, recipe.shorter_than
    if recipe.loses_ends and lengths:
        above = min(lengths) if above is None else above
        below = max(lengths) if below is None else below
    kept = [
        document
        for document, length in zip(documents, lengths, strict=True)
        if (above is None or length > above) and (below is None or length < below)
    ]
    notes["dropped by the recipe's length filter"] += len(documents) - len(kept)
    return kept


def _marked(document: Document, recipe: CorpusRecipe) -> Document:
    """The document with integers as unknown and with begin and end marks, as the recipe says."""
    tokens = document.tokens
    if recipe.drops_integers:
        tokens = tuple(
            SPECIALS[UNKNOWN] if len(token) > 1 and token.isdecimal() else token for token in tokens
        )
    if not recipe.has_marks:
        return replace(document, tokens=tokens)
    end = len(document.text)
    last = document.sentence[-1] if len(document.sentence) else 0

    def padded(values: np.ndarray | None, fill: int) -> np.ndarray | None:
        return None if values is None else np.pad(values, 1, constant_values=fill)

    return replace(
        document,
        tokens=(SPECIALS[START], *tokens, SPECIALS[END]),
        spans=np.vstack([[(0, 0)], document.spans, [(end, end)]]).astype(np.int32),
        sentence=np.concatenate([[0], document.sentence, [last]]).astype(np.int32),
        evidence=padded(document.evidence, 0),
        word_labels=padded(document.word_labels, -1),
    )


def with_marks(corpus: Corpus) -> Corpus:
    """The corpus with `<bos>` and `<eos>` as tokens of every document."""
    marked = CorpusRecipe(has_marks=True)
    splits = {s: [_marked(d, marked) for d in docs] for s, docs in corpus.splits.items()}
    return replace(corpus, splits=splits)


def _capped(
    documents: Sequence[Document], caps: tuple[int, int], notes: Counter[str]
) -> list[Document]:
    """The documents with few enough sentences and tokens in each."""
    kept = []
    for document in documents:
        counts = np.bincount(document.sentence) if len(document.sentence) else np.zeros(0, int)
        if len(counts) <= caps[0] and (counts <= caps[1]).all():
            kept.append(document)
    notes["dropped from train by the recipe's caps"] += len(documents) - len(kept)
    return kept


def _divided(
    documents: Sequence[Document], rest: str, share_name: str, share: float, seed: int
) -> dict[str, list[Document]]:
    """Two splits of the documents, each class by the share."""
    shares = {rest: 1 - share, share_name: share}
    rows = keyed_split([d.id for d in documents], [d.label for d in documents], shares, seed)
    return {split: [documents[row] for row in chosen] for split, chosen in rows.items()}


def arrange(
    given: Mapping[str, Sequence[Document]], recipe: CorpusRecipe, seed: int
) -> tuple[dict[str, list[Document]], Counter[str]]:
    """The documents filtered and split as the recipe says, and the counts of what was dropped.

    Without any recipe a corpus that has no test split gives 15 % to test, and one without dev gives
    a tenth of its training documents to dev.
    """
    seed = seed if recipe.seed is None else recipe.seed
    notes: Counter[str] = Counter()
    splits = {split: _filtered(documents, recipe, notes) for split, documents in given.items()}
    if recipe.is_pooled:
        splits = {"train": [d for split in SPLITS for d in splits.get(split, [])]}
    if "test" not in splits:
        share = 0.15 if recipe.test_share is None else recipe.test_share
        splits = _divided(splits["train"], "train", "test", share, seed)
    elif recipe.test_share is not None:
        whole = len(splits["test"])
        splits["test"] = _divided(splits["test"], "", "test", recipe.test_share, seed)["test"]
        notes["test documents left out by the recipe"] += whole - len(splits["test"])
    if recipe.checked_on is not None:
        # The study chooses and measures on the same documents; test is what others call dev too.
        chosen = draw([d.id for d in splits["test"]], recipe.checked_on, seed)
        splits["test"] = [splits["test"][row] for row in chosen]
        splits["dev"] = splits["test"]
    elif "dev" not in splits and recipe.dev_share:
        splits |= _divided(splits["train"], "train", "dev", recipe.dev_share, seed)
    if recipe.caps is not None:
        splits["train"] = _capped(splits["train"], recipe.caps, notes)
    if recipe.drops_integers or recipe.has_marks:
        splits = {s: [_marked(d, recipe) for d in docs] for s, docs in splits.items()}
    return {split: splits[split] for split in SPLITS if split in splits}, notes


def build(
    wanted: Wanted,
    classes: Sequence[str],
    rows: Mapping[str, Sequence[Row]],
    notes: Mapping[str, int] | None = None,
    stand_in_for: str | None = None,
) -> Corpus:
    """A corpus of raw rows by a recipe."""
    rule = wanted.recipe.tokeniser
    documents = {
        split: [document_of(row.id, row.text, row.label, rule) for row in given]
        for split, given in rows.items()
    }
    splits, counted = arrange(documents, wanted.recipe, wanted.seed)
    return Corpus(
        name=wanted.name,
        classes=tuple(classes),
        splits=splits,
        notes={**(notes or {}), **+counted},
        stand_in_for=stand_in_for,
        tokeniser=rule,
    )
