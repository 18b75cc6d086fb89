"""What the polarity paper printed."""

from __future__ import annotations

import pandas as pd

from heedful.reproduction.tables import numbers

SIZES = numbers(
    """
    corpus   length words train     dev       test
    sst      18     16174 3610/3310 444/428   909/912
    imdb     183    63311 8539/8673 2113/2191 2174/2189
    20news-1 185    17584 624/612   156/154   195/192
    20news-2 187    29433 794/790/716 91/70/79 84/100/90
    """,
    ["corpus", "train", "dev", "test"],
)
"""M-T1: positive/negative, or motorcycles/medicine/guns."""

_GRID = numbers(
    """
    λ     sst/dp sst/dp-l sst/dp-a sst/ad 20news-1/dp 20news-1/dp-l 20news-1/dp-a 20news-1/ad
    0.001 55.3   79.8     67.9     62.8   54.8        88.6          78.6          49.4
    1     74.4   81.2     73.4     73.4   88.4        93.0          85.3          87.6
    10    82.2   81.7     80.8     80.3   92.8        91.2          92.8          92.0
    20    81.4   80.9     81.0     81.2   93.5        92.2          93.5          91.2
    50    80.8   82.0     81.5     79.9   93.3        92.3          92.2          91.7
    100   81.2   81.1     80.7     80.8   92.8        91.2          92.8          93.3
    10000 79.6   81.4     79.3     80.8   92.8        92.0          93.0          92.0
    """,
    ["λ"],
).merge(
    numbers(
        """
    λ     imdb/dp imdb/dp-l imdb/dp-a imdb/ad 20news-2/dp 20news-2/dp-l 20news-2/dp-a 20news-2/ad
    0.001 55.5    87.7      73.3      69.8    31.8        90.1          64.6          59.2
    1     79.5    88.2      85.4      83.7    85.4        92.3          88.3          86.7
    10    89.2    87.8      89.6      88.2    93.4        93.4          91.7          90.0
    20    89.6    88.1      89.6      89.6    94.9        94.2          93.3          92.1
    50    89.8    87.2      89.1      88.5    94.9        92.3          92.9          93.8
    100   89.3    88.3      89.2      88.8    94.9        93.1          92.9          92.9
    10000 89.3    88.4      88.9      88.9    94.5        93.8          92.5          92.9
    """,
        ["λ"],
    ),
    on="λ",
)


def accuracies() -> pd.DataFrame:
    """M-T2 as rows of corpus, model, λ and accuracy in per cent: 112 numbers."""
    long = _GRID.melt(id_vars="λ", var_name="cell", value_name="accuracy")
    long[["corpus", "model"]] = long["cell"].str.split("/", expand=True)
    return long[["corpus", "model", "λ", "accuracy"]]


CLASSES = numbers(
    """
    corpus   class                words
    sst      positive             412
    sst      negative             265
    sst      neutral              1384
    imdb     positive             2163
    imdb     negative             1900
    imdb     neutral              5968
    20news-1 rec.sport.hockey     957
    20news-1 rec.sport.baseball   557
    20news-1 neutral              1011
    20news-2 rec.motorcycles      49
    20news-2 sci.med              268
    20news-2 talk.politics.guns   192
    20news-2 neutral              164
    """,
    ["corpus", "class"],
)
"""S-T1."""

IMBALANCE = numbers(
    """
    ratio V·W
    1:1   0
    1:2   -44
    1:5   -62
    2:1   42
    5:2   58
    """,
    ["ratio"],
)
"""S-F7; the last label is printed 2:5 and stands with the positive majority."""
