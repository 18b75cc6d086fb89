"""The words that carry grammar and no matter: the list `stop_words.txt`, made for this package.

Articles, pronouns, auxiliaries, prepositions, conjunctions, negations' carriers and the pieces that
the treebank cuts off. Words that also name something felt (`like`, `well`, `will` as a noun) are in
only where grammar is by far their commonest use.
"""

from __future__ import annotations

from pathlib import Path

STOP_WORDS: frozenset[str] = frozenset(
    Path(__file__).with_suffix(".txt").read_text("utf-8").split()
)
