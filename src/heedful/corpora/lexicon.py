"""Lexicons: words with a number (what people feel about them), and how words of texts find it."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

from heedful.corpora.entries import CATALOGUE
from heedful.corpora.root import expect, find, root_of
from heedful.corpora.tables import decode
from heedful.errors import InputError
from heedful.runs.entries import refuse_pipe

WARRINER = CATALOGUE["warriner"]


class Ratings(NamedTuple):
    """The words of a file with their ratings."""

    words: dict[str, float]
    said: tuple[str, ...] = ()
    """What was decided on the way."""


def read_lexicon(path: str | Path) -> dict[str, float]:
    """Words and values of a file; see `read_ratings`."""
    return read_ratings(path).words


def read_ratings(path: str | Path) -> Ratings:
    """Words and values of a file: commas or tabs, any line end, a header or none.

    The word stands first, its value second; what follows (in VADER's file the spread and the single
    ratings) is left alone. Words are lowercased unless that makes two of them one (`AIDS`, `aids`).
    A word listed several times has the mean of its values. A line without a number (but for a
    header) and a file without any word are errors.
    """
    path = Path(path)
    refuse_pipe(path)
    try:
        text = decode(path.read_bytes(), path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    values: dict[str, list[float]] = {}
    lines = [line for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if line]
    is_tabbed = bool(lines) and "\t" in lines[0]
    if is_tabbed:  # VADER rates :"( and the like: a quotation mark is a letter there
        cells = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        cells = csv.reader(lines)
    try:
        rows = list(cells)
    except csv.Error as error:
        raise InputError(f"{path} is no list of words and numbers: {error}.") from error
    for number, fields in enumerate(rows, start=1):
        try:
            word, value, *_ = (field.strip() for field in fields)
            valence = float(value)
            if not math.isfinite(valence):
                raise ValueError(value)
        except ValueError:
            if number == 1 and len(fields) > 1 and not _is_number(fields[1]):
                continue  # a header
            raise InputError(
                f"{path}, line {number}: expected a word and a number, got {lines[number - 1]!r}."
            ) from None
        values.setdefault(word, []).append(valence)
    if not values:
        raise InputError(f"{path} has no words; expected lines of a word and a number.")
    lowered = Counter(word.lower() for word in values)
    words = {
        word.lower() if lowered[word.lower()] == 1 else word: sum(found) / len(found)
        for word, found in values.items()
    }
    repeated = [word for word, found in values.items() if len(found) > 1]
    if not repeated:
        return Ratings(words)
    named = ", ".join(repeated[:3]) + (", ..." if len(repeated) > 3 else "")
    told = f"Listed more than once, so that the mean was taken: {named} ({len(repeated):,} in all)."
    return Ratings(words, (told,))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def load_lexicon(name: str = "warriner", data_root: str | Path | None = None) -> dict[str, float]:
    """The lexicon of the data root by name, or any two-column file by its path."""
    if name != "warriner":
        return read_lexicon(name)
    path = find(root_of(data_root), WARRINER.files[0], WARRINER.source)
    lexicon = read_lexicon(path)
    expect(path, {"words": len(lexicon)}, WARRINER.counts)
    return lexicon


class Match(NamedTuple):
    """The rating of a word, and the entry of the lexicon that has it."""

    entry: str
    rating: float
    how: Literal["exact", "lemma"]


def match(
    words: Iterable[str],
    lexicon: Mapping[str, float],
    has_lemmas: bool = True,
    language: str = "en",
) -> dict[str, Match]:
    """The words that the lexicon rates: as they stand, else by their lemma.

    Words are looked up in lowercase. Inflected forms share the entry of their lemma (`movies`,
    `movie`), so their ratings are not independent: resample by `entry`. Words without a rating are
    left out.
    """
    found = {}
    lemma_of = _lemmatiser(language) if has_lemmas else None
    for word in words:
        lowered = word.lower()
        if lowered in lexicon:
            found[word] = Match(lowered, lexicon[lowered], "exact")
        elif lemma_of is not None and (lemma := lemma_of(lowered)) in lexicon:
            found[word] = Match(lemma, lexicon[lemma], "lemma")
    return found


def has_lemmatiser() -> bool:
    """Whether words can be matched by their lemma here."""
    return find_spec("simplemma") is not None


def _lemmatiser(language: str) -> Callable[[str], str]:
    try:
        import simplemma
    except ImportError as error:
        raise InputError(
            "Matching words by their lemma needs the package simplemma (pip install "
            "heedful[lexicon]); --no-lemmas matches words as they stand."
        ) from error
    try:
        simplemma.lemmatize("words", lang=language)
    except ValueError as error:
        raise InputError(f"simplemma knows no lemmas of the language {language!r}.") from error
    return lambda word: str(simplemma.lemmatize(word, lang=language)).lower()
