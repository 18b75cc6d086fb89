"""What all pictures share: the page's colours by day and night, its width, names that fit, ids."""

from __future__ import annotations

import html
import re
import textwrap
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from heedful.errors import one_line


class Colour(NamedTuple):
    """A colour as matplotlib is given it, the page's variable for it, and its light value."""

    stand_in: str
    variable: str
    light: str

    @property
    def themed(self) -> str:
        """The colour by day and night, for an element of a page."""
        return f"var({self.variable}, {self.light})"


# Stand-ins are colours nobody would choose, so that they can be found again in the SVG.
_COLOURS = {
    "ink": Colour("#010203", "--ink", "#1d1c1a"),
    "soft": Colour("#010204", "--soft", "#5f5c55"),
    "line": Colour("#010205", "--line", "#e3dfd6"),
    "paper": Colour("#010206", "--paper", "#fbfaf7"),
    "hush": Colour("#010207", "--hush", "#f1eee7"),
    "accent": Colour("#010208", "--chart-1", "#0c6a72"),
    "warm": Colour("#010209", "--chart-2", "#c9622f"),
    "green": Colour("#01020a", "--chart-3", "#7d8f3f"),
    "violet": Colour("#01020b", "--chart-4", "#6f5a9c"),
    "ochre": Colour("#01020c", "--chart-5", "#b88400"),
    "grey": Colour("#01020d", "--chart-6", "#8b8880"),
    "blue": Colour("#01020e", "--chart-7", "#3d6db5"),
    "rose": Colour("#01020f", "--chart-8", "#b8487e"),
}
INK, SOFT, LINE, PAPER, HUSH, ACCENT, WARM, GREEN, VIOLET, OCHRE, GREY, BLUE, ROSE = (
    colour.stand_in for colour in _COLOURS.values()
)
SERIES = (ACCENT, WARM, GREEN, VIOLET, OCHRE, GREY, SOFT)
RASTER = "#2b8f97"
"""What dense scatters are painted with: a picture cannot follow the page's colours."""

WIDTH, NARROW = 460, 340
"""Width of every chart in its own units, and on a phone; the page stretches it to the column."""
_NARROWED: ContextVar[bool] = ContextVar("narrowed", default=False)


@contextmanager
def page(is_narrow: bool = False) -> Iterator[None]:
    """Charts drawn inside are as wide as a page, or as a phone."""
    token = _NARROWED.set(is_narrow)
    try:
        yield
    finally:
        _NARROWED.reset(token)


def width() -> int:
    """The width of a chart: that of a page unless a phone is asked for."""
    return NARROW if _NARROWED.get() else WIDTH


def columns(most: int) -> int:
    """Columns of a legend, fewer on a phone."""
    return most if width() == WIDTH else min(most, 2)


def fitted(label: str) -> str:
    """A long label of an axis, in lines on a phone."""
    return label if width() == WIDTH else textwrap.fill(label, 38)


def plain_text(text: object, most: int = 26) -> str:
    """A label: one line, no control characters, cut to what fits."""
    shown = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in str(text))
    shown = " ".join(shown.split())
    return shown if len(shown) <= most else shown[: most - 1].rstrip() + "…"


def last_part(text: object, most: int = 26) -> str:
    """A label that fits: the whole of it, or what follows its last comma.

    >>> last_part("probability of the decision, read alone, top unit")
    'top unit'
    """
    whole = plain_text(text, len(str(text)) + 1)
    return plain_text(whole if len(whole) <= most else whole.rpartition(", ")[2], most)


def worded(name: str) -> str:
    """A stored name of a measure or an edit in the words of the sentences beside it.

    >>> worded("permuted - trained"), worded("violations by chance")
    ('shuffled − as trained', 'claims belied by chance')
    """
    parts = ("as trained" if part == "trained" else part for part in name.split(" - "))
    said = " \N{MINUS SIGN} ".join(parts)
    return said.replace("permuted", "shuffled").replace("violations", "claims belied")


def element(
    name: str, title: str, description: str, body: str, across: float, height: float
) -> str:
    """The inside of a picture as an SVG element in the page's colours, titled and described."""
    for colour in _COLOURS.values():
        body = body.replace(colour.stand_in, colour.themed)
    body = re.sub(r"\s*\n\s*", "\n", body.strip())
    return (
        f'<svg viewBox="0 0 {across:g} {height:g}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc" '
        'style="stroke-linejoin:round;stroke-linecap:butt">'
        f'<title id="{name}-title">{html.escape(one_line(title))}</title>'
        f'<desc id="{name}-desc">{html.escape(one_line(description))}</desc>'
        f"{body}</svg>"
    )


def standalone(element: str) -> str:
    """The inline element as a file of its own, in plain colours that every program can draw."""
    for colour in _COLOURS.values():
        element = element.replace(colour.themed, colour.light)
    return element.replace(
        "<svg ",
        '<svg xmlns="http://www.w3.org/2000/svg" font-family="Helvetica, Arial, sans-serif" ',
        1,
    )


def themed(file: str) -> str:
    """The text of such a file as an element whose colours are again those of the page."""
    for colour in _COLOURS.values():
        file = file.replace(colour.light, colour.themed)
    return file
