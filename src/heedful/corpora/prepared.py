"""A corpus as compact files that training elsewhere can start from without the raw text.

    header.json                  name, classes, fingerprint, notes, sizes, checksums
    vocabulary.json              words by id
    tokens.safetensors.gz        per split: ids, starts, labels, sentence, names, evidence, words
    vectors.safetensors          vectors of the vocabulary, if asked for

Numbers are stored in the fewest bytes that hold them. Word ids are stored as planes (all low bytes,
then all next bytes): frequent words have small ids, so the high planes compress to little.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int, UInt8

from heedful.corpora.documents import Corpus
from heedful.corpora.encoded import MAX_TOKENS, Encoded, EncodedCorpus, encode
from heedful.corpora.tables import bytes_of
from heedful.corpora.vectors import load_vectors
from heedful.corpora.vocabulary import UNKNOWN, Vocabulary
from heedful.errors import InputError
from heedful.runs.atomic import read_json, write_json, writing_folder
from heedful.runs.steps import digest

FORMAT = 1
_TOKENS, _VECTORS, _WORDS, _HEADER = (
    "tokens.safetensors.gz",
    "vectors.safetensors",
    "vocabulary.json",
    "header.json",
)


def _planes(values: Int[np.ndarray, " n"]) -> UInt8[np.ndarray, "byte n"]:
    """The values' bytes, lowest first, as many as the largest needs; values are not negative."""
    size = max(np.min_scalar_type(int(values.max(initial=0))).itemsize, 1)
    whole = values.astype("<u8")
    return np.stack([(whole >> (8 * byte)).astype(np.uint8) for byte in range(size)])


def _joined(planes: UInt8[np.ndarray, "byte n"]) -> Int[np.ndarray, " n"]:
    """The inverse of `_planes`."""
    return sum(
        (plane.astype(np.int64) << (8 * byte) for byte, plane in enumerate(planes)),
        start=np.zeros(planes.shape[1], dtype=np.int64),
    )


def _packed(encoded: Encoded) -> dict[str, np.ndarray]:
    """A split's arrays in few bytes: starts as lengths, sentences as steps, flags as bits."""
    steps = np.diff(encoded.sentence, prepend=np.int32(0))
    first = encoded.starts[:-1]
    steps[first] = encoded.sentence[first]
    arrays = {
        "ids": _planes(encoded.ids),
        "lengths": _planes(encoded.lengths),
        "labels": _planes(encoded.labels + 1),  # -1, unknown, becomes 0
        "steps": _planes(steps),
        "names": np.frombuffer(
            "\0".join(encoded.names).encode("utf-8", "surrogatepass"), dtype=np.uint8
        ),
    }
    if encoded.evidence is not None:
        arrays["evidence"] = np.packbits(encoded.evidence)
    if encoded.word_labels is not None:
        arrays["word_labels"] = _planes(encoded.word_labels + 1)
    return arrays


def _unpacked(arrays: dict[str, np.ndarray]) -> Encoded:
    """The inverse of `_packed`."""
    ids = _joined(arrays["ids"]).astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(_joined(arrays["lengths"]))])
    total = np.cumsum(_joined(arrays["steps"]))
    if not starts[-1] == len(ids) == len(total) or (np.diff(starts) < 0).any():
        raise ValueError("documents and tokens do not fit together")
    first = starts[:-1]
    # The running sum goes on over document borders: take off what had been reached before each.
    before = np.concatenate([[0], total])[first]
    sentence = total - np.repeat(before, np.diff(starts))
    names = arrays["names"].tobytes().decode("utf-8", "surrogatepass")
    evidence = None
    if "evidence" in arrays:
        evidence = np.unpackbits(arrays["evidence"], count=len(ids)).astype(bool)
    return Encoded(
        ids=ids,
        starts=starts,
        labels=_joined(arrays["labels"]) - 1,
        sentence=sentence.astype(np.int32),
        names=tuple(names.split("\0")) if len(first) else (),
        evidence=evidence,
        word_labels=_joined(arrays["word_labels"]) - 1 if "word_labels" in arrays else None,
    )


def prepare(
    corpus: Corpus,
    out: str | Path,
    vectors: str | Path | None = None,
    min_count: int = 1,
    max_size: int | None = None,
    max_tokens: int = MAX_TOKENS,
    vocabulary: Vocabulary | None = None,
    words_of: Sequence[str] = ("train",),
    knows_vectors: bool = False,
) -> EncodedCorpus:
    """The corpus as ids, written to the folder `out` as a whole or not at all.

    `vectors` is a file of word vectors; those of the vocabulary are stored as 16-bit floats. The
    vocabulary is that of the training documents unless one is given; with `knows_vectors` a word
    rarer than `min_count` is in it too if it has a vector.
    """
    if knows_vectors:
        if vectors is None or vocabulary is not None:
            raise InputError("knows_vectors needs a file of vectors and no vocabulary.")
        told = [document for split in words_of for document in corpus.splits.get(split, ())]
        whole = Vocabulary.of(told)
        known = load_vectors(vectors, whole).words(whole)
        vocabulary = Vocabulary.of(told, min_count, max_size, known)
    encoded = encode(corpus, vocabulary, min_count, max_size, max_tokens, words_of)
    matrix = None if vectors is None else load_vectors(vectors, encoded.vocabulary).matrix
    encoded = replace(encoded, vectors=matrix)
    with writing_folder(out) as folder:
        write_prepared(encoded, folder)
    return encoded


