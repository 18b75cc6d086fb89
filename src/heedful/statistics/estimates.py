"""A number that is never bare: with its interval, its n and how both were made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from heedful.statistics.sums import Additive


@dataclass(frozen=True)
class Estimate:
    """A statistic with its 95 % interval."""

    value: float
    """The statistic; nan where it is undefined."""
    low: float
    """Lower end of the 95 % interval; nan where there is none."""
    high: float
    """Upper end."""
    n: int
    """Instances (or seeds) behind it."""
    method: str
    """Of the interval: wilson, bootstrap-t, gamma, percentile, bca, constant, none and others."""
    undefined: int = 0
    """Instances left out because their value was nan."""
    additive: Additive | None = field(default=None, compare=False, repr=False)
    """What it was made of, where that was to be kept and adds up (`sums.adding_up`)."""

    def side(self, threshold: float) -> Literal["above", "below", "straddles"]:
        """Where the whole interval lies; an interval that touches the threshold straddles it.

        Without an interval nothing can be said, which is "straddles" too.
        """
        if self.low > threshold:
            return "above"
        if self.high < threshold:
            return "below"
        return "straddles"

    def cut(self, least: float, most: float) -> Estimate:
        """The same with its interval inside what the number can be at all; nan stays nan."""
        ends = (self.low, self.high)
        low, high = (end if math.isnan(end) else min(max(end, least), most) for end in ends)
        return replace(self, low=low, high=high)

    def to_json(self) -> dict[str, Any]:
        """The fields in order, with None for nan."""
        return {
            "value": _defined(self.value),
            "low": _defined(self.low),
            "high": _defined(self.high),
            "n": self.n,
            "interval": self.method,
            "undefined": self.undefined,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Estimate:
        """The estimate again from `to_json`; other keys are left alone."""
        value, low, high = (
            math.nan if stored[name] is None else float(stored[name])
            for name in ("value", "low", "high")
        )
        return cls(value, low, high, stored["n"], stored["interval"], stored["undefined"])

    def __str__(self) -> str:
        """Like `0.42 [0.38, 0.46]`, with the digits that the interval's width leaves meaning to."""
        return self.against()

    def against(self, *thresholds: float) -> str:
        """The same, with as many digits as show on which side of each threshold the ends lie."""
        if math.isnan(self.value):
            return "undefined"
        width = self.high - self.low
        if math.isnan(width):
            return f"{self.value:.3g} [no interval]"
        digits = 2 if width <= 0 else min(max(math.ceil(0.7 - math.log10(width)), 0), 6)
        ends = [(end, threshold) for end in (self.low, self.high) for threshold in thresholds]
        while digits < 6 and any(_order(e, t) != _order(round(e, digits), t) for e, t in ends):
            digits += 1
        # Adding 0 turns a rounded -0.0 into 0.0.
        value, low, high = (round(x, digits) + 0.0 for x in (self.value, self.low, self.high))
        return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def per_cent(share: float, digits: int = 0) -> str:
    """A share as every sentence and every page writes it, never torn at the end of a line.

    >>> per_cent(0.093), per_cent(-0.0123, 1)
    ('9\\xa0%', '-1.2\\xa0%')
    """
    # Adding 0 turns a rounded -0.0 into 0.0.
    return f"{round(100 * share, digits) + 0.0:.{digits}f}\N{NO-BREAK SPACE}%"


def per_cent_beside(share: float, *borders: float) -> str:
    """The same, with as many digits as show on which side of each border the share lies.

    >>> per_cent_beside(0.2534, 0.25), per_cent_beside(0.2466, 0.25), per_cent_beside(0.25, 0.25)
    ('25.3\\xa0%', '24.7\\xa0%', '25\\xa0%')
    """
    for digits in range(4):
        shown = round(share, digits + 2)
        if all(_order(share, border) == _order(shown, border) for border in borders):
            return per_cent(share, digits)
    return per_cent(share, 4)


def _order(first: float, second: float) -> int:
    """Whether the first is larger (1), smaller (-1) or neither."""
    return (first > second) - (first < second)


def _defined(number: float) -> float | None:
    return number if math.isfinite(number) else None
