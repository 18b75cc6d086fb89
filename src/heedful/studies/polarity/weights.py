"""The attention that words get in real texts: one row per word of a split."""

from __future__ import annotations

import pandas as pd
import torch

from heedful.corpora.encoded import Encoded
from heedful.dynamics.scores import read_flat, word_scores
from heedful.models.classifier import AttentionClassifier


def weight_table(model: AttentionClassifier, encoded: Encoded) -> pd.DataFrame:
    """For each word of the split: its mean weight, and in what texts it stands.

    Columns `word` (id), `weight` (mean over occurrences), `times`, `length` (median tokens of its
    texts) and `low` (share of its occurrences in texts where every attention score is negative).
    A weight is relative to its text: a plain word weighs much where nothing else asks for it.
    """
    scores = word_scores(model)
    reading = read_flat(model, encoded, scores)
    top = torch.full((len(reading.labels),), -torch.inf, dtype=torch.float64)
    top = top.to(scores.scores.device)
    top = top.scatter_reduce(0, reading.document, scores.scores[reading.word], "amax")
    tokens = pd.DataFrame(
        {
            "word": reading.word.cpu().numpy(),
            "weight": reading.attention.cpu().numpy(),
            "length": reading.lengths[reading.document].cpu().numpy(),
            "low": (top < 0)[reading.document].cpu().numpy(),
        }
    )
    grouped = tokens.groupby("word")
    return pd.DataFrame(
        {
            "weight": grouped["weight"].mean(),
            "times": grouped.size(),
            "length": grouped["length"].median(),
            "low": grouped["low"].mean(),
        }
    ).reset_index()
