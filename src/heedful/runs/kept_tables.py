"""Tables that a long computation asks for one by one, kept now and then for when it is killed.

    keep = KeptTables(out, "exchange-answers", inputs={"seed": 0})
    table = keep(key, lambda: answers(batch))

A computation that is started again and asks the same is given what was kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from heedful.runs.steps import TABLE, is_done, step

Keep: TypeAlias = Callable[[str, Callable[[], pd.DataFrame]], pd.DataFrame]
"""What gives the table of a key, which it may have to compute."""
KEY = "key of the table"


def keep_nothing(key: str, compute: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """The table, computed."""
    return compute()


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
        self._fresh: list[pd.DataFrame] = []
        self._files = 0
        self._written = time.monotonic()

    def __call__(self, key: str, compute: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """The table of this key: what is on disk, or computed and written when it is time."""
        table = self._on_disk.get(key)
        if table is None:
            table = compute()
            self._fresh.append(table.assign(**{KEY: key}))
            if time.monotonic() - self._written >= self._seconds:
                self._write()
        self._told(len(table))
        return table

    @property
    def rows(self) -> int:
        """How many rows were on disk."""
        return sum(map(len, self._on_disk.values()))

    @cached_property
    def _on_disk(self) -> dict[str, pd.DataFrame]:
        found: dict[str, pd.DataFrame] = {}
        while is_done(self._folder, self._next, inputs=self._inputs, form=TABLE):
            kept = step(self._folder, self._next, pd.DataFrame, inputs=self._inputs, form=TABLE)
            found |= {str(key): table for key, table in kept.groupby(KEY, sort=False)}
            self._files += 1
        return found

    @property
    def _next(self) -> str:
        return f"{self._name}-{self._files:03d}"

    def _write(self) -> None:
        table = pd.concat(self._fresh, ignore_index=True)
        step(self._folder, self._next, lambda: table, inputs=self._inputs, form=TABLE)
        self._files += 1
        self._fresh, self._written = [], time.monotonic()
