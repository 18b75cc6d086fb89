"""Documents are read in smaller batches, which changes how their sums are blocked.

A plugin of pytest: `PYTEST_PLUGINS=tests.elsewhere.few_at_once READ_AT_ONCE=7`. To be imported
before what reads; batches of a training stay as they are.
"""

from __future__ import annotations

import os

import numpy as np

from heedful.corpora import batches
from heedful.corpora.batches import groups
from heedful.corpora.encoded import Encoded


def few(
    encoded: Encoded,
    batch_size: int = 32,
    generator: np.random.Generator | None = None,
    max_tokens: int | None = None,
) -> list[np.ndarray]:
    most = batch_size if generator else min(batch_size, int(os.environ["READ_AT_ONCE"]))
    return groups(encoded, most, generator, max_tokens)


if "READ_AT_ONCE" in os.environ:
    batches.groups = few
