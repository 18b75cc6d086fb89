"""Documents are read in smaller batches, which changes how their sums are blocked.

A plugin of pytest: `PYTEST_PLUGINS=tests.elsewhere.few_at_once READ_AT_ONCE=7`. Batches of a
training stay as they are.
"""

from __future__ import annotations

import os
import sys

import numpy as np

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


def put(old: object, new: object) -> list[str]:
    """Puts one function in the place of another wherever heedful has it; says where."""
    ours = [name for name in sys.modules if name.startswith("heedful.")]
    found = [
        (m, name) for m in ours for name, is_it in vars(sys.modules[m]).items() if is_it is old
    ]
    for module, name in found:
        setattr(sys.modules[module], name, new)
    return [f"{module}.{name}" for module, name in found]


if "READ_AT_ONCE" in os.environ:
    put(groups, few)
