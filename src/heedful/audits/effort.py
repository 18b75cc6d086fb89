"""How many documents an audit looks at, when it stops, and why.

Documents come in an order drawn by key, and are looked at again after every doubling: 50, 100, 200,
400. An audit stops at the first look that settles what it is for. The looks are fixed beforehand
and share the 5 % that intervals may miss (`statistics.level`), so an interval is as good after an
early stop as after a late one.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from heedful.errors import InputError, unknown
from heedful.statistics.estimates import Estimate

Level = Literal["quick", "normal", "exhaustive"]
FIRST, MOST = 50, 400
"""Documents of the first look, and beyond which no interval that is asked for gets much shorter."""
MOST_READ = 2_000
"""Documents beyond which a measure that takes one reading of each is known well enough."""
WIDTH = 0.05
"""Half of an interval that is as short as anyone needs: what it still straddles is a tie."""
NAMED_FIRST = 16
"""Documents of the first look of what is asked of the few methods that the ranking names."""
SETTLED = "what it is for is settled"
ALL, MOST_ASKED, TIME_UP = "there are no more", "no more are asked for", "the time was up"


class Stop(NamedTuple):
    """How many documents an audit has looked at, of how many, and why no more."""

    documents: int
    of: int
    why: str
    looks: int = 1
    """Looks that there could have been: what the intervals reckon with."""

    def sentence(self) -> str:
        """The same for people."""
        if self.documents == self.of:
            return f"All {self.of:,} documents were looked at."
        return f"{self.documents:,} of {self.of:,} documents, drawn by key, were looked at: " + (
            f"{self.why}."
        )


@dataclass(frozen=True)
class Effort:
    """How much work an audit may be."""

    level: Level = "exhaustive"
    minutes: float | None = None
    """After so many no further look is begun; none sets no limit."""
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if self.level not in get_args(Level):
            raise unknown("effort", self.level, get_args(Level))
        if self.minutes is not None and not 0 < self.minutes < math.inf:
            raise InputError(
                f"--minutes must be a number above 0, got {self.minutes:g}; leave it out for an "
                "audit that takes as long as it needs."
            )

    @property
    def inputs(self) -> dict[str, Any]:
        """What findings depend on, to tell audits apart."""
        if self.level == "exhaustive" and self.minutes is None:
            return {}
        return {"effort": self.level, "minutes": self.minutes}

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        if self.minutes is None:
            return False
        return time.monotonic() - self.started > 60 * self.minutes

    def looks(self, documents: int, first: int = FIRST) -> tuple[int, ...]:
        """After how many documents there is a look; the last is at all that are looked at.

        >>> Effort("normal").looks(2000), Effort("normal").looks(70), Effort("quick").looks(2000)
        ((50, 100, 200, 400), (70,), (50,))
        >>> Effort("exhaustive").looks(2000), Effort("exhaustive", minutes=2).looks(300)
        ((2000,), (50, 100, 300))
        """
        most = documents if self.level == "exhaustive" else min(documents, MOST)
        if self.level == "quick":
            return (min(first, documents),)
        if self.level == "exhaustive" and self.minutes is None:
            return (documents,)
        found = []
        # A last look that adds little is not worth its part of the 5 %.
        while 1.5 * first < most:
            found.append(first)
            first *= 2
        return (*found, most)

    def stop(
        self, looks: tuple[int, ...], number: int, of: int, settled: bool, seconds: float
    ) -> Stop | None:
        """Why there is no further look after this one; none where there is one.

        `seconds` were spent on the documents so far; the next look takes in proportion.
        """
        here, why = looks[number], ""
        if number + 1 == len(looks):
            why = ALL if here == of else MOST_ASKED
        elif settled and self.level != "exhaustive":
            why = SETTLED
        elif self.minutes is not None:
            ahead = seconds * (looks[number + 1] / here - 1)
            why = TIME_UP if time.monotonic() + ahead - self.started > 60 * self.minutes else ""
        return Stop(here, of, why, len(looks)) if why else None


EXHAUSTIVE = Effort()
"""All documents, whatever it takes."""


def is_known(estimate: Estimate | None, border: float = 0.0, width: float = WIDTH) -> bool:
    """Whether an interval lies on one side of a border, or is short; so does one that is not there.

    What has no interval at all (nothing differs, nothing is defined) is not waited for.
    """
    if estimate is None or math.isnan(estimate.low):
        return True
    return estimate.side(border) != "straddles" or estimate.high - estimate.low <= 2 * width
