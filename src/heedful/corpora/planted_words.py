"""The words and sentence patterns of the planted reviews, read from `planted_words.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

_STRENGTHS = {"faint": 0.5, "mild": 1.0, "clear": 1.5, "strong": 2.0, "extreme": 3.0}
_READ = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def _valences(signs: Mapping[str, Mapping[str, str]]) -> dict[str, float]:
    """Words with valences, from one string of words per sign and strength."""
    return {
        word: (1 if sign == "positive" else -1) * _STRENGTHS[strength]
        for sign, strengths in signs.items()
        for strength, words in strengths.items()
        for word in words.split()
    }


def _lists(table: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(items) for name, items in table.items()}


KINDS: dict[str, dict[str, float]] = {
    kind: _valences(signs) for kind, signs in _READ["valence"].items()
}
LEXICON: dict[str, float] = {word: v for words in KINDS.values() for word, v in words.items()}
"""Valence of every valence word, from -3 to 3."""
INTENSIFIERS: dict[str, float] = _READ["intensifiers"]
"""What an intensifier multiplies the next valence word by."""
BEFORE = _lists(_READ["before"])
"""Intensifiers that can stand before each kind of word."""
NEGATIONS: tuple[str, ...] = tuple(_READ["negations"])
"""Words that turn the sign of the next valence word."""
SUPPORT: tuple[str, ...] = tuple(_READ["support"])
"""Verbs that only carry a negation, and go where there is none."""
JUDGEMENTS = _lists(_READ["judgements"])
"""Patterns whose words count, by the kind of the valence word."""
DISTRACTORS: tuple[str, ...] = tuple(_READ["distractors"])
"""Patterns whose valence words do not count."""
NEUTRAL: tuple[str, ...] = tuple(_READ["neutral"])
DOMAINS, PARTS, FILLERS = (_lists(_READ[name]) for name in ("domains", "parts", "fillers"))
"""Things that are reviewed, their parts, and other words that fill a slot."""
