"""Rated words and the trace of attention to them, from plain passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from tests.docs.importance_again import traced
from tests.docs.plain_passes import Plain


@dataclass(frozen=True)
class Lexicon:
    """Words that people rated, and what a trace gives them in the documents that were read."""

    plain: Plain
    documents: Sequence[Any]
    lexicon: str
    """The file of ratings."""

    @cached_property
    def tokens(self) -> pd.DataFrame:
        """A row for each word of each text, by plain passes."""
        found = []
        for one in self.documents:
            words = tuple(one.text.split())
            heads = traced(self.plain, words)
            shares = heads / heads.sum(1, keepdims=True)
            even = heads.sum(0) * len(words) / heads.sum()
            found += [
                {"instance": one.id, "word": word, "ratio": even[n], "heads": shares[:, n]}
                for n, word in enumerate(words)
            ]
        return pd.DataFrame(found)

    @cached_property
    def ratings(self) -> dict[str, float]:
        """As the file has them."""
        table = pd.read_csv(self.lexicon, header=None)
        return dict(zip(table[0].astype(str), table[1].astype(float), strict=True))

    @cached_property
    def thirds(self) -> list[pd.DataFrame]:
        """The words rated low, between and high, seen twice or more: their mean even shares."""
        by_word = self.tokens.groupby("word")["ratio"].agg(["mean", "size"])
        words = by_word[(by_word["size"] >= 2) & by_word.index.isin(list(self.ratings))]
        words = words.assign(rating=[self.ratings[word] for word in words.index])
        low, high = words["rating"].quantile([1 / 3, 2 / 3])
        is_low, is_high = words["rating"] <= low, words["rating"] >= high
        return [words[is_low], words[~is_low & ~is_high], words[is_high & ~is_low]]

    def held(self, kind: str) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """Each head's attention on words of a kind, [text head], chance, and the texts that have
        one; others are nan."""
        low, high = min(self.ratings.values()), max(self.ratings.values())
        below, above = low + 2.5 / 8 * (high - low), low + 5.5 / 8 * (high - low)
        names, found, chance = [], [], []
        for name, text in self.tokens.groupby("instance", sort=False):
            ratings = np.array([self.ratings.get(word, np.nan) for word in text["word"]])
            is_low, is_high = ratings < below, ratings >= above
            one = {"high": is_high, "low": is_low, "high or low": is_high | is_low}[kind]
            names.append(str(name))
            found.append(np.stack(list(text["heads"]))[one].sum(0) if one.any() else np.nan)
            chance.append(one.mean() if one.any() else np.nan)
        return np.stack([np.broadcast_to(f, 2) for f in found]), np.array(chance), names
