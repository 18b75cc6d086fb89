"""Word vectors trained on the corpus itself: word2vec through gensim.

See docs/studies/erasure.md, "Words".

`train_vectors(corpus, passes=30)` needs the extra `pretrain`. The vectors travel with a prepared
corpus as bytes (`pack`, `unpack`): a unit vector of 200 numbers needs no more to start from, and
what is carried to another machine halves.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float, Float32, Int8

from heedful.corpora.encoded import Encoded, EncodedCorpus
from heedful.corpora.vocabulary import PAD
from heedful.errors import InputError

DIM = 200


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
