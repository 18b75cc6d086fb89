"""Tokens and where they stand in the text, by named rules."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from heedful.corpora.vocabulary import SPECIALS, UNKNOWN
from heedful.errors import unknown

PLACEHOLDER = "qqq"
"""What the `jw` rule writes for every token with a digit in it."""


class Tokens(NamedTuple):
    """The tokens of a text and the characters they cover."""

    tokens: tuple[str, ...]
    spans: Int[np.ndarray, "token 2"]
    """First character and one past the last, in the text as given."""


# Contractions are cut the Penn way (did|n't, it|'s): the negation becomes a token of its own and
# both halves have GloVe vectors. Hyphens and underscores separate words.
_WORDS = re.compile(
    r"""\d+(?:[.,]\d+)*                                  # 3  1,000  2.5
      | n['’]t(?![^\W_])                                 # n't
      | ['’](?:s|re|ve|ll|d|m)(?![^\W_])                 # 's  're  've ...
      | [^\W\d_]+?(?=n['’]t(?![^\W_]))                   # did, before n't
      | [^\W_]+(?:['’](?!(?:s|re|ve|ll|d|m)(?![^\W_]))[^\W_]+)*   # words, o'clock
      | ([^\w\s]|_)\1*                                   # a mark, or a run of the same mark
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ALPHANUMERIC = re.compile(r"\w+")
_PLAIN = re.compile(r"[^\W_]+")
_UNMARKED = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_RUNS = re.compile(r"\w+|[^\w\s]+")
_WHITESPACE = re.compile(r"\S+")
_DIGIT = re.compile(r"\d")


def _cut(pattern: re.Pattern[str], text: str) -> tuple[list[str], Int[np.ndarray, "token 2"]]:
    """The matches of a pattern, lowercased, and their spans.

    Words are interned: a corpus repeats few words often, and one copy of each is enough. A word
    that looks like a special symbol is read as unknown.
    """
    found = list(pattern.finditer(text))
    tokens = [sys.intern(match.group().lower()) for match in found]
    if "<" in text:
        tokens = [SPECIALS[UNKNOWN] if token in SPECIALS else token for token in tokens]
    spans = np.array([match.span() for match in found], dtype=np.int32).reshape(-1, 2)
    return tokens, spans


def words(text: str) -> Tokens:
    """Lowercased words, numbers and marks; contractions in two (`did` `n't`), hyphens apart.

    A run of one mark (`...`, `!!!`) is one token; a curly apostrophe becomes a straight one.
    """
    tokens, spans = _cut(_WORDS, text)
    if "’" in text:
        tokens = [token.replace("’", "'") for token in tokens]
    return Tokens(tuple(tokens), spans)


def polarity(text: str) -> Tokens:
    """Lowercased runs of word characters; all else is a space.

    See docs/studies/polarity.md, "Corpora".
    """
    tokens, spans = _cut(_ALPHANUMERIC, text)
    return Tokens(tuple(tokens), spans)


def plain(text: str) -> Tokens:
    """Lowercased runs of letters and digits; all else is a space, "_" too.

    See docs/studies/dynamics.md, "Corpora".
    """
    tokens, spans = _cut(_PLAIN, text)
    return Tokens(tuple(tokens), spans)


def unmarked(text: str) -> Tokens:
    """Lowercased runs of letters and digits with the apostrophes inside them (`don't`), no marks.

    See docs/studies/faithful.md, "Corpora"; a curly apostrophe becomes a straight one.
    """
    tokens, spans = _cut(_UNMARKED, text)
    return Tokens(tuple(token.replace("’", "'") for token in tokens), spans)


def jain_wallace(text: str) -> Tokens:
    """Lowercased words and runs of punctuation; a token with a digit reads `qqq`.

    The rule of Jain & Wallace's newsgroup and news pipelines (docs/studies/faithful.md, "Corpora";
    20News I of docs/studies/polarity.md, "Corpora").
    """
    tokens, spans = _cut(_RUNS, text)
    return Tokens(tuple(PLACEHOLDER if _DIGIT.search(t) else t for t in tokens), spans)


def whitespace(text: str) -> Tokens:
    """Lowercased runs of anything but white space: for text that is tokenised already."""
    tokens, spans = _cut(_WHITESPACE, text)
    return Tokens(tuple(tokens), spans)


TOKENISERS: dict[str, Callable[[str], Tokens]] = {
    "words": words,
    "polarity": polarity,
    "plain": plain,
    "unmarked": unmarked,
    "jw": jain_wallace,
    "whitespace": whitespace,
}


def tokenise(text: str, rule: str = "words") -> Tokens:
    """The tokens of a text under a named rule; any string is accepted.

    >>> tokenise("It didn't work -- at all!").tokens
    ('it', 'did', "n't", 'work', '--', 'at', 'all', '!')
    """
    if rule not in TOKENISERS:
        raise unknown("tokeniser", rule, TOKENISERS)
    return TOKENISERS[rule](text)
