"""Tables of the dynamics study as people read them: ours and the paper's number in one cell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

NEVER = "never passed"
"""The column that names the ξ that no checkpoint passes; their cells have an asterisk."""


def half_up(number: float, digits: int = 0) -> float:
    """The number rounded as people round: a half goes away from zero.

    >>> half_up(94.5), half_up(0.285, 2), half_up(-0.5)
    (95.0, 0.29, -1.0)
    """
    # Nine digits first: 100 × 0.285 is 28.499999999999996.
    size = math.floor(round(abs(number) * 10**digits, 9) + 0.5) / 10**digits
    return math.copysign(size, number) if size else 0.0


def written(number: float | None, digits: int = 0) -> str:
    """The number with so many digits; a dash for none.

    >>> written(94.5), written(0.7, 2), written(14161), written(float("nan"))
    ('95', '0.70', '14,161', '–')
    """
    return "–" if number is None or pd.isna(number) else f"{half_up(number, digits):,.{digits}f}"


def span(numbers: Iterable[float], digits: int = 0) -> str:
    """From the smallest to the largest of the defined numbers.

    >>> span([3.2, 1.0, float("nan")]), span([2.0, 2.0])
    ('1 to 3', '2')
    """
    known = [number for number in numbers if not pd.isna(number)]
    ends = [written(end(known), digits) for end in (min, max)] if known else ["–"]
    return " to ".join(dict.fromkeys(ends))


def briefly(
    table: pd.DataFrame,
    columns: Sequence[str],
    digits: int,
    has_intervals: bool = False,
    seconds: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """One cell for each of the columns of a table that `beside` made: `68 [67, 70] (53)`.

    An asterisk marks a ξ that was never passed. `seconds` names what stands in the cell of a column
    as well, in the rows that have it: `13 / 13 (14 / 14)`.
    """

    def cell(row: pd.Series[Any], name: str) -> str:
        names = [name, *(one for one in [(seconds or {}).get(name)] if one and _has(row, one))]
        ours = " / ".join(written(row.get(one), digits) for one in names)
        ours += _star(row, NEVER, name)
        if has_intervals and not pd.isna(row.get(f"{name} low")):
            ours += f" [{written(row[f'{name} low'], digits)}, "
            ours += f"{written(row[f'{name} high'], digits)}]"
        theirs = row.get(f"{name}, paper")
        if theirs is None or pd.isna(theirs):
            return ours
        printed = " / ".join(written(row.get(f"{one}, paper"), digits) for one in names)
        return f"{ours} ({printed}{_star(row, f'{NEVER}, paper', name)})"

    shown = pd.DataFrame({"corpus": table["corpus"]})
    for name in columns:
        if name in table:
            shown[name] = [cell(row, name) for _, row in table.iterrows()]
    return shown


def _has(row: pd.Series[Any], name: str) -> bool:
    """Whether we or the paper know that column here."""
    return any(not pd.isna(row.get(f"{name}{end}")) for end in ("", ", paper"))


def _star(row: pd.Series[Any], column: str, name: str) -> str:
    named = row.get(column)
    return "*" if isinstance(named, str) and name in named.split("; ") else ""
