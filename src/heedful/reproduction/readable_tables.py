"""Tables of a study for people: intervals in one cell, numbers with the digits they deserve."""

from __future__ import annotations

import html
import math
from typing import NamedTuple

import pandas as pd

from heedful.statistics.estimates import Estimate

MOST_ROWS = 64
"""Longer tables are cut in pictures and on the page; the CSV has all rows."""


class Readable(NamedTuple):
    """A table as text."""

    columns: list[str]
    rows: list[list[str]]
    numeric: list[bool]
    """Which columns are numbers, to be aligned right."""
    left_out: int
    """Rows that were cut."""


def readable(table: pd.DataFrame, most: int = MOST_ROWS) -> Readable:
    """The table as text: `x`, `x low`, `x high` and `x n` share the column of `x`."""
    names = [str(name) for name in table.columns]
    shown = table.iloc[:most]
    columns, cells, numeric = [], [], []
    for name in names:
        if any(name == f"{other}{end}" for other in names for end in (" low", " high", " n")):
            continue
        columns.append(name)
        is_number = pd.api.types.is_numeric_dtype(shown[name]) and shown[name].dtype != bool
        numeric.append(is_number)
        if f"{name} low" in names and f"{name} high" in names:
            numbers = shown[[name, f"{name} low", f"{name} high"]].astype(float)
            cells.append([_estimate(*row) for row in numbers.to_numpy().tolist()])
        else:
            cells.append([_cell(value) for value in shown[name]])
    rows = [list(row) for row in zip(*cells, strict=True)]
    return Readable(columns, rows, numeric, len(table) - len(shown))


def picture(table: pd.DataFrame, title: str) -> str:
    """The table as an SVG element in the page's colours."""
    text = readable(table)
    lines = [text.columns, *text.rows]
    widths = [max(len(line[i]) for line in lines) * 7.0 + 18 for i in range(len(text.columns))]
    starts = [sum(widths[:i]) for i in range(len(widths))]
    note = [f"… {text.left_out} more rows in the CSV"] if text.left_out else []
    height = 20 * (len(lines) + len(note)) + 12
    width = max(sum(widths), 120.0)
    parts = []
    for number, line in enumerate(lines):
        y = 20 * number + 18
        weight, colour = (
            ("bold", "--soft, #5f5c55") if number == 0 else ("normal", "--ink, #1d1c1a")
        )
        for i, cell in enumerate(line):
            x = starts[i] + (widths[i] - 9 if text.numeric[i] else 9)
            anchor = "end" if text.numeric[i] else "start"
            parts.append(
                f'<text x="{x:g}" y="{y}" text-anchor="{anchor}" font-weight="{weight}" '
                f'style="fill:var({colour})">{html.escape(cell)}</text>'
            )
    parts.append(
        f'<line x1="4" x2="{width - 4:g}" y1="25" y2="25" style="stroke:var(--line, #e3dfd6)"/>'
    )
    below = 20 * len(lines) + 18
    for words in note:
        parts.append(f'<text x="9" y="{below}" style="fill:var(--soft, #5f5c55)">{words}</text>')
    return (
        f'<svg viewBox="0 0 {width:g} {height}" role="img" font-size="12.5">'
        f"<title>{html.escape(title)}</title>{''.join(parts)}</svg>"
    )


def _estimate(value: float, low: float, high: float) -> str:
    if math.isnan(value) or math.isnan(low):
        return _cell(value)
    return str(Estimate(value, low, high, 0, ""))


def _cell(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None or value is pd.NA or value == "" else str(value)
    if math.isnan(value):
        return "–"
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{int(value)}"
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