def write_prepared(encoded: EncodedCorpus, folder: Path) -> None:
    """Writes a corpus that is ids already into a folder that is there."""
    from safetensors.numpy import save, save_file

    arrays = {
        f"{split}.{name}": np.ascontiguousarray(values)
        for split, part in encoded.splits.items()
        for name, values in _packed(part).items()
    }
    (folder / _TOKENS).write_bytes(gzip.compress(save(arrays), compresslevel=6, mtime=0))
    write_json(folder / _WORDS, list(encoded.vocabulary.words))
    if encoded.vectors is not None:
        save_file({"vectors": encoded.vectors.astype(np.float16)}, str(folder / _VECTORS))
    header = {
        "format": FORMAT,
        "name": encoded.name,
        "classes": list(encoded.classes),
        "fingerprint": encoded.fingerprint,
        "tokeniser": encoded.tokeniser,
        "notes": dict(encoded.notes),
        "splits": {split: len(part) for split, part in encoded.splits.items()},
        "sha256": {file.name: digest(file) for file in sorted(folder.iterdir())},
    }
    unknown = {split: part.unknown for split, part in encoded.splits.items()}
    if any(number != UNKNOWN for number in unknown.values()):
        header["unknown"] = unknown  # a tokenizer has its own
    write_json(folder / _HEADER, header)


def _checked_header(folder: Path) -> dict[str, Any]:
    """The header, after checking that every file it names is whole."""
    if not (folder / _HEADER).is_file():
        raise InputError(
            f"{folder} holds no prepared corpus (no {_HEADER}); make one with heedful prepare."
        )
    header = read_json(folder / _HEADER)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(
            f"{folder / _HEADER} is not a header of format {FORMAT}; prepare the corpus again."
        )
    told = header.get("sha256")
    sums = told if isinstance(told, dict) else {}
    for name in (_TOKENS, _WORDS, *sums):
        file = folder / Path(name).name
        # os.path takes names of any length.
        if name not in sums or not os.path.isfile(file) or digest(file) != sums[name]:
            raise InputError(f"{file} is missing or damaged; prepare the corpus again.")
    return header


def load_prepared(path: str | Path) -> EncodedCorpus:
    """The prepared corpus of a folder; its splits have no raw documents."""
    from safetensors import SafetensorError

    folder = Path(path)
    header = _checked_header(folder)
    try:
        return _loaded(folder, header)
    except (LookupError, TypeError, AttributeError, ValueError, SafetensorError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{folder} is no prepared corpus ({type(error).__name__}: {error}); prepare it again."
        ) from error


def _loaded(folder: Path, header: dict[str, Any]) -> EncodedCorpus:
    """The corpus of files that are as their header says."""
    from safetensors.numpy import load, load_file

    stored = load(bytes_of(folder / _TOKENS))
    splits = {}
    for split in header["splits"]:
        prefix = f"{split}."
        unpacked = _unpacked(
            {k.removeprefix(prefix): v for k, v in stored.items() if k.startswith(prefix)}
        )
        splits[split] = replace(unpacked, unknown=header.get("unknown", {}).get(split, UNKNOWN))
    vectors = None
    if _VECTORS in header["sha256"]:
        vectors = load_file(str(folder / _VECTORS))["vectors"].astype(np.float32)
    classes, words = tuple(header["classes"]), Vocabulary(tuple(read_json(folder / _WORDS)))
    said = (header["name"], header["fingerprint"], *header["notes"], *classes, *words.words)
    if not all(isinstance(one, str) for one in said):
        raise ValueError("a name, a class or a word is no text")
    for part in splits.values():
        if not len(part.names) == len(part.labels) == len(part.starts) - 1:
            raise ValueError("documents, labels and names are not as many")
        # The pieces of a tokenizer are in no list of ours.
        is_beyond = "unknown" not in header and part.ids.max(initial=0) >= len(words)
        if is_beyond or part.labels.max(initial=-1) >= len(classes):
            raise ValueError("a word or a class is beyond the lists of them")
    return EncodedCorpus(
        name=header["name"],
        classes=classes,
        vocabulary=words,
        splits=splits,
        fingerprint=header["fingerprint"],
        notes=header["notes"],
        vectors=vectors,
        tokeniser=header.get("tokeniser", "words"),
    )
