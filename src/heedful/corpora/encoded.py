"""A corpus as ids: flat arrays that batches are sliced from, with or without the raw text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from heedful.corpora.documents import Corpus, Document
from heedful.corpora.vocabulary import UNKNOWN, Vocabulary

MAX_TOKENS = 2_000
"""Longer documents are cut here by default, and counted."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """One split as flat arrays: document i owns tokens `starts[i]` to `starts[i + 1]`."""

    ids: Int[np.ndarray, " token"]
    """Word ids of all documents, one after the other."""
    starts: Int[np.ndarray, " start"]
    """Where each document begins in `ids`, and the end: one more than there are documents."""
    labels: Int[np.ndarray, " document"]
    """Class of each document; -1 when unknown."""
    sentence: Int[np.ndarray, " token"]
    """Sentence number of each token within its document; where tokens are pieces of words, the
    number of the word."""
    names: tuple[str, ...]
    """Stable instance ids."""
    evidence: Bool[np.ndarray, " token"] | None = None
    """Which tokens carry the label, where known for every document of the split."""
    documents: Sequence[Document] | None = None
    """The documents themselves; absent when training from prepared files."""
    word_labels: Int[np.ndarray, " token"] | None = None
    """Labels of single words, where known for every document of the split; -1 for none."""
    unknown: int = UNKNOWN
    """The id that stands for a word that is not there; a tokenizer has its own."""

    def __len__(self) -> int:
        return len(self.names)

    @property
    def lengths(self) -> Int[np.ndarray, " document"]:
        """Tokens per document."""
        return np.diff(self.starts)


@dataclass(frozen=True, eq=False)
class EncodedCorpus:
    """What training starts from: a corpus as ids, with its vocabulary and class names."""

    name: str
    classes: tuple[str, ...]
    vocabulary: Vocabulary
    splits: Mapping[str, Encoded]
    fingerprint: str
    notes: Mapping[str, int]
    """What reading and encoding did, with counts."""
    vectors: Float[np.ndarray, "word dim"] | None = None
    """Vectors of the vocabulary, when prepared with a vector file; rows of nan have none."""
    tokeniser: str = "words"
    """How new text must be cut to be read like this corpus."""

    def counts(self, split: str) -> dict[str, int]:
        """Number of documents of each class in a split, in class order."""
        labels = self.splits[split].labels if split in self.splits else np.array([], dtype=int)
        found = np.bincount(labels[labels >= 0], minlength=len(self.classes))
        return {name: int(found[index]) for index, name in enumerate(self.classes)}


def with_rare_unknown(corpus: EncodedCorpus, least: int) -> EncodedCorpus:
    """The corpus with words of fewer than `least` training occurrences read as `<unk>`."""
    if least < 1:
        return corpus
    counts = np.bincount(corpus.splits["train"].ids, minlength=len(corpus.vocabulary))
    new = np.where(counts >= least, np.arange(len(counts)), UNKNOWN).astype(np.int32)
    splits = {split: replace(part, ids=new[part.ids]) for split, part in corpus.splits.items()}
    return replace(corpus, splits=splits)


def encode_documents(
    documents: Sequence[Document], vocabulary: Vocabulary, max_tokens: int = MAX_TOKENS
) -> tuple[Encoded, dict[str, int]]:
    """Documents as ids, and the counts of what was done to them.

    A document longer than `max_tokens` is cut; one without tokens is kept as a single `<unk>`, so
    that every instance has a decision.
    """
    short = [document.cut(max_tokens) for document in documents]
    notes = {
        "cut to the token limit": sum(len(d.tokens) > max_tokens for d in documents),
        "empty, read as one unknown word": sum(not d.tokens for d in documents),
    }
    ids = [np.array(vocabulary.encode(d.tokens) or [UNKNOWN], dtype=np.int32) for d in short]
    sentence = [np.asarray(d.sentence if d.tokens else [0], dtype=np.int32) for d in short]
    known = [d.evidence for d in short if d.evidence is not None]
    evidence = None
    if documents and len(known) == len(documents):
        evidence = np.concatenate([e if len(e) else np.zeros(1, bool) for e in known])
    labelled = [d.word_labels for d in short if d.word_labels is not None]
    word_labels = None
    if documents and len(labelled) == len(documents):
        word_labels = np.concatenate([w if len(w) else np.full(1, -1) for w in labelled])
    encoded = Encoded(
        ids=np.concatenate(ids) if ids else np.zeros(0, np.int32),
        starts=np.cumsum([0] + [len(row) for row in ids]),
        labels=np.array([d.label for d in documents], dtype=np.int64),
        sentence=np.concatenate(sentence) if sentence else np.zeros(0, np.int32),
        names=tuple(d.id for d in documents),
        evidence=evidence,
        documents=short,
        word_labels=word_labels,
    )
    return encoded, {name: count for name, count in notes.items() if count}


def encode(
    corpus: Corpus,
    vocabulary: Vocabulary | None = None,
    min_count: int = 1,
    max_size: int | None = None,
    max_tokens: int = MAX_TOKENS,
    words_of: Sequence[str] = ("train",),
) -> EncodedCorpus:
    """The corpus as ids; the vocabulary is that of the training documents unless one is given.

    `words_of` names the splits whose words it holds: words seen in dev and test only then have a
    vector of their own, which is never trained.
    """
    if vocabulary is None:
        corpus.require("train")
        known = [document for split in words_of for document in corpus.splits.get(split, ())]
        vocabulary = Vocabulary.of(known, min_count, max_size)
    splits, notes = {}, dict(corpus.notes)
    for split, documents in corpus.splits.items():
        splits[split], counted = encode_documents(documents, vocabulary, max_tokens)
        for name, count in counted.items():
            notes[f"{split}: {name}"] = count
    return EncodedCorpus(
        corpus.name,
        corpus.classes,
        vocabulary,
        splits,
        corpus.fingerprint,
        notes,
        tokeniser=corpus.tokeniser,
    )
