"""What the tracing paper printed, and what its repository holds beside it."""

from __future__ import annotations

from heedful.reproduction.tables import numbers

REFERENCE = (
    "Wu, Nguyen & Ong, Structured Self-Attention Weights Encode Semantics in Sentiment Analysis, "
    "BlackboxNLP 2020."
)
ACCURACY, ACCURACY_SD = 47.5, 0.2
BILSTM, DISAN = 46.5, 51.7
"""Published accuracies that theirs lies between."""
HUMAN_CCC = 0.50

REGRESSION = numbers(
    """
    corpus score         n    b2    SE    t    p
    sst  LAT           2335 0.283 0.040 7.04 0.001
    sst  gradient      2335 -     -     -    .19
    send   LAT           660  0.242 0.039 6.21 0.001
    send   gradient      660  -     -     -    .28
    """,
    ["corpus", "score"],
)
"""R1; .001 stands for p < .001."""
CORRELATION = numbers(
    """
    corpus rho
    sst  .80
    send   .37
    """,
    ["corpus"],
)
"""R2; neither the level nor the kind of correlation is said."""
HIDDEN = numbers(
    """
    corpus hidden
    sst  .171
    send   .754
    """,
    ["corpus"],
)
"""R3, per cent of words that the plot leaves out."""
HEADS = numbers(
    """
    corpus kind  rand 1   2   3   4   5   6   7   8
    sst  both  .07  .15 .10 .09 .17 .12 .15 .09 .12
    sst  v.pos .02  .12 .09 .06 .15 .10 .13 .06 .11
    sst  v.neg .05  .20 .10 .15 .18 .14 .17 .15 .12
    send   both  .13  .16 .17 .17 .22 .20 .16 .16 .20
    send   v.pos .03  .14 .14 .14 .16 .17 .14 .13 .17
    send   v.neg .11  .14 .16 .15 .24 .17 .12 .15 .16
    """,
    ["corpus", "kind"],
)
"""F6, read from the notebook's stored picture. Heads have no order across trainings."""
SHARED = numbers(
    """
    corpus match n   slope SE    p    R2
    send   exact 311 .0757 .0362 .037 .014
    send   hand  319 .0764 .0307 .013 .019
    """,
    ["corpus", "match"],
)
"""E1: SST word means on SEND word means; in the repository, not in the paper."""
MATCHED = {"sst": 2335, "send": 660}
"""Words with a rating behind F5."""
