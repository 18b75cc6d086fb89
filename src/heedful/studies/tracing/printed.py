"""What the tracing paper printed, and what its repository holds beside it (`paper.toml`)."""

from __future__ import annotations

from heedful.reproduction.paper import Paper

PAPER = Paper.beside(__file__)
ACCURACY = 47.5
BILSTM, DISAN = 46.5, 51.7
"""Published accuracies that theirs lies between."""
REGRESSION = PAPER.printed("regression", ["corpus", "score"])
CORRELATION = PAPER.printed("correlation", ["corpus"])
HIDDEN = PAPER.printed("hidden", ["corpus"])
HEADS = PAPER.printed("heads", ["corpus", "kind"])
SHARED = PAPER.printed("shared", ["corpus", "match"])
MATCHED = {"sst": 2335, "send": 660}
"""Words with a rating behind F5."""
