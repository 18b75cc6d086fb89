"""The erasure study's corpora, as ids with word vectors that were trained on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from heedful.corpora import (
    Corpus,
    Encoded,
    EncodedCorpus,
    Vocabulary,
    load_prepared,
    planted,
    prepare,
)
from heedful.errors import InputError
from heedful.reproduction.results import Results, Step, named
from heedful.reproduction.study import Plan
from heedful.runs import Form
from heedful.studies.erasure.printed import PAPER

_TEXT, _VECTORS = "text", "vectors.safetensors"
SMOKE_SIZES: dict[str, int] = {"train": 900, "dev": 100, "test": 240}
MIN_COUNT = 5
DIM = 200
PASSES: Mapping[str, int] = {"imdb-stars": 10, "imdb-ratings": 10}
"""Passes of word2vec over the sentences; 30 where nothing else is said, as on Amazon and Yelp."""
TOPIC = ("20newsgroups", "ag-news", "yahoo-answers")
"""Corpora labelled by topic; the others by rating."""


def _planted(classes: int, plan: Plan) -> Corpus:
    return planted(classes, "long", sizes=SMOKE_SIZES)


SOURCES = (
    *(
        PAPER.source(f"planted-{n}", partial(_planted, n), {"classes": n, "sizes": SMOKE_SIZES})
        for n in (2, 5)
    ),
    *(PAPER.source(name, inputs={"reader": read}) for name, read in PAPER.readers.items()),
)
"""Planted reviews at smoke scale, the four stand-ins at paper scale; the four originals have no
scale of their own: ask for them by `--corpora` when their files are in the data root."""
RATING = tuple(source.name for source in SOURCES if source.name not in TOPIC)


def text(plan: Plan, corpus: str) -> Step[EncodedCorpus]:
    """The corpus as ids, with word vectors trained on it; without them at smoke scale.

    The vocabulary holds the words seen `min_count` times in train and dev together; documents
    without words are dropped, longer ones than 2,000 tokens cut, both counted
    (docs/studies/erasure.md, "Words").
    """
    min_count, passes = plan.pick((1, 0), (MIN_COUNT, PASSES.get(corpus, 30)))
    source = plan.source(corpus)

    def compute(results: Results) -> Corpus:
        if source.load is None:
            raise InputError(f"{source.title} has no documents to prepare.")
        return without_empty(source.load(plan))

    def save(folder: Path, read: Corpus) -> None:
        from safetensors.numpy import save_file

        from heedful.corpora.pretraining import pack, train_vectors

        seen = [*read.splits["train"], *read.splits.get("dev", ())]
        words = Vocabulary.of(seen, min_count)
        encoded = prepare(read, folder / _TEXT, vocabulary=words)
        if passes:
            vectors = train_vectors(encoded, DIM, passes)
            save_file(pack(vectors), str(folder / _VECTORS))

    def load(folder: Path) -> EncodedCorpus:
        from safetensors.numpy import load_file

        from heedful.corpora.pretraining import unpack

        encoded = load_prepared(folder / _TEXT)
        if not (folder / _VECTORS).is_file():
            return encoded
        return replace(encoded, vectors=unpack(load_file(str(folder / _VECTORS))))

    inputs = {
        "corpus": corpus,
        "scale": plan.scale,
        "source": source.inputs,
        "min_count": min_count,
        "vectors": {"passes": passes, "dim": DIM} if passes else None,
    }
    # What goes in is a corpus with its text, what comes back is its ids: hence Any.
    form: Form[Any] = Form("", save, load)
    return Step(named(corpus, "corpus"), compute, inputs, form)


def without_empty(corpus: Corpus) -> Corpus:
    """The corpus without documents that have no words, which are counted."""
    splits = {name: [d for d in part if d.tokens] for name, part in corpus.splits.items()}
    dropped = sum(len(corpus.splits[name]) - len(part) for name, part in splits.items())
    notes = {"documents without words, dropped": dropped} if dropped else {}
    return replace(corpus, splits=splits, notes={**corpus.notes, **notes})


def counts(plan: Plan, corpus: str) -> Step[Any]:
    """Sizes of a corpus: documents, classes, words and sentences per document, what was dropped."""
    prepared = text(plan, corpus)

    def compute(results: Results) -> dict[str, Any]:
        read = results[prepared]
        parts = read.splits.values()
        words = np.concatenate([part.lengths for part in parts])
        sentences = np.concatenate([sentence_counts(part) for part in parts])
        sizes = {split: len(part) for split, part in read.splits.items()}
        return {
            "words": float(words.mean()),
            "words s.d.": float(words.std(ddof=1)),
            "sentences": float(sentences.mean()),
            "sentences s.d.": float(sentences.std(ddof=1)),
            "train+dev": sizes["train"] + sizes.get("dev", 0),
            "test": sizes["test"],
            "classes": list(read.classes),
            "vocabulary": len(read.vocabulary),
            "one sentence": int((sentences == 1).sum()),
            "one word": int((words == 1).sum()),
            "notes": dict(read.notes),
        }

    return Step(named(corpus, "counts"), compute, {}, needs=(prepared,))


def sentence_counts(part: Encoded) -> np.ndarray:
    """Sentences of each document: how often the sentence number changes, and one."""
    changes = np.zeros(len(part.ids), dtype=np.int64)
    changes[1:] = part.sentence[1:] != part.sentence[:-1]
    changes[part.starts[:-1]] = 1
    return np.add.reduceat(changes, part.starts[:-1])
