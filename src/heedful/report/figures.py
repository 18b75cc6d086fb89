"""Figures of matplotlib as SVG that belongs to a page: those of studies, of panels and clouds."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from heedful.report.drawing import INK, SOFT, WIDTH, element

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
    "figure.figsize": (WIDTH / 72, 3),
}


@contextmanager
def page_style(name: str = "") -> Iterator[None]:
    """Lends matplotlib the page's style; `name` makes generated ids the same in every run."""
    style: Any = {**_STYLE, "svg.hashsalt": name}
    with matplotlib.rc_context(style):
        yield


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

    def svg(self, name: str, title: str, description: str) -> str:
        """The figure as an inline SVG element, drawn in the page's style."""
        with page_style(name):
            return svg(self, name, title, description)


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
    across, height = (72 * inches for inches in figure.get_size_inches())
    return element(name, title, description, body, across, height)
