"""Words that no text has: whether one of them would overturn decisions and not be shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from heedful.audits.asking import Asked
from heedful.audits.hybrids import Hybrid, ReadText, seen
from heedful.corpora.encoded import Encoded
from heedful.corpora.vocabulary import SPECIALS
from heedful.models.verbs import AttentiveModel
from heedful.runs.randomness import numpy_generator

AT_ONCE, TWICE = 3, 2
"""Words put into a text together, and how often that is done."""
ALONE, SUSPECTS = 6, 40
"""Texts in which a suspect is tried alone, and how many suspects are at most."""
HALF = 0.5


def unseen_words(model: AttentiveModel, documents: Encoded) -> dict[int, str]:
    """Words of the model's vocabulary, or pieces of its tokenizer, that no document has."""
    vocabulary, subwords = getattr(model, "vocabulary", None), getattr(model, "subwords", None)
    if vocabulary is not None:
        known = dict(enumerate(vocabulary.words))
        special = set(range(len(SPECIALS)))
    elif subwords is not None:
        inner: Any = model
        table = getattr(inner.model, "get_input_embeddings", lambda: None)()
        count = getattr(table, "num_embeddings", 0)
        known = {number: f"of number {number}" for number in range(count)}
        frame = subwords.single
        special = {subwords.padding, subwords.unknown, *frame.before, *frame.after}
        tokenizer = getattr(subwords, "tokenizer", None)
        if tokenizer is not None:
            known |= {
                number: word for word, number in tokenizer.get_vocab().items() if number in known
            }
            special |= set(tokenizer.all_special_ids)
    else:
        return {}
    there = set(np.unique(documents.ids).tolist()) | special
    return {number: word for number, word in known.items() if number not in there}


def overturned(
    asked: Asked, kept: Bool[np.ndarray, " text"], documents: Encoded, seed: int
) -> dict[int, str]:
    """Texts whose decision a word of no text turns while what is shown stays, with that word.

    A few such words at a time take the place of units that are not shown; what then turns a
    decision unseen is tried alone in some texts, and counts if it turns most of these.
    """
    words = unseen_words(asked.model, documents)
    rng = numpy_generator(seed, "unseen words")
    rows = [row for row in np.flatnonzero(kept) if not asked.texts[row].seen.all()]
    if not words or not rows:
        return {}
    every = np.array(sorted(words))
    needed = TWICE * AT_ONCE * len(rows)
    drawn = np.concatenate([rng.permutation(every) for _ in range(-(-needed // len(every)))])[
        :needed
    ].reshape(-1, AT_ONCE)
    turned = _turned(asked, np.tile(rows, TWICE), drawn, rng)
    suspects = list(dict.fromkeys(drawn[turned].ravel().tolist()))[:SUSPECTS]
    if not suspects:
        return {}
    chosen = [rng.choice(rows, min(ALONE, len(rows)), replace=False) for _ in suspects]
    of = np.concatenate(chosen)
    word = np.repeat(suspects, [len(some) for some in chosen])
    alone = _turned(asked, of, word[:, None], rng)
    guilty = [one for one in suspects if alone[word == one].mean() >= HALF]
    return {
        int(row): words[int(one)]
        for row, one, does in zip(of, word, alone, strict=True)
        if does and one in guilty
    }


def _turned(
    asked: Asked,
    rows: Int[np.ndarray, "try"],
    words: Int[np.ndarray, "try word"],
    rng: np.random.Generator,
) -> Bool[np.ndarray, "try"]:
    """Whether the decision turns and none of the new words is shown."""
    hybrids = [_with(asked.texts[row], some, rng) for row, some in zip(rows, words, strict=True)]
    said = asked(hybrids, rows.tolist())
    before = np.array([asked.texts[row].decision for row in rows])
    is_hidden = [
        not (seen(weights) & hybrid.is_new).any()
        for weights, hybrid in zip(said.weights, hybrids, strict=True)
    ]
    return np.asarray((said.logits.argmax(1) != before) & np.array(is_hidden))


def _with(text: ReadText, words: Sequence[int], rng: np.random.Generator) -> Hybrid:
    """The text with the words in place of units that are not shown."""
    hidden = np.flatnonzero(~text.seen)
    places = rng.choice(hidden, min(len(words), len(hidden)), replace=False)
    units, is_new = list(text.units), np.zeros(len(text.units), dtype=bool)
    for place, word in zip(places, words, strict=False):
        units[place], is_new[place] = np.array([word]), True
    return Hybrid(units, text.side, is_new)
