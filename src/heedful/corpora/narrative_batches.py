"""Narratives as ids in windows of time, batches of them, and the files they are kept in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.corpora.narratives import FILLER, WINDOW, Narratives, Windows, windowed
from heedful.corpora.vectors import load_vectors
from heedful.corpora.vocabulary import PAD, SPECIALS, UNKNOWN, Vocabulary
from heedful.errors import InputError
from heedful.runs.atomic import read_json, write_json

_ARRAYS, _HEADER = "narratives.safetensors", "header.json"


@dataclass(frozen=True, eq=False)
class NarrativeBatch:
    """Some narratives side by side, padded in words and in windows."""

    ids: Int[Tensor, "batch window word"]
    """Word ids; padding is `<pad>`."""
    mask: Bool[Tensor, "batch window word"]
    """True where there is a word."""
    windows: Bool[Tensor, "batch window"]
    """True where there is a window."""
    ratings: Float[Tensor, "batch window"]
    """Mean rating of each window, between -1 and 1."""
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def to(self, device: torch.device | str) -> NarrativeBatch:
        """The same batch on another device."""
        return replace(
            self,
            ids=self.ids.to(device),
            mask=self.mask.to(device),
            windows=self.windows.to(device),
            ratings=self.ratings.to(device),
        )


@dataclass(frozen=True, eq=False)
class EncodedNarratives:
    """One split as flat arrays: words within windows within narratives."""

    ids: Int[np.ndarray, " word"]
    words: Int[np.ndarray, " window"]
    """Words of each window."""
    windows: Int[np.ndarray, " narrative"]
    """Windows of each narrative."""
    ratings: Float[np.ndarray, " window"]
    is_filled: Bool[np.ndarray, " window"]
    """Windows in which nothing was said; their one word is a copy of the word before."""
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, eq=False)
class NarrativeCorpus:
    """What training starts from."""

    name: str
    vocabulary: Vocabulary
    splits: Mapping[str, EncodedNarratives]
    fingerprint: str
    vectors: Float[np.ndarray, "word dim"] | None = None
    """Rows of nan have none."""


def encode_narratives(
    corpus: Narratives,
    vectors: str | Path | None = None,
    seconds: float = WINDOW,
    vocabulary: Vocabulary | None = None,
) -> NarrativeCorpus:
    """The corpus as ids in windows, with the vocabulary of all its splits unless one is given.

    Vectors are inputs and never trained, so words of dev and test have theirs too.
    """
    cut = {
        split: [windowed(narrative, seconds) for narrative in narratives]
        for split, narratives in corpus.splits.items()
    }
    known: dict[str, None] = {}
    for windows in cut.values():
        for one in windows:
            known.update(dict.fromkeys(word for words in one.words for word in words))
    own = Vocabulary(SPECIALS + tuple(word for word in known if word not in SPECIALS))
    vocabulary = own if vocabulary is None else vocabulary
    matrix = None if vectors is None else load_vectors(vectors, vocabulary).matrix
    splits = {split: _encoded(windows, vocabulary) for split, windows in cut.items()}
    return NarrativeCorpus(corpus.name, vocabulary, splits, corpus.fingerprint, matrix)


def _encoded(cut: Sequence[Windows], vocabulary: Vocabulary) -> EncodedNarratives:
    words = [window for one in cut for window in one.words]
    ids = [vocabulary.ids.get(word, UNKNOWN) for window in words for word in window]
    return EncodedNarratives(
        ids=np.array(ids, dtype=np.int64),
        words=np.array([len(window) for window in words], dtype=np.int64),
        windows=np.array([len(one.words) for one in cut], dtype=np.int64),
        ratings=np.concatenate([one.ratings for one in cut] or [np.zeros(0)]),
        is_filled=np.array([f for one in cut for f in one.is_filled], dtype=bool),
        names=tuple(one.id for one in cut),
    )


def collate_narratives(
    encoded: EncodedNarratives, rows: Sequence[int] | Int[np.ndarray, " batch"]
) -> NarrativeBatch:
    """The named narratives as one padded batch, in the order given."""
    rows = np.asarray(rows)
    count = encoded.windows[rows]
    first_window = np.concatenate([[0], np.cumsum(encoded.windows)])[rows]
    first_word = np.concatenate([[0], np.cumsum(encoded.words)])
    windows = np.arange(int(count.max())) < count[:, None]
    window = np.where(windows, first_window[:, None] + np.arange(windows.shape[1]), 0)
    words = np.where(windows, encoded.words[window], 0)
    position = np.arange(int(words.max()))
    mask = position < words[..., None]
    source = np.where(mask, first_word[window][..., None] + position, 0)
    return NarrativeBatch(
        ids=torch.from_numpy(np.where(mask, encoded.ids[source], PAD)),
        mask=torch.from_numpy(mask),
        windows=torch.from_numpy(windows),
        ratings=torch.from_numpy(np.where(windows, encoded.ratings[window], 0.0)).float(),
        names=tuple(encoded.names[row] for row in rows),
    )


def narrative_batches(
    encoded: EncodedNarratives,
    batch_size: int = 25,
    generator: np.random.Generator | None = None,
    max_tokens: int | None = None,
) -> Iterator[NarrativeBatch]:
    """All narratives once; in the order of the split, or shuffled by a generator.

    `max_tokens` bounds the words of a batch, padding left out.
    """
    order = np.arange(len(encoded)) if generator is None else generator.permutation(len(encoded))
    ends = np.concatenate([[0], np.cumsum(encoded.windows)])
    words = np.concatenate([[0], np.cumsum(encoded.words)])
    length = words[ends[1:]] - words[ends[:-1]]
    start = 0
    while start < len(order):
        stop = min(start + batch_size, len(order))
        if max_tokens is not None:
            fits = np.cumsum(length[order[start:stop]]) <= max_tokens
            stop = start + max(int(fits.sum()), 1)
        yield collate_narratives(encoded, order[start:stop])
        start = stop


def word_texts(encoded: EncodedNarratives, vocabulary: Vocabulary) -> list[str]:
    """Every word of the split as text; the filler of an empty window reads `null`."""
    is_filler = np.repeat(encoded.is_filled, encoded.words)
    return [
        FILLER if filled else vocabulary.words[word]
        for word, filled in zip(encoded.ids.tolist(), is_filler.tolist(), strict=True)
    ]


def save_narratives(folder: Path, corpus: NarrativeCorpus) -> None:
    """Writes the corpus to a folder; nothing of it needs the narratives' files again."""
    from safetensors.numpy import save_file

    arrays = {
        f"{split}.{name}": np.ascontiguousarray(getattr(part, name))
        for split, part in corpus.splits.items()
        for name in ("ids", "words", "windows", "ratings", "is_filled")
    }
    if corpus.vectors is not None:
        arrays["vectors"] = corpus.vectors.astype(np.float16)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(arrays, str(folder / _ARRAYS))
    write_json(
        folder / _HEADER,
        {
            "name": corpus.name,
            "fingerprint": corpus.fingerprint,
            "words": list(corpus.vocabulary.words),
            "names": {split: list(part.names) for split, part in corpus.splits.items()},
        },
    )


def load_narratives(folder: Path) -> NarrativeCorpus:
    """The corpus that `save_narratives` wrote."""
    from safetensors.numpy import load_file

    if not (folder / _HEADER).is_file():
        raise InputError(f"{folder} holds no prepared narratives ({_HEADER} is missing).")
    header = read_json(folder / _HEADER)
    arrays = load_file(str(folder / _ARRAYS))
    splits = {
        split: EncodedNarratives(
            **{
                name: arrays[f"{split}.{name}"]
                for name in ("ids", "words", "windows", "ratings", "is_filled")
            },
            names=tuple(names),
        )
        for split, names in header["names"].items()
    }
    vectors = arrays["vectors"].astype(np.float32) if "vectors" in arrays else None
    vocabulary = Vocabulary(tuple(header["words"]))
    return NarrativeCorpus(header["name"], vocabulary, splits, header["fingerprint"], vectors)
