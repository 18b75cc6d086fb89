"""What published studies measured: the scale that a number of ours is read against."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from heedful.audits.finding import Finding


class Scale(NamedTuple):
    """Published values of one measure of a finding."""

    measure: str
    method: str
    caption: str
    values: tuple[tuple[str, float], ...]
    """What was measured on, and the number."""
    source: str
    is_share: bool = True
    """Whether numbers are shown as per cent."""


_FAITHFUL = "Mohankumar et al. style of test; 5 runs, additive attention over a BiLSTM."
SCALES: dict[str, tuple[Scale, ...]] = {}
