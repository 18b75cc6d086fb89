"""What Serrano & Smith (2019) print: Tables 1 to 3 and the numbers in the text."""

from __future__ import annotations

from heedful.reproduction.tables import numbers

REFERENCE = "S. Serrano and N. A. Smith, “Is Attention Interpretable?”, ACL 2019"

TABLE_1 = numbers(
    """
    published  words  words,s.d.  sentences  sentences,s.d.  train+dev  test    classes
    Yahoo      104    114         6.2        5.9             1400000    50000   10
    IMDB       395    259         16.2       10.7            122121     13548   10
    Amazon     73     48          4.3        2.6             3000000    650000  5
    Yelp       125    109         7.0        5.6             650000     50000   5
    """,
    ["published"],
)
TABLE_2 = numbers(
    """
    published  both  only_top  only_random  neither
    Yahoo      0.5   8.7       1.3          89.6
    IMDB       2.2   12.2      1.4          84.2
    Amazon     2.7   7.6       2.7          87.1
    Yelp       1.5   8.9       1.9          87.7
    """,
    ["published"],
)
TABLE_3 = numbers(
    """
    published  HANrnn  HANconv  HANnoenc  FLANrnn  FLANconv  FLANnoenc
    Yahoo      74.6    72.8     73.1      75.5     73.1      72.3
    IMDB       50.3    48.9     46.1      49.1     48.2      45.4
    Amazon     56.9    55.3     51.2      56.6     54.4      50.2
    Yelp       63.0    61.0     58.6      62.3     60.7      58.2
    """,
    ["published"],
)
MORE_THAN_HALF = {"random": 12.4, "attention": 2.8, "gradient": 0.9, "product": 0.5}
"""Amazon FLANnoenc: percent of instances with more than half of the items removed (N3)."""
LEAST_RATIO = 1.6
"""Gradient earlier over attention earlier: its minimum over the 16 encoder models (N2)."""

PUBLISHED = {
    "20newsgroups": "Yahoo",
    "ag-news": "Yahoo",
    "imdb-stars": "IMDB",
    "amazon-stars": "Amazon",
    "yahoo-answers": "Yahoo",
    "imdb-ratings": "IMDB",
    "amazon-full": "Amazon",
    "yelp-full": "Yelp",
}
"""Which corpus of the paper each of ours stands for, or is."""


def by_corpus(values: dict[str, str]) -> dict[str, str]:
    """The paper's values under our corpora's names."""
    return {ours: values[theirs] for ours, theirs in PUBLISHED.items() if theirs in values}
