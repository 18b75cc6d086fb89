"""A chart of several axes: side by side on a page, below each other on a phone, with a legend."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.report.axes import PAD, Axes, Box, Named
from heedful.report.drawing import INK, SOFT, WIDTH, element, width
from heedful.report.letters import SIZE, middle, room, written

ROUNDS = 3
"""Sizes and the room around them depend on each other; so often they are reckoned again."""
HANDLE, BESIDE, BETWEEN, PITCH = 15.0, 5.0, 14.0, 15.5
"""Of a legend: its lines, what is between them and their names, its columns and its rows."""
SMALLEST = 10.0
"""Axes are no smaller, however little room there is."""
PHONE_STEPS = 5


class Canvas:
    """An empty chart of the page's width, `height` for each row of axes."""

    def __init__(self, height: float, rows: Sequence[float], columns: Sequence[float]) -> None:
        self.height, self.rows, self.columns = height, rows, columns
        self.axes = [Axes() for _ in rows for _ in columns]
        self.said = ""
        """A sentence in place of a picture."""
        self._legend: tuple[bool, int] | None = None

    def legend(self, columns: int, is_above: bool = False) -> None:
        """Names all that is labelled, below the axes or above them."""
        self._legend = is_above, columns

    def svg(self, name: str, title: str, description: str) -> str:
        """The chart as an inline SVG element, titled and described."""
        parts: list[str] = []
        entries = [entry for axes in self.axes for entry in axes.entries]
        if self._legend and entries:
            is_above, most = self._legend
            block, tall = _laid_out(entries, most, width())
            start = 0.0 if is_above else self.height - tall
            parts += [_entry(one, x, start + y) for one, x, y in block]
            above, below = (tall, 0.0) if is_above else (0.0, tall)
        else:
            above = below = 0.0
        for number, (axes, box) in enumerate(
            zip(self.axes, self._boxes(above, below), strict=True)
        ):
            parts += axes.draw(box, f"{name}-clip-{number}")
        if self.said:
            half = width() / 2, self.height / 2
            parts.append(written(half[0], middle(half[1], ""), self.said, SOFT, anchor="middle"))
        return element(name, title, description, "\n".join(parts), width(), self.height)

    def _boxes(self, above: float, below: float) -> list[Box]:
        """Where each of the axes lies: in line, save where there are no scales."""
        rows, columns = range(len(self.rows)), range(len(self.columns))
        tall = (self.height - above - below) / sum(self.rows)
        table = [[self.axes[r * len(columns) + c] for c in columns] for r in rows]
        wide = [[width() / len(columns) for _ in columns] for _ in rows]
        high = [share * tall for share in self.rows]
        for _ in range(ROUNDS):
            around = [[table[r][c].around(wide[r][c], high[r]) for c in columns] for r in rows]
            scaled = [r for r in rows if not table[r][0].is_off] or rows
            for r in rows:
                line = scaled if r in scaled else [r]
                before = [max(around[o][c][0] for o in line) for c in columns]
                after = [max(around[o][c][1] for o in line) for c in columns]
                over, under = (max(around[r][c][k] for c in columns) for k in (2, 3))
                around[r] = [(before[c], after[c], over, under) for c in columns]
                left = (width() - sum(before) - sum(after)) / sum(self.columns)
                wide[r] = [max(left * share, SMALLEST) for share in self.columns]
                high[r] = max(self.rows[r] * tall - over - under, SMALLEST)
        boxes, top = [], above
        for r in rows:
            left = 0.0
            for c in columns:
                room_left, room_right, room_over, _ = around[r][c]
                place = left + room_left, top + room_over, wide[r][c], high[r]
                boxes.append(Box(*place, around[r][c]))
                left += room_left + wide[r][c] + room_right
            top += self.rows[r] * tall
        return boxes


def canvas(
    height: float, columns: int = 1, widths: Sequence[float] | None = None
) -> tuple[Canvas, list[Axes]]:
    """An empty chart, axes side by side; on a phone one below the other."""
    if width() == WIDTH:
        made = Canvas(height, (1,), widths or (1,) * columns)
    else:
        made = Canvas(height * columns, (1,) * columns, (1,))
        for axes in made.axes:
            axes.x.most = PHONE_STEPS
    return made, made.axes


def _laid_out(
    entries: Sequence[Named], most: int, wide: float
) -> tuple[list[tuple[Named, float, float]], float]:
    """Each entry with its place, in as many columns as fit; and how high all of them are."""
    for columns in range(min(most, len(entries)), 0, -1):
        rows = -(-len(entries) // columns)
        parts = [entries[start : start + rows] for start in range(0, len(entries), rows)]
        sizes = [max(_wide(one) for one in part) for part in parts]
        if sum(sizes) + BETWEEN * (len(sizes) - 1) + 2 * PAD <= wide or columns == 1:
            break
    found, left = [], 2 * PAD
    for part, size in zip(parts, sizes, strict=True):
        found += [(one, left, PAD + PITCH * (line + 0.5)) for line, one in enumerate(part)]
        left += size + BETWEEN
    return found, PITCH * rows + 2 * PAD


def _wide(entry: Named) -> float:
    return (SIZE if entry.is_dot else HANDLE) + BESIDE + room(entry.label)[0]


def _entry(entry: Named, x: float, y: float) -> str:
    """A handle with its name."""
    faint = f"opacity:{entry.alpha:.3g};" if entry.alpha < 1 else ""
    if entry.is_dot:
        handle, long = f'<circle cx="{x + 4:.2f}" cy="{y:.2f}" r="2.6" ', SIZE
        style = f"{faint}fill:{entry.colour}"
    else:
        handle, long = f'<path d="M{x:.2f} {y:.2f}h{HANDLE:g}" ', HANDLE
        style = f"{faint}fill:none;stroke:{entry.colour};stroke-width:{entry.width:g}"
        style += f";stroke-dasharray:{entry.dashes}" if entry.dashes else ""
    name = written(x + long + BESIDE, middle(y, entry.label), entry.label, INK)
    return f'{handle}style="{style}"/>{name}'
