"""Planted reviews with a translation: a parallel corpus whose alignment is known by construction.

The target is a planted review. The source says it in an invented language: every word has one word
of its own there, and a third of the words stand behind the word that follows them in the target,
within a clause. So the right alignment of every pair is known, most of it is monotone, and the
text has the statistics of the reviews.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from heedful.corpora.parallel import Parallel
from heedful.corpora.planted import planted
from heedful.runs.randomness import key

SIZES: Mapping[str, int] = {"train": 2_400, "dev": 400, "test": 400}
_ONSETS = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "br", "st", "tr")
_NUCLEI = ("a", "e", "i", "o", "u", "au", "ei", "ie")
_MARKS = {",", ".", "!"}


def planted_pairs(sizes: Mapping[str, int] | None = None, seed: int = 0) -> Parallel:
    """Pairs of an invented language and English, all different, the same for the same seed."""
    corpus = planted(2, "short", seed, SIZES if sizes is None else sizes)
    texts = {split: [d.tokens for d in documents] for split, documents in corpus.splits.items()}
    words = sorted({word for rows in texts.values() for row in rows for word in row})
    other = _dictionary(words)
    splits, alignments = {}, {}
    for split, rows in texts.items():
        orders = [_order(row) for row in rows]
        splits[split] = [
            (" ".join(other[row[place]] for place in order), " ".join(row))
            for row, order in zip(rows, orders, strict=True)
        ]
        alignments[split] = [tuple(enumerate(order)) for order in orders]
    return Parallel("planted", ("invented", "en"), splits, alignments)


def _dictionary(words: Sequence[str]) -> dict[str, str]:
    """One invented word for every word; marks stay as they are."""
    found: dict[str, str] = {}
    taken = set(words)
    for word in words:
        rng = random.Random(f"invented/{word}")
        while word not in _MARKS:
            syllables = rng.choice((1, 2, 2, 3))
            made = "".join(rng.choice(_ONSETS) + rng.choice(_NUCLEI) for _ in range(syllables))
            made += rng.choice(("", "", "n", "k", "s"))
            if made not in taken:
                taken.add(made)
                found[word] = made
                break
        found.setdefault(word, word)
    return found


def _order(words: Sequence[str]) -> tuple[int, ...]:
    """For each source position, the target word it translates."""
    order = list(range(len(words)))
    place = 0
    while place + 1 < len(words):
        is_mark = words[place] in _MARKS or words[place + 1] in _MARKS
        if not is_mark and key(0, "trailing", words[place]) % 3 == 0:
            order[place], order[place + 1] = order[place + 1], order[place]
            place += 1
        place += 1
    return tuple(order)
