"""Word vectors from text files: `word v1 v2 ...`, one word a line."""

from __future__ import annotations

import gzip
import zlib
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from heedful.corpora.vocabulary import Vocabulary
from heedful.errors import InputError
from heedful.runs.entries import refuse_pipe

MOST_BYTES = 1_000_000
"""Of a line; one that is longer is no word with its numbers."""


class Vectors(NamedTuple):
    """Vectors of a vocabulary."""

    matrix: Float[np.ndarray, "word dim"]
    """A row per word; rows of nan have no vector."""
    found: int
    """How many words have one."""

    def words(self, vocabulary: Vocabulary) -> frozenset[str]:
        """The words of the vocabulary that have one."""
        has_one = ~np.isnan(self.matrix).any(1)
        return frozenset(vocabulary.words[row] for row in np.flatnonzero(has_one))


def load_vectors(path: str | Path, vocabulary: Vocabulary) -> Vectors:
    """The vectors of the vocabulary's words, read line by line so that only these are held.

    Plain or gzipped; a first line of two integers (word2vec's count and dimension) is skipped. The
    last `dim` fields of a line are numbers and what is before them is the word, which may hold
    spaces. A line of another length is an error.
    """
    path = Path(path)
    refuse_pipe(path)
    matrix: Float[np.ndarray, "word dim"] | None = None
    found = np.zeros(len(vocabulary), dtype=bool)
    dim = 0
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
            for number, line in enumerate(iter(partial(file.readline, MOST_BYTES), b""), start=1):
                if len(line) == MOST_BYTES:
                    raise _ragged(path, number, "a word and its numbers", "a line without end")
                fields = line.rstrip().split(b" ")
                if number == 1 and len(fields) == 2 and all(f.isdigit() for f in fields):
                    continue
                if matrix is None:
                    dim = len(fields) - 1
                    if dim < 1:
                        raise _ragged(path, number, "a word and its numbers", 0)
                    matrix = np.full((len(vocabulary), dim), np.nan, dtype=np.float32)
                if len(fields) <= dim:
                    raise _ragged(path, number, f"a word and {dim} numbers", len(fields) - 1)
                word = b" ".join(fields[:-dim]).decode("utf-8", errors="replace")
                row = vocabulary.ids.get(word)
                if len(fields) > dim + 1 and _is_number(fields[1]):
                    raise _ragged(path, number, f"a word and {dim} numbers", len(fields) - 1)
                if row is not None and not found[row]:
                    try:
                        matrix[row] = [float(field) for field in fields[-dim:]]
                    except ValueError:
                        raise _ragged(path, number, f"{dim} numbers", "something else") from None
                    found[row] = True
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} is not a whole gzip file ({error}); fetch it again.") from error
    except OSError as error:
        raise InputError(
            f"The vectors {path} cannot be read: {error.strerror or error}."
        ) from error
    if matrix is None:
        raise InputError(f"{path} is empty; expected lines of a word and its numbers.")
    return Vectors(matrix, int(found.sum()))


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _ragged(path: Path, number: int, expected: str, found: object) -> InputError:
    return InputError(
        f"{path}, line {number}: expected {expected}, found {found}; "
        "this is not a file of word vectors, or it is cut short."
    )
