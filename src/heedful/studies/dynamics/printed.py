"""What the dynamics paper printed (`paper.toml`)."""

from __future__ import annotations

import re

import pandas as pd

from heedful.reproduction.paper import Paper
from heedful.reproduction.tables import numbers
from heedful.studies.dynamics.cells import NEVER

PAPER = Paper.beside(__file__)
COLUMNS = ("A(α,βuf)", "A(βuf,βpx)", "A(Δ,βuf)", "A(α,β)")
"""The four agreements in the order of the tables."""


def _starred(name: str) -> pd.DataFrame:
    """A table in which an asterisk marks a ξ that was never passed."""
    text = PAPER.said["printed"][name]
    table = numbers(re.sub(r"(?<=\d)\*", "", text), ["corpus"])
    header, *body = [line.split() for line in text.strip().splitlines()]
    table[NEVER] = [
        "; ".join(name for name, cell in zip(header, cells, strict=True) if cell.endswith("*"))
        for cells in body
    ]
    return table


VALIDATION, KENDALL, TRAINING = map(_starred, ("validation", "kendall", "training"))
MAIN, BLEU, KENDALL_BLEU, TRAINING_BLEU, FROZEN, LOGISTIC = (
    PAPER.printed(name, ["corpus"])
    for name in ("main", "bleu", "kendall_bleu", "training_bleu", "frozen", "logistic")
)
SIZES = PAPER.printed("sizes", ["corpus"]).rename(
    columns=lambda name: re.sub(r"target-(.*)", r"\1 of targets", name)
)
