"""The erasure study's corpora, as ids with word vectors that were trained on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Float32, Int8

from heedful.corpora import (
    Corpus,
    Encoded,
    EncodedCorpus,
    Vocabulary,
    load_prepared,
    planted,
    prepare,
)
from heedful.corpora.vocabulary import PAD
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

        seen = [*read.splits["train"], *read.splits.get("dev", ())]
        words = Vocabulary.of(seen, min_count)
        encoded = prepare(read, folder / _TEXT, vocabulary=words)
        if passes:
            vectors = train_vectors(encoded, DIM, passes)
            save_file(pack(vectors), str(folder / _VECTORS))

    def load(folder: Path) -> EncodedCorpus:
        from safetensors.numpy import load_file

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


def train_vectors(
    corpus: EncodedCorpus, dim: int = DIM, passes: int = 30, seed: int = 0
) -> Float32[np.ndarray, "word dim"]:
    """Vectors of the vocabulary, each of length 1; padding is zero, nan for words never seen.

    CBOW with gensim's defaults (window 5, 5 negatives) on the sentences of train and dev, where
    words outside the vocabulary stand as `<unk>`, which so gets a vector too. One worker: with
    several, the result would depend on which was faster.
    """
    word2vec = _gensim()
    text = [corpus.splits[split] for split in ("train", "dev") if split in corpus.splits]
    model = word2vec(vector_size=dim, min_count=0, epochs=passes, workers=1, seed=seed, sg=0)
    sentences = _Sentences(text, len(corpus.vocabulary))
    model.build_vocab(sentences)
    if not len(model.wv):
        raise InputError(f"{corpus.name} has no training words to learn vectors from.")
    model.train(sentences, total_examples=model.corpus_count, epochs=passes)
    matrix = np.full((len(corpus.vocabulary), dim), np.nan, dtype=np.float32)
    rows = np.array([int(word) for word in model.wv.index_to_key])
    vectors = np.asarray(model.wv.vectors, dtype=np.float32)
    matrix[rows] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12)
    matrix[PAD] = 0.0
    return matrix


def pack(vectors: Float[np.ndarray, "word dim"]) -> dict[str, np.ndarray]:
    """The vectors as bytes with one scale per word; a scale of nan has no vector."""
    largest = np.abs(vectors).max(1)
    step = np.where(largest > 0, largest, 1.0) / 127
    found = np.nan_to_num(vectors / step[:, None])
    scale = np.where(np.isnan(largest), np.nan, step).astype(np.float32)
    return {"bytes": np.round(found).astype(np.int8), "scale": scale}


def unpack(packed: dict[str, np.ndarray]) -> Float32[np.ndarray, "word dim"]:
    """The vectors again, to 1 part in 254 of each word's largest entry."""
    entries: Int8[np.ndarray, "word dim"] = packed["bytes"]
    return np.asarray(entries.astype(np.float32) * packed["scale"][:, None])


class _Sentences:
    """The sentences of several splits as lists of ids in text, once for every pass."""

    def __init__(self, splits: list[Encoded], size: int) -> None:
        self.splits = splits
        # gensim takes numbers for places in its own table, hence text; one string for each word.
        self.texts = np.array([str(word) for word in range(size)], dtype=object)

    def __iter__(self) -> Iterator[list[str]]:
        for split in self.splits:
            if not len(split.ids):
                continue
            is_first = np.ones(len(split.ids), dtype=bool)
            is_first[1:] = split.sentence[1:] != split.sentence[:-1]
            is_first[split.starts[:-1]] = True
            words = self.texts[split.ids].tolist()
            bounds = [*np.flatnonzero(is_first).tolist(), len(words)]
            for start, stop in pairwise(bounds):
                yield words[start:stop]


def _gensim() -> Any:
    try:
        from gensim.models import Word2Vec
    except ImportError as error:
        raise InputError(
            "Training word vectors needs gensim: pip install 'heedful[pretrain]'."
        ) from error
    return Word2Vec
