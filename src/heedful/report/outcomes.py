"""What a test behind the verdict says, and what its interval leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from heedful.statistics.estimates import per_cent_beside

IN_ORDER = ("contradicts", "mixed", "supports")
SIGN = "\N{NO-BREAK SPACE}%"


class ShownOutcome(NamedTuple):
    """How a test is shown."""

    mark: str
    """By the share alone; `unknown` where its interval reaches over a border."""
    told: str
    """In words, with every outcome that the interval reaches."""

    @property
    def is_settled(self) -> bool:
        """Whether the whole interval says the same."""
        return self.mark == self.told


def outcome_of(test: Mapping[str, Any]) -> ShownOutcome:
    """The outcome of a stored test: one word, or those that its interval leaves open.

    >>> ends = {"low": 0.11, "high": 0.45, "contradicts": 0.25, "threshold": 0.7}
    >>> outcome_of({"outcome": "contradicts", **ends})
    ShownOutcome(mark='unknown', told='contradicts or mixed')
    >>> outcome_of({"outcome": "mixed", **ends, "low": 0.3})
    ShownOutcome(mark='mixed', told='mixed')
    """
    outcome = test.get("outcome")
    if outcome not in IN_ORDER:
        return ShownOutcome("unknown", "unknown")
    supports, contradicts = test.get("threshold"), test.get("contradicts")
    ends = [end for end in (test.get("low"), test.get("high")) if end is not None]
    if supports is None or contradicts is None or not ends:
        return ShownOutcome(outcome, outcome)
    places = [2 if end >= supports else 0 if end <= contradicts else 1 for end in ends]
    reached = {outcome, *IN_ORDER[min(places) : max(places) + 1]}
    if len(reached) == 1:
        return ShownOutcome(outcome, outcome)
    *first, last = (word for word in IN_ORDER if word in reached)
    return ShownOutcome("unknown", f"{', '.join(first)} or {last}")


def share_of(test: Mapping[str, Any]) -> str:
    """A stored test's share with its interval, so that borders between its digits are seen.

    >>> ends = {"value": 0.175, "low": 0.117, "high": 0.2534, "contradicts": 0.25}
    >>> share_of(ends), share_of({"value": 0.5}), share_of({"value": None})
    ('18\\xa0% [12, 25.3]', '50\\xa0%', 'not measured')
    """
    borders = [test[name] for name in ("contradicts", "threshold") if test.get(name) is not None]
    value, *ends = (test.get(name) for name in ("value", "low", "high"))
    if value is None:
        return "not measured"
    said = [per_cent_beside(end, *borders) for end in ends if end is not None]
    interval = f" [{', '.join(end.removesuffix(SIGN) for end in said)}]" if len(said) == 2 else ""
    return f"{per_cent_beside(value, *borders)}{interval}".replace("-", "−")
