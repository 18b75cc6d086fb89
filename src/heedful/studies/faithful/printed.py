"""The faithful paper's printed numbers (Tutek & Snajder 2020), to lie beside ours."""

from __future__ import annotations

import pandas as pd

from heedful.reproduction.tables import numbers

KEYS = ("corpus", "attention", "model")
_SCORES = """
corpus attention base.f1 base.uniform base.permuted concat.f1 concat.uniform concat.permuted tying.f1 tying.uniform tying.permuted mlm.f1 mlm.uniform mlm.permuted
sst    + 84.2 -2.8 -5.0 83.7 -1.9 -4.7 83.5 -7.0 -18.0 82.8 -5.9 -15.6
sst    • 84.3 -2.6 -6.5 84.1 -3.4 -7.4 83.5 -9.9 -20.0 82.7 -3.0 -5.4
ag     + 95.9 -2.3 -3.9 95.9 -1.5 -2.6 95.0 -3.3 -14.6 95.2 -1.5 -6.6
ag     • 95.9 -2.3 -3.8 96.1 -1.9 -3.0 95.4 -3.0 -12.2 95.4 -2.0 -5.3
ng     + 90.9 -9.8 -14.1 91.3 -25.0 -28.2 91.4 -39.7 -43.2 91.5 -76.3 -66.0
ng     • 91.1 -35.2 -36.8 91.0 -40.4 -37.1 90.9 -37.0 -42.8 89.1 -79.6 -72.8
imdb   + 88.3 -10.0 -13.4 88.3 -10.2 -14.0 87.1 -56.2 -43.3 87.5 -22.8 -26.5
imdb   • 88.2 -18.6 -22.9 87.9 -17.2 -20.8 87.2 -57.7 -45.3 87.8 -15.3 -18.5
anemia + 92.4 -21.6 -22.4 92.8 -19.3 -22.2 91.3 -31.4 -27.6 89.7 -35.0 -37.7
anemia • 92.7 -10.2 -14.4 92.4 -15.2 -17.2 91.0 -91.0 -59.7 90.7 -37.8 -33.9
"""  # noqa: E501
_DEPTH = """
corpus layers base.f1 base.uniform base.permuted concat.f1 concat.uniform concat.permuted tying.f1 tying.uniform tying.permuted mlm.f1 mlm.uniform mlm.permuted
sst  1 84.2 -2.8 -5.0 83.7 -1.9 -4.7 83.5 -7.0 -18.0 82.8 -5.9 -15.6
sst  2 84.2 -1.0 -1.2 84.5 -0.8 -4.6 84.1 -3.7 -14.5 84.4 -3.8 -5.9
sst  3 84.2 -0.7 -0.7 83.3 -1.3 -1.3 84.6 -2.7 -13.9 82.3 -7.3 -18.0
ag   1 95.9 -2.3 -3.9 95.9 -1.5 -2.6 95.0 -3.3 -14.6 95.2 -1.5 -6.6
ag   2 95.7 -0.3 -0.3 95.9 -1.4 -2.0 95.5 -3.7 -14.8 95.6 -1.6 -3.8
ag   3 95.9 -0.0 -0.1 95.7 -1.0 -1.6 95.4 -2.0 -12.8 95.8 -13.2 -62.5
ng   1 90.9 -9.8 -14.1 91.3 -25.0 -28.2 91.4 -39.7 -43.2 91.5 -76.3 -66.0
ng   2 93.7 -0.9 -5.6 94.0 -6.3 -11.9 92.8 -17.5 -25.5 89.8 -31.6 -35.0
ng   3 92.0 0.0 0.0 91.5 -30.2 -35.7 89.0 -30.3 -39.3 88.5 -17.9 -17.4
imdb 1 88.3 -10.0 -13.4 88.3 -10.2 -14.0 87.1 -56.2 -43.3 87.5 -22.8 -26.5
imdb 2 88.4 -3.1 -3.8 88.9 -7.2 -9.1 87.6 -51.2 -41.1 87.4 -14.5 -21.7
imdb 3 88.5 -1.2 -1.4 88.8 -5.7 -7.8 87.9 -7.6 -21.3 87.1 -87.1 -84.5
"""  # noqa: E501
_INFORMATION = """
corpus sample base residual tying mlm
sst    MF 2.324 5.062 4.870 3.662
sst    RS 2.435 4.289 4.216 3.808
ag     MF 1.940 5.467 4.075 3.845
ag     RS 2.078 4.518 4.177 3.980
ng     MF 1.566 4.345 3.985 3.677
ng     RS 1.828 3.843 3.784 3.458
imdb   MF 2.455 4.998 5.186 3.728
imdb   RS 2.682 4.366 4.434 3.885
anemia MF 3.711 5.253 4.239 4.016
anemia RS 3.780 4.477 3.950 3.921
"""
_CONFIDENCE = """
corpus attention base residual tying mlm
sst    + 0.712 0.685 0.586 0.630
sst    • 0.693 0.701 0.600 0.664
ag     + 0.887 0.822 0.615 0.695
ag     • 0.862 0.876 0.646 0.698
ng     + 0.811 0.551 0.577 0.514
ng     • 0.687 0.755 0.516 0.482
imdb   + 0.625 0.609 0.533 0.562
imdb   • 0.590 0.608 0.539 0.553
anemia + 0.568 0.547 0.531 0.515
anemia • 0.542 0.534 0.515 0.519
"""
CORPORA = numbers(
    """
    corpus   length vocabulary
    sst      17     17310
    ag       31     15286
    ng       164    15590
    imdb     234    41919
    diabetes 1700   23778
    anemia   1927   20290
    """,
    ["corpus"],
)
"""T5."""
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


def _long(text: str, keys: list[str], names: list[str]) -> pd.DataFrame:
    """A table with columns `model.measure` as one row per model."""
    table = numbers(text, [key for key in keys if key != "layers"])
    rows = []
    for _, line in table.iterrows():
        for model in ("base", "concat", "tying", "mlm"):
            row = {key: line[key] for key in keys} | {"model": model}
            rows.append(row | {name: line[f"{model}.{name}"] for name in names})
    return pd.DataFrame(rows)


SCORES = _long(_SCORES, ["corpus", "attention"], ["f1", "uniform", "permuted"])
"""T1, in points: F1 and its changes."""
DEPTH = _long(_DEPTH, ["corpus", "layers"], ["f1", "uniform", "permuted"])
"""T6, in points."""


def _melted(text: str, keys: list[str], value: str) -> pd.DataFrame:
    return numbers(text, keys).melt(keys, var_name="model", value_name=value)


INFORMATION = _melted(_INFORMATION, ["corpus", "sample"], "information")
"""T2, nats."""
CONFIDENCE = _melted(_CONFIDENCE, ["corpus", "attention"], "confidence")
"""T3."""
