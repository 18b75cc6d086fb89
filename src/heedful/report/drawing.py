"""Figures as SVG that belongs to the page: its fonts, its colours by day and night, its ids."""

from __future__ import annotations

import html
import io
import re
import textwrap
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

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
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib; what is measured is the same
    "font.size": 10.5,
    "axes.linewidth": 0.7,
    "axes.edgecolor": SOFT,
    "axes.facecolor": "none",
    "axes.labelcolor": SOFT,
    "axes.titlecolor": INK,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "none",
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": INK,
    "xtick.major.size": 3,
    "ytick.major.size": 0,
    "xtick.major.width": 0.7,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "lines.solid_capstyle": "round",
}


@contextmanager
def page_style(name: str, is_narrow: bool = False) -> Iterator[None]:
    """Lends matplotlib the page's style; `name` makes generated ids the same in every run."""
    size = ((NARROW if is_narrow else WIDTH) / 72, 3)
    style: Any = {**_STYLE, "svg.hashsalt": name, "figure.figsize": size}
    with matplotlib.rc_context(style):
        yield


def width() -> int:
    """The width of a chart in the style that is lent; that of a page where none is."""
    return NARROW if round(matplotlib.rcParams["figure.figsize"][0] * 72) == NARROW else WIDTH


def columns(most: int) -> int:
    """Columns of a legend, fewer on a phone."""
    return most if width() == WIDTH else min(most, 2)


def fitted(label: str) -> str:
    """A long label of an axis, in lines on a phone."""
    return label if width() == WIDTH else textwrap.fill(label, 38)


def share_labels(axes: Axes) -> None:
    """Leaves out the names of lines that stand on the panel to the left, where there is one."""
    if width() == WIDTH:
        axes.set_yticklabels([])


class PageFigure(Figure):
    """A figure that is laid out without being drawn.

    `savefig` draws a figure with a layout twice, the first time only to lay it out.
    """

    def draw(self, renderer: Any) -> None:
        """Lays out on the first call of `savefig`, draws on the second."""
        layout = self.get_layout_engine()
        if isinstance(layout, ConstrainedLayoutEngine):
            layout.execute(self)
        else:
            super().draw(renderer)


def canvas(
    height: float, columns: int = 1, widths: tuple[float, ...] | None = None
) -> tuple[Figure, list[Axes]]:
    """An empty figure of the page's width, axes side by side; on a phone one below the other."""
    if width() == WIDTH:
        shape, ratios = (1, columns), {"width_ratios": widths}
    else:
        shape, ratios, height = (columns, 1), {}, height * columns
    figure = PageFigure(figsize=(width() / 72, height / 72), dpi=200, layout="constrained")
    axes = figure.subplots(*shape, squeeze=False, gridspec_kw=ratios)
    if width() == NARROW:
        for one in axes.flat:
            one.locator_params(axis="x", nbins=5)
    return figure, list(axes.flat)


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


def svg(figure: Figure, name: str, title: str, description: str) -> str:
    """The figure as an inline SVG element, titled and described for those who do not see it."""
    out = io.StringIO()
    empty = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(out, format="svg", metadata=empty)
    drawn = out.getvalue()
    body = drawn[drawn.index(">", drawn.index("<svg")) + 1 : drawn.rindex("</svg>")]
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", body, flags=re.DOTALL)
    # matplotlib's style sheet would apply to the whole page; the root element carries it instead.
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", body, flags=re.DOTALL)
    body = body.replace("xlink:href", "href")
    body = re.sub(r'\b(id="|url\(#|href="#)', rf"\g<1>{name}-", body)
    body = re.sub(r"font-family:[^;\"]*;?\s*", "", body)  # the page's own font instead
    for colour in _COLOURS.values():
        body = body.replace(colour.stand_in, colour.themed)
    body = re.sub(r"\s*\n\s*", "\n", body.strip())
    across, height = (72 * inches for inches in figure.get_size_inches())
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
