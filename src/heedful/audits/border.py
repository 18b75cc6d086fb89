"""Where a measure speaks for showing attention as the reason, and where against."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from heedful.statistics.estimates import Estimate

Outcome = Literal["supports", "mixed", "contradicts", "unknown"]


@dataclass(frozen=True)
class Border:
    """Where a measure stops contradicting the claim and where it starts supporting it."""

    key: str
    """What the calibration calls it."""
    audit: str
    measure: str
    method: str
    name: str
    contradicts: float
    supports: float
    sentence: str
    """What the measure says, with {value} in it."""
    is_veto: bool = False
    """Whether it can only speak against: where a text says things twice, no deletion costs much."""

    def outcome(self, estimate: Estimate | None) -> Outcome:
        """Supports or contradicts when the whole interval lies on that side; else mixed."""
        if estimate is None or math.isnan(estimate.value) or math.isnan(estimate.low):
            return "unknown"
        if estimate.side(self.supports) == "above":
            return "supports"
        return "contradicts" if estimate.side(self.contradicts) == "below" else "mixed"
