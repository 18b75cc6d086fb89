"""The words and sentence patterns of the planted reviews, read from `planted_words.toml`."""

from __future__ import annotations

from collections.abc import Mapping

from heedful.runs.data_files import data_beside

_STRENGTHS = {"faint": 0.5, "mild": 1.0, "clear": 1.5, "strong": 2.0, "extreme": 3.0}
_READ = data_beside(__file__)


def _valences(signs: Mapping[str, Mapping[str, str]]) -> dict[str, float]:
    """Words with valences, from one string of words per sign and strength."""
    return {
        word: (1 if sign == "positive" else -1) * _STRENGTHS[strength]
        for sign, strengths in signs.items()
        for strength, words in strengths.items()
        for word in words.split()
    }


KINDS: dict[str, dict[str, float]] = {
    kind: _valences(signs) for kind, signs in _READ["valence"].items()
}
LEXICON: dict[str, float] = {word: v for words in KINDS.values() for word, v in words.items()}
"""Valence of every valence word, from -3 to 3."""
INTENSIFIERS: dict[str, float] = _READ["intensifiers"]
"""What an intensifier multiplies the next valence word by."""
BEFORE: dict[str, tuple[str, ...]] = _READ["before"]
"""Intensifiers that can stand before each kind of word."""
NEGATIONS: tuple[str, ...] = _READ["negations"]
"""Words that turn the sign of the next valence word."""
SUPPORT: tuple[str, ...] = _READ["support"]
"""Verbs that only carry a negation, and go where there is none."""
JUDGEMENTS: dict[str, tuple[str, ...]] = _READ["judgements"]
"""Patterns whose words count, by the kind of the valence word."""
DISTRACTORS: tuple[str, ...] = _READ["distractors"]
"""Patterns whose valence words do not count."""
NEUTRAL: tuple[str, ...] = _READ["neutral"]
DOMAINS: dict[str, tuple[str, ...]] = _READ["domains"]
"""Things that are reviewed."""
PARTS: dict[str, tuple[str, ...]] = _READ["parts"]
FILLERS: dict[str, tuple[str, ...]] = _READ["fillers"]
"""Other words that fill a slot."""
