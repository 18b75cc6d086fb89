"""What an audit costs: tokens that went through the model, forward and backward, for whom.

    with metering() as meter:
        with spent_on("occlusion"):
            passed(tokens)
    meter.table()

A pass through a part of the layers counts for that part. Padding counts, since it is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("audit", "method", "forward", "backward")


class Meter:
    """Tokens by what they were read for."""

    def __init__(self) -> None:
        self.spent: dict[tuple[str, str], list[float]] = {}

    @classmethod
    def of(cls, table: pd.DataFrame) -> Meter:
        """What a table of an earlier meter told."""
        meter = cls()
        for audit, method, *tokens in table[list(COLUMNS)].itertuples(index=False):
            meter.spent[audit, method] = tokens
        return meter

    def table(self) -> pd.DataFrame:
        """Tokens forward and backward, by audit and method."""
        import pandas as pd

        rows = [(*who, *tokens) for who, tokens in self.spent.items()]
        return pd.DataFrame(rows, columns=list(COLUMNS))


_meter: ContextVar[Meter | None] = ContextVar("meter", default=None)
_whom: ContextVar[tuple[str, str]] = ContextVar("whom", default=("", ""))


@contextmanager
def metering() -> Iterator[Meter]:
    """Lends a meter that counts what goes through models inside."""
    meter = Meter()
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)


@contextmanager
def spent_on(audit: str = "", method: str = "") -> Iterator[None]:
    """Inside, what is read is read for this audit or method."""
    was = _whom.get()
    token = _whom.set((audit or was[0], method or was[1]))
    try:
        yield
    finally:
        _whom.reset(token)


def counted(meter: Meter) -> None:
    """Counts what another meter has told, as if it were spent now."""
    for (audit, method), (forward, backward) in meter.spent.items():
        with spent_on(audit, method):
            passed(forward, backward)


def passed(tokens: float, backward: float = 0.0) -> None:
    """Counts tokens that went through all layers of a model, or the like part of more."""
    meter = _meter.get()
    if meter is not None:
        spent = meter.spent.setdefault(_whom.get(), [0.0, 0.0])
        spent[0] += tokens
        spent[1] += backward
