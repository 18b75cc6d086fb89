"""What the polarity paper printed (`paper.toml`)."""

from __future__ import annotations

import pandas as pd

from heedful.reproduction.paper import Paper

PAPER = Paper.beside(__file__)
SIZES = PAPER.printed("sizes", ["corpus", "train", "dev", "test"])
CLASSES = PAPER.printed("classes", ["corpus", "class"])
IMBALANCE = PAPER.printed("imbalance", ["ratio"])
_GRID = PAPER.printed("grid", ["λ"]).merge(PAPER.printed("grid_2", ["λ"]), on="λ")


def accuracies() -> pd.DataFrame:
    """M-T2 as rows of corpus, model, λ and accuracy in per cent: 112 numbers."""
    long = _GRID.melt(id_vars="λ", var_name="cell", value_name="accuracy")
    long[["corpus", "model"]] = long["cell"].str.split("/", expand=True)
    return long[["corpus", "model", "λ", "accuracy"]]
