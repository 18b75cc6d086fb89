"""Tables that a long computation asks for one by one, kept now and then for when it is killed.

    keep = KeptTables(out, "exchange-answers", inputs={"seed": 0})
    table = keep(key, lambda: answers(batch))

A computation that is started again and asks the same is given what was kept, and counts what it
had cost (`runs.meter`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pandas as pd

from heedful.runs.meter import Meter, counted, metering
from heedful.runs.steps import TABLES, is_done, step

Keep: TypeAlias = Callable[[str, Callable[[], pd.DataFrame]], pd.DataFrame]
"""What gives the table of a key, which it may have to compute."""
KEY = "key of the table"
ROWS, COST = "rows", "cost"
"""The table that was asked for, and the one of what was read for whom."""


def keep_nothing(key: str, compute: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """The table, computed."""
    return compute()


class _Kept(NamedTuple):
    """A table, and the tokens that were read for it."""

    rows: pd.DataFrame
    cost: Meter


class KeptTables:
    """Tables by their key; those computed within `seconds` are written into one file."""

    def __init__(
        self,
        folder: Path | str,
        name: str,
        inputs: Mapping[str, Any],
        seconds: float = 15.0,
        told: Callable[[int], None] = lambda rows: None,
    ) -> None:
        """`inputs` is everything that the tables depend on besides their key, which says the rest.

        `told` hears how many rows were asked for.
        """
        self._folder, self._name, self._inputs = folder, name, inputs
        self._seconds, self._told = seconds, told
        self._fresh: dict[str, _Kept] = {}
        self._files = 0
        self._written = time.monotonic()

    def __call__(self, key: str, compute: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """The table of this key: what is on disk, or computed and written when it is time."""
        one = self._on_disk.get(key)
        if one is None:
            with metering() as meter:
                table = compute()
            one = self._fresh[key] = _Kept(table, meter)
            if time.monotonic() - self._written >= self._seconds:
                self._write()
        counted(one.cost)
        self._told(len(one.rows))
        return one.rows

    @property
    def rows(self) -> int:
        """How many rows were on disk."""
        return sum(len(one.rows) for one in self._on_disk.values())

    @cached_property
    def _on_disk(self) -> dict[str, _Kept]:
        found: dict[str, _Kept] = {}
        while is_done(self._folder, self._next, inputs=self._inputs, form=TABLES):
            kept = step(self._folder, self._next, dict, inputs=self._inputs, form=TABLES)
            costs = {str(key): table for key, table in kept[COST].groupby(KEY, sort=False)}
            nothing = kept[COST].iloc[:0]
            found |= {
                str(key): _Kept(table, Meter.of(costs.get(str(key), nothing)))
                for key, table in kept[ROWS].groupby(KEY, sort=False)
            }
            self._files += 1
        return found

    @property
    def _next(self) -> str:
        return f"{self._name}-{self._files:03d}"

    def _write(self) -> None:
        parts = {
            ROWS: {key: one.rows for key, one in self._fresh.items()},
            COST: {key: one.cost.table() for key, one in self._fresh.items()},
        }
        tables = {
            part: pd.concat([t.assign(**{KEY: key}) for key, t in of.items()], ignore_index=True)
            for part, of in parts.items()
        }
        step(self._folder, self._next, lambda: tables, inputs=self._inputs, form=TABLES)
        self._files += 1
        self._fresh, self._written = {}, time.monotonic()
