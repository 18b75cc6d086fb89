"""What the dynamics paper printed (dynamics.md §4)."""

from __future__ import annotations

from heedful.jobs.beside import numbers

COLUMNS = ("A(α,βuf)", "A(βuf,βpx)", "A(Δ,βuf)", "A(α,β)")
"""The four agreements in the order of the tables."""

VALIDATION = numbers(
    """
    corpus   A(α,βuf) A(βuf,βpx) A(Δ,βuf) A(α,β) Â    ξ(α,βuf) ξ(βuf,βpx) ξ(Δ,βuf) ξ(α,β) ξ*
    imdb     52.55    81.60      61.55    60.35  5.30 86.81    88.88      86.81    86.81  89.55
    yelp     17.55    75.38      58.90    35.00  5.80 90.39    95.22      95.31    93.59  96.20
    ag-news  39.24    55.13      43.08    48.13  6.20 93.54    96.05      94.32    94.50  96.05
    20ng     65.08    41.33      64.82    63.07  5.11 91.16    60.75      84.57    84.57  94.22
    sst      19.85    33.57      22.45    25.33  8.39 78.16    83.53      78.16    82.38  83.53
    amazon   52.02    76.78      49.68    62.13  5.80 82.48    90.38      82.48    88.07  90.38
    multi30k 31.02    34.43      27.06    48.78  7.11 43.45    43.45      43.45    48.58  66.29
    """,
    ["corpus"],
)
"""T5, and T2 before rounding. Never passed: ξ(βuf,βpx) of AG News, SST and Amazon."""

KENDALL = numbers(
    """
    corpus   A(α,βuf) A(βuf,βpx) A(Δ,βuf) Â    ξ(α,βuf) ξ(βuf,βpx) ξ(Δ,βuf) ξ*
    imdb     12.77    33.31      12.56    0.00 70.60    80.50      70.60    89.55
    yelp     20.38    36.75      20.98    0.00 87.44    93.20      87.44    96.20
    ag-news  26.31    36.65      20.55    0.00 89.31    93.54      85.85    96.05
    20ng     16.06    22.03      6.50     0.00 60.75    60.75      60.75    94.22
    sst      11.68    31.43      15.01    0.00 76.69    83.53      76.69    83.53
    amazon   15.21    35.84      9.33     0.00 69.91    88.07      57.36    90.38
    multi30k 7.89     27.54      3.93     0.00 22.94    36.61      22.94    66.29
    """,
    ["corpus"],
)
"""T3, Kendall's τ × 100."""

TRAINING = numbers(
    """
    corpus   A(α,βuf) A(βuf,βpx) A(Δ,βuf) A(α,β) Â    ξ(α,βuf) ξ(βuf,βpx) ξ(Δ,βuf) ξ(α,β) ξ*
    imdb     51.52    80.10      42.85    64.88  5.29 90.40    99.95      90.40    95.01  99.95
    yelp     11.15    76.12      55.50    37.63  5.85 75.61    96.54      96.19    94.44  98.22
    ag-news  36.97    53.95      43.11    46.89  6.17 93.57    98.42      94.63    95.54  98.42
    20ng     72.36    38.69      71.73    69.47  5.32 100.00   65.40      100.00   100.0  100.00
    sst      21.82    29.35      20.48    28.50  8.48 97.72    100.00     84.11    100.0  100.00
    amazon   51.95    77.18      40.15    61.78  5.91 87.96    99.58      80.98    91.09  99.58
    multi30k 32.89    34.67      28.36    56.39  7.21 43.27    43.27      43.27    51.97  80.76
    """,
    ["corpus"],
)
"""T7, on a training subset."""

KENDALL_BLEU = numbers(
    """
    corpus   A(α,βuf) A(βuf,βpx) A(Δ,βuf) Â    ξ(α,βuf) ξ(βuf,βpx) ξ(Δ,βuf) ξ*
    multi30k 8.68     27.54      4.24     0.00 1.99     6.91       1.99     37.89
    """,
    ["corpus"],
)
"""T4."""

BLEU = numbers(
    """
    corpus   A(α,βuf) A(βuf,βpx) A(Δ,βuf) A(α,β) Â    ξ(α,βuf) ξ(βuf,βpx) ξ(Δ,βuf) ξ(α,β) ξ*
    multi30k 30.77    34.43      27.24    48.70  7.19 11.43    11.43      11.43    16.41  37.89
    """,
    ["corpus"],
)
"""T6."""

TRAINING_BLEU = numbers(
    """
    corpus   A(α,βuf) A(βuf,βpx) A(Δ,βuf) Â    ξ(α,βuf) ξ(βuf,βpx) ξ(Δ,βuf) ξ*
    multi30k 32.89    34.67      28.36    7.16 11.87    11.87      11.87    52.28
    """,
    ["corpus"],
)
"""T8."""

SIZES = numbers(
    """
    corpus   train-length train val-length val  vocabulary
    imdb     181          25000 178        4000 60338
    ag-news  40           60000 40         3800 31065
    20ng     183          1197  207        796  12488
    sst      16           5130  17         1421 11022
    amazon   71           32514 72         4000 37110
    yelp     74           88821 74         4000 41368
    multi30k 14           29000 15         1014 8000
    """,
    ["corpus"],
)
"""T9; lengths of Multi30k are of the source. 20NG's printed 31065 contradicts its parameters."""

FROZEN = numbers(
    """
    corpus  A(α,αfr) A(α,βuf)
    imdb    9        53
    ag-news 17       39
    20ng    19       65
    sst     14       20
    amazon  15       52
    yelp    8        18
    """,
    ["corpus"],
)
"""T10."""

LOGISTIC = numbers(
    """
    corpus  A(βuf,βpx) A(βuf,βlog)
    imdb    0.81       0.84
    yelp    0.74       0.76
    ag-news 0.57       0.58
    20ng    0.40       0.45
    sst     0.39       0.46
    amazon  0.53       0.60
    """,
    ["corpus"],
)
"""T11, of models trained anew."""
