"""The faithful paper's printed numbers (Tutek & Snajder 2020), beside ours (`paper.toml`)."""

from __future__ import annotations

import pandas as pd

from heedful.reproduction.paper import Paper

PAPER = Paper.beside(__file__)
KEYS = ("corpus", "attention", "model")
CORPORA = PAPER.printed("corpora", ["corpus"])
HYPERPARAMETERS = {
    "embedding dimension": "300",
    "states, both directions": "2 × 150",
    "learning rate": "1e-3",
    "clipped norm": "5",
    "batch": "32",
    "weight decay": "1e-5",
    "share of masked words": "0.15",
    "η": "0.1, 0.3, 1, 3, 5",
    "δ": "10, 20, 30",
}
"""T4."""


def _long(name: str, keys: list[str]) -> pd.DataFrame:
    """A table with columns `model.measure` as one row per model."""
    rows = []
    for _, line in PAPER.printed(name, [key for key in keys if key != "layers"]).iterrows():
        for model in ("base", "concat", "tying", "mlm"):
            row = {key: line[key] for key in keys} | {"model": model}
            rows.append(row | {n: line[f"{model}.{n}"] for n in ("f1", "uniform", "permuted")})
    return pd.DataFrame(rows)


def _melted(name: str, keys: list[str]) -> pd.DataFrame:
    return PAPER.printed(name, keys).melt(keys, var_name="model", value_name=name)


SCORES = _long("scores", ["corpus", "attention"])
DEPTH = _long("depth", ["corpus", "layers"])
INFORMATION = _melted("information", ["corpus", "sample"])
CONFIDENCE = _melted("confidence", ["corpus", "attention"])
