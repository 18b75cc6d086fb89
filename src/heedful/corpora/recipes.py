"""Named ways to make a corpus of raw texts: token rule, filters, splits.

A recipe is asked for after a slash: `sst:2/polarity`. The numbers are those under "Corpora" in the
pages of docs/studies. Draws are by (seed, id), so the published seeds give the published sizes but
not the same documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from heedful.corpora.documents import SPLITS, Corpus, Document
from heedful.corpora.splits import draw, keyed_split
from heedful.corpora.texts import document_of
from heedful.corpora.vocabulary import END, SPECIALS, START, UNKNOWN


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
    dev_share: float | None = 0.1
    """Share of the training documents that becomes dev where there is none."""
    seed: int | None = None
    """The study's seed for its splits; None takes the caller's."""
    min_count: int = 1
    """How often a word must occur in train to enter the vocabulary (for `encode`)."""
    with_title: bool = True
    """Whether a title is part of the text."""
    drops_integers: bool = False
    """Whether integers of two or more digits read as unknown."""
    has_marks: bool = False
    """Whether `<bos>` and `<eos>` are tokens of every document."""
    checked_on: int | None = None
    """This many test documents, drawn by the seed, are dev and test at once."""
    caps: tuple[int, int] | None = None
    """Train keeps documents of at most so many sentences and tokens in each."""


PLAIN = CorpusRecipe()
_DYNAMICS = CorpusRecipe(
    "dynamics: <bos> and <eos>, words seen 3 times, 4,000 test documents as dev and test",
    has_marks=True,
    min_count=3,
    checked_on=4_000,
)
_ERASURE = CorpusRecipe("erasure: words seen 5 times, dev a tenth of train", min_count=5)

RECIPES: dict[str, dict[str, CorpusRecipe]] = {
    "sst": {
        "polarity": CorpusRecipe(
            "polarity: brackets deleted, other non-word characters are spaces",
            tokeniser="polarity",
        ),
        "jw": CorpusRecipe(
            "Jain & Wallace, for faithful: as polarity, more than 5 tokens, longest dropped",
            tokeniser="polarity",
            longer_than=5,
            loses_ends=True,
        ),
        "faithful": CorpusRecipe("faithful: the treebank's tokens, more than 5", longer_than=5),
        "dynamics": _DYNAMICS,
    },
    "imdb": {
        "polarity": CorpusRecipe(
            "polarity: words only, fewer than 400, train 80/20, a fifth of test",
            tokeniser="polarity",
            shorter_than=400,
            test_share=0.2,
            dev_share=0.2,
            seed=1378,
        ),
        "polarity-whole": CorpusRecipe(
            "polarity before its draws: words only, fewer than 400, all of train and of test",
            tokeniser="polarity",
            shorter_than=400,
            dev_share=None,
        ),
        "jw": CorpusRecipe(
            "Jain & Wallace, for faithful: fewer than 400 words, a fifth of test, min_df 10",
            tokeniser="polarity",
            shorter_than=400,
            loses_ends=True,
            test_share=0.2,
            dev_share=0.2,
            seed=1378,
            min_count=10,
        ),
        "faithful": CorpusRecipe(
            "faithful: the jw splits without the length filter, min_df 2",
            test_share=0.2,
            dev_share=0.2,
            seed=1378,
            min_count=2,
        ),
        "dynamics": _DYNAMICS,
        "erasure": _ERASURE,
    },
    "ag_news": {
        "jw": CorpusRecipe(
            "Jain & Wallace, for faithful: description only, dev 15 % of train, min_df 5",
            tokeniser="jw",
            loses_ends=True,
            dev_share=0.15,
            seed=16377,
            min_count=5,
            with_title=False,
        ),
        "faithful": CorpusRecipe(
            "faithful: description only, dev 15 % of train, min_df 2",
            dev_share=0.15,
            seed=16377,
            min_count=2,
            with_title=False,
        ),
        "dynamics": replace(_DYNAMICS, drops_integers=True),
        "erasure": _ERASURE,
    },
    "20newsgroups": {
        "polarity": CorpusRecipe(
            "polarity, 20News I: all posts, 80/20 twice, 9 tokens or more, digits as qqq",
            tokeniser="jw",
            longer_than=8,
            is_pooled=True,
            test_share=0.2,
            dev_share=0.2,
            seed=13478,
        ),
        "polarity-2": CorpusRecipe(
            "polarity, 20News II: all posts, 2300/240/274 of 2814, 9 tokens or more",
            tokeniser="jw",
            longer_than=8,
            is_pooled=True,
            test_share=274 / 2814,
            dev_share=240 / 2540,
            seed=13478,
        ),
        "jw": CorpusRecipe(
            "Jain & Wallace, for faithful: all posts, 80/20 twice, 6 < n < 500, min_df 2",
            tokeniser="jw",
            longer_than=6,
            shorter_than=500,
            is_pooled=True,
            test_share=0.2,
            dev_share=0.2,
            seed=13478,
            min_count=2,
        ),
        "faithful": CorpusRecipe(
            "faithful: the jw splits and filters on words and marks, min_df 2",
            longer_than=6,
            shorter_than=500,
            is_pooled=True,
            test_share=0.2,
            dev_share=0.2,
            seed=13478,
            min_count=2,
        ),
        "dynamics": replace(_DYNAMICS, drops_integers=True),
        "erasure": _ERASURE,
    },
    "sms": {"dynamics": _DYNAMICS},
    "amazon": {"dynamics": replace(_DYNAMICS, shorter_than=400), "erasure": _ERASURE},
    "yelp_full": {"dynamics": _DYNAMICS, "erasure": replace(_ERASURE, caps=(43, 200))},
    "amazon_full": {"erasure": replace(_ERASURE, caps=(15, 130))},
    "yahoo_answers": {"erasure": replace(_ERASURE, caps=(50, 350))},
    "imdb_diao": {"erasure": _ERASURE},
}
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
    elif "dev" not in splits and recipe.dev_share is not None:
        splits |= _divided(splits["train"], "train", "dev", recipe.dev_share, seed)
    if recipe.caps is not None:
        splits["train"] = _capped(splits["train"], recipe.caps, notes)
    if recipe.drops_integers or recipe.has_marks:
        splits = {s: [_marked(d, recipe) for d in docs] for s, docs in splits.items()}
    return {split: splits[split] for split in SPLITS if split in splits}, notes


def build(
    name: str,
    classes: Sequence[str],
    rows: Mapping[str, Sequence[Row]],
    recipe: CorpusRecipe = PLAIN,
    seed: int = 0,
    notes: Mapping[str, int] | None = None,
    stand_in_for: str | None = None,
) -> Corpus:
    """A corpus of raw rows by a recipe."""
    documents = {
        split: [document_of(row.id, row.text, row.label, recipe.tokeniser) for row in given]
        for split, given in rows.items()
    }
    splits, counted = arrange(documents, recipe, seed)
    return Corpus(
        name=name,
        classes=tuple(classes),
        splits=splits,
        notes={**(notes or {}), **+counted},
        stand_in_for=stand_in_for,
        tokeniser=recipe.tokeniser,
    )
