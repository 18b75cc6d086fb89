"""Plain charts as SVG: axes that know limits, ticks, names and marks, and nothing else.

Marks are called as in matplotlib, whose figures take a hundred times as long: most of that is
measuring letters, twice. Studies, whose figures need more, still draw with it (`report.figures`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from heedful.report.dots import painted
from heedful.report.drawing import INK, LINE, SOFT, width
from heedful.report.letters import SIZE, across, middle, room, written
from heedful.report.ticks import spelt, ticks

PAD = 3.0
"""Around the whole chart, and between a tick and its name."""
GAP = 6.0
"""Between a title or a name of an axis and what is beside it."""
TICK = 3.0
BEYOND = 4.0
"""What a mark at the very edge may stand out of its axes."""
MARGIN = 0.05
"""Of the span of the data, left free at either end."""
ROOM_X, ROOM_Y = 3 * SIZE, 2 * SIZE
"""Room that a tick has at least."""
NINE = 9
Values = Any
"""A number or a sequence of numbers."""


@dataclass
class Axis:
    """One direction of axes: what it reaches over and how it is marked."""

    limits: tuple[float | None, float | None] = (None, None)
    most: int = NINE
    """Steps between ticks."""
    is_share: bool = False
    has_grid: bool = False
    has_line: bool = True
    tick: float = 0.0
    colour: str = SOFT
    label: str = ""
    places: Sequence[float] | None = None
    names: Sequence[str] | None = None
    colours: Mapping[int, str] = field(default_factory=dict)
    """Of single names that stand out."""
    turn: float = 0.0
    seen: list[float] = field(default_factory=list)
    stands_on: set[float] = field(default_factory=set)
    """Ends at which bars begin: no margin is left there."""

    def reach(self, values: Values) -> None:
        """Takes in what a mark covers."""
        known = np.asarray(values, dtype=float)
        known = known[np.isfinite(known)]
        if known.size:
            self.seen += [float(known.min()), float(known.max())]

    def mark(self, places: Sequence[float], names: Sequence[str], turn: float = 0.0) -> None:
        """Sets the ticks and what stands at them."""
        self.places, self.names, self.turn = places, names, turn
        self.reach(places)

    @property
    def ends(self) -> tuple[float, float]:
        """From where to where it goes."""
        low, high = (min(self.seen), max(self.seen)) if self.seen else (0.0, 1.0)
        spare = MARGIN * (high - low) or MARGIN * max(abs(high), 1.0)
        found = (
            low if low in self.stands_on else low - spare,
            high if high in self.stands_on else high + spare,
        )
        start, end = (f if g is None else g for f, g in zip(found, self.limits, strict=True))
        return start, end

    def marked(self, length: float, least: float) -> tuple[list[float], list[str]]:
        """Places of the ticks that fit, and their names."""
        low, high = sorted(self.ends)
        if self.places is None:
            most = min(self.most, max(int(length / least), 1))
            places = ticks(low, high, most, self.is_share)
        else:
            places = list(self.places)
        names = spelt(places, self.is_share) if self.names is None else list(self.names)
        shown = [pair for pair in zip(places, names, strict=True) if low <= pair[0] <= high]
        return [place for place, _ in shown], [name for _, name in shown]


class Box(NamedTuple):
    """Where axes lie in a chart, and what is around them."""

    left: float
    top: float
    wide: float
    tall: float
    around: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    """Room on the left, right, top and bottom."""


class Named(NamedTuple):
    """What the legend tells of a line or of dots: their name and how they look."""

    label: str
    colour: str
    is_dot: bool
    width: float = 1.0
    dashes: str = ""
    alpha: float = 1.0


At = Callable[[Values], Any]
"""Places in the chart of values along an axis."""
Mark = Callable[[At, At], str]


class Axes:
    """What is drawn in one rectangle."""

    def __init__(self) -> None:
        self.x, self.y = Axis(tick=TICK), Axis(colour=INK)
        self.title = ""
        self.is_off = False
        self.entries: list[Named] = []
        self._marks: list[tuple[float, Mark]] = []
        self._names: list[Mark] = []

    def plot(
        self, x: Values, y: Values, marker: str = "", *, color: str, lw: float = 1.5,
        ls: Any = "-", ms: float = 6, alpha: float = 1, label: str | None = None,
        zorder: float = 2, **ignored: Any,
    ) -> None:  # fmt: skip
        """A line through points, or with the marker "o" alone the points; nan breaks it."""
        x, y = np.atleast_1d(np.asarray(x, dtype=float)), np.atleast_1d(np.asarray(y, dtype=float))
        self._see(x, y)
        dashes = "" if ls == "-" else " ".join(f"{lw * part:g}" for part in ls[1])
        style = f"fill:none;stroke:{color};stroke-width:{lw:g}" + _opacity("stroke", alpha)
        style += f";stroke-dasharray:{dashes}" if dashes else ";stroke-linecap:round"
        is_dots = marker == "o" and not lw

        def line(at_x: At, at_y: At) -> str:
            steps, pen = [], "M"
            for a, b in zip(at_x(x), at_y(y), strict=True):
                if math.isfinite(a) and math.isfinite(b):
                    steps.append(f"{pen}{a:.2f} {b:.2f}")
                pen = "L" if math.isfinite(a) and math.isfinite(b) else "M"
            return f'<path d="{"".join(steps)}" style="{style}"/>' if steps else ""

        if not is_dots:
            self._marks.append((zorder, line))
        if marker:
            self._dots(x, y, np.full(len(x), ms / 2), color, alpha, zorder)
        if label:
            self.entries.append(Named(label, color, is_dots, lw, dashes, alpha))

    def points(
        self, x: Values, y: Values, *, color: str, ms: float, label: str | None = None
    ) -> None:
        """Dots alone."""
        self.plot(x, y, "o", color=color, ms=ms, lw=0, label=label)

    def scatter(
        self, x: Values, y: Values, *, s: Values, color: str, alpha: float = 1,
        label: str | None = None, is_painted: bool = False,
    ) -> None:  # fmt: skip
        """Dots of some areas (in squared units); painted they are one picture."""
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        self._see(x, y)
        radii = np.broadcast_to(np.sqrt(np.asarray(s, dtype=float)) / 2, x.shape)
        if is_painted:
            self._marks.append((1, lambda a, b: painted(a(x), b(y), float(radii[0]), color, alpha)))
        else:
            self._dots(x, y, radii, color, alpha, 1)
        if label:
            self.entries.append(Named(label, color, True, 0, "", alpha))

    def hlines(
        self, y: Values, low: Values, high: Values, *, color: str, lw: float, alpha: float
    ) -> None:
        """Lines across, as one path."""
        rows, low, high = (np.asarray(v, dtype=float) for v in (y, low, high))
        self._see(np.concatenate([low, high]), rows)
        style = f"fill:none;stroke:{color};stroke-width:{lw:g};stroke-linecap:round"
        style += _opacity("stroke", alpha)

        def lines(at_x: At, at_y: At) -> str:
            ends = zip(at_x(low), at_x(high), at_y(rows), strict=True)
            path = "".join(f"M{a:.2f} {r:.2f}H{b:.2f}" for a, b, r in ends if math.isfinite(a + b))
            return f'<path d="{path}" style="{style}"/>' if path else ""

        self._marks.append((1.5, lines))

    def bars(self, edges: Values, counts: Values, share: float, *, color: str) -> None:
        """Bars that stand on 0, from each edge so much of the way to the next."""
        edges, counts = np.asarray(edges, dtype=float), np.asarray(counts, dtype=float)
        wide = np.diff(edges) * share
        self.y.stands_on.add(0.0)
        for left, across_it, count in zip(edges[:-1], wide, counts, strict=True):
            self.box(left, 0.0, across_it, count, color=color)

    def box(
        self, x: float, y: float, wide: float, tall: float, *, color: str, alpha: float = 1
    ) -> None:
        """A filled rectangle."""
        self._see([x, x + wide], [y, y + tall])
        style = f"fill:{color}" + _opacity("fill", alpha)

        def rectangle(at_x: At, at_y: At) -> str:
            (left, right), (low, high) = sorted(at_x([x, x + wide])), sorted(at_y([y, y + tall]))
            return (
                f'<rect x="{left:.2f}" y="{low:.2f}" width="{right - left:.2f}" '
                f'height="{high - low:.2f}" style="{style}"/>'
            )

        self._marks.append((1, rectangle))

    def axhline(self, y: float, *, color: str, lw: float, ls: Any = "-", label: str = "") -> None:
        """A line from side to side."""
        self._across(None, y, color, lw, ls, label)

    def axvline(self, x: float, *, color: str, lw: float, ls: Any = "-") -> None:
        """A line from bottom to top."""
        self._across(x, None, color, lw, ls, "")

    def text(
        self, x: float, y: float, text: str, *, size: float = SIZE, color: str = INK,
        weight: str = "", beside: float | None = None,
    ) -> None:  # fmt: skip
        """Letters centred on a point, or so far beside it and above, where the chart has room."""

        def letters(at_x: At, at_y: At) -> str:
            (a,), (b,) = at_x([x]), at_y([y])
            if beside is None:
                return written(a, middle(b, text, size), text, color, size, "middle", 0, weight)
            is_cut = a + beside + across(text, size) > width()
            side = "end" if is_cut else "start"
            a += -beside if is_cut else beside
            return written(a, b - beside, text, color, size, side, 0, weight)

        self._names.append(letters)

    def draw(self, box: Box, clip: str) -> Iterator[str]:
        """The parts of the picture, from back to front."""
        left, top, wide, tall, _ = box
        at_x, at_y = _scale(self.x.ends, left, wide), _scale(self.y.ends, top + tall, -tall)
        bottom = top + tall
        if not self.is_off:
            yield from self._ticks(box, at_x, at_y)
        yield (
            f'<clipPath id="{clip}"><rect x="{left - BEYOND:.2f}" y="{top - BEYOND:.2f}" '
            f'width="{wide + 2 * BEYOND:.2f}" height="{tall + 2 * BEYOND:.2f}"/></clipPath>'
            f'<g clip-path="url(#{clip})">'
        )
        for _, mark in sorted(self._marks, key=lambda pair: pair[0]):
            yield mark(at_x, at_y)
        yield "</g>"
        for name in self._names:  # not cut where the axes end
            yield name(at_x, at_y)
        lines = [f"M{left:.2f} {bottom:.2f}h{wide:.2f}"] * self.x.has_line
        lines += [f"M{left:.2f} {top:.2f}v{tall:.2f}"] * self.y.has_line
        if lines and not self.is_off:
            yield _stroke("".join(lines), SOFT)
        if self.title:
            lines_above = self.title.count("\n") * SIZE * 1.2
            yield written(left, top - GAP - lines_above, self.title, SOFT)

    def around(self, wide: float, tall: float) -> tuple[float, float, float, float]:
        """Room that is needed on the left, right, top and bottom of so large axes."""
        top = room(self.title)[1] + GAP if self.title else PAD
        if self.is_off:
            return PAD, PAD, top, PAD
        places, names = self.x.marked(wide, ROOM_X)
        sizes = [room(name, turn=self.x.turn) for name in names]
        low, high = self.x.ends
        span = (high - low) or 1.0
        halves = [(0.9 * w, 0.1 * w) if self.x.turn else (w / 2, w / 2) for w, _ in sizes]
        overs = [
            (before - wide * (place - low) / span, after - wide * (high - place) / span)
            for place, (before, after) in zip(places, halves, strict=True)
        ]
        left = max((over for over, _ in overs), default=0.0)
        right = max((0.0, *(over for _, over in overs)))
        _, rows = self.y.marked(tall, ROOM_Y)
        names_wide = max((room(name)[0] for name in rows), default=0.0)
        beside = names_wide + PAD * bool(names_wide) + self.y.tick
        left = max(left, beside + (room(self.y.label)[1] + PAD) * bool(self.y.label))
        bottom = self.x.tick + PAD + max((high for _, high in sizes), default=0.0)
        if self.x.label:
            bottom += PAD + room(self.x.label)[1]
            right = max(right, room(self.x.label)[0] - wide - left)
        right = max(right, room(self.title)[0] - wide if self.title else 0.0)
        return left + PAD, right + PAD, top, bottom + PAD

    def _ticks(self, box: Box, at_x: At, at_y: At) -> Iterator[str]:
        left, top, wide, tall, around = box
        bottom, below = top + tall, top + tall + self.x.tick + PAD
        places, names = self.x.marked(wide, ROOM_X)
        over = list(at_x(places)) if places else []
        rows, said = self.y.marked(tall, ROOM_Y)
        down = list(at_y(rows)) if rows else []
        if self.x.has_grid and over:
            yield _stroke("".join(f"M{a:.2f} {top:.2f}v{tall:.2f}" for a in over), LINE)
        if self.y.has_grid and down:
            yield _stroke("".join(f"M{left:.2f} {b:.2f}h{wide:.2f}" for b in down), LINE)
        if self.x.tick and over:
            yield _stroke("".join(f"M{a:.2f} {bottom:.2f}v{self.x.tick:g}" for a in over), SOFT)
        deep = max((room(name, turn=self.x.turn)[1] for name in names), default=0.0)
        for place, name in zip(over, names, strict=True):
            if self.x.turn:
                # The corner of its last letter lies below the tick.
                sine, cosine = _turned(self.x.turn)
                x, y = place + 0.36 * SIZE * sine, below + 0.75 * SIZE * cosine
                yield written(x, y, name, self.x.colour, anchor="end", turn=self.x.turn)
            else:
                yield written(place, below + 0.85 * SIZE, name, self.x.colour, anchor="middle")
        for line, (place, name) in enumerate(zip(down, said, strict=True)):
            colour = self.y.colours.get(line, self.y.colour)
            x = left - PAD - self.y.tick
            yield written(x, middle(place, name), name, colour, anchor="end")
        if self.x.label:
            half = room(self.x.label)[0] / 2
            start, end = left - around[0] + PAD + half, left + wide + around[1] - PAD - half
            x = min(max(left + wide / 2, start), max(start, end))
            yield written(x, below + deep + PAD + 0.85 * SIZE, self.x.label, SOFT, anchor="middle")
        if self.y.label:
            x, y = left - around[0] + PAD + 0.85 * SIZE, top + tall / 2
            yield written(x, y, self.y.label, SOFT, anchor="middle", turn=90)

    def _see(self, x: Values, y: Values) -> None:
        self.x.reach(x)
        self.y.reach(y)

    def _dots(
        self, x: Values, y: Values, radii: Values, color: str, alpha: float, zorder: float
    ) -> None:
        style = f"fill:{color}" + _opacity("fill", alpha)

        def dots(at_x: At, at_y: At) -> str:
            circles = "".join(
                f'<circle cx="{a:.2f}" cy="{b:.2f}" r="{r:.3g}"/>'
                for a, b, r in zip(at_x(x), at_y(y), radii, strict=True)
                if math.isfinite(a) and math.isfinite(b)
            )
            return f'<g style="{style}">{circles}</g>' if circles else ""

        self._marks.append((zorder, dots))

    def _across(
        self, x: float | None, y: float | None, color: str, lw: float, ls: Any, label: str
    ) -> None:
        if x is not None:
            self.x.reach(x)
        if y is not None:
            self.y.reach(y)
        dashes = "" if ls == "-" else " ".join(f"{lw * part:g}" for part in ls[1])

        def line(at_x: At, at_y: At) -> str:
            (a, c) = at_x(self.x.ends) if x is None else at_x([x, x])
            (b, d) = at_y(self.y.ends) if y is None else at_y([y, y])
            return _stroke(f"M{a:.2f} {b:.2f}L{c:.2f} {d:.2f}", color, lw, dashes)

        self._marks.append((2, line))
        if label:
            self.entries.append(Named(label, color, False, lw, dashes))


def _scale(ends: tuple[float, float], start: float, length: float) -> At:
    low, high = ends
    span = (high - low) or 1.0
    return lambda values: start + (np.asarray(values, dtype=float) - low) / span * length


def _turned(degrees: float) -> tuple[float, float]:
    return math.sin(math.radians(degrees)), math.cos(math.radians(degrees))


def _opacity(what: str, alpha: float) -> str:
    return f";{what}-opacity:{alpha:.3g}" if alpha < 1 else ""


def _stroke(path: str, colour: str, width: float = 0.7, dashes: str = "") -> str:
    dashed = f";stroke-dasharray:{dashes}" if dashes else ""
    return f'<path d="{path}" style="fill:none;stroke:{colour};stroke-width:{width:g}{dashed}"/>'
