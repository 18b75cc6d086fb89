"""How much room letters take, and text as SVG; measured by a table, so that nothing is drawn."""

from __future__ import annotations

import html
import math
import unicodedata

from heedful.report.drawing import INK

SIZE = 10.5
"""Of the letters of a chart."""
LINE_HEIGHT = 1.2
# Advances in em of DejaVu Sans, which is wider than the fonts that pages are shown in.
_EM = {
    0.29: "ijlIJ",
    0.33: " ,./:;\\|‘’·",
    0.4: "()[]{}tfr!-",
    0.5: "*_`–sz\"'“”?",
    0.57: "cLFkvxy",
    0.62: "PTYaoeéESbdghnpqu$0123456789τ",
    0.69: "KABCRVXZαΔ",
    0.76: "UHNDGOQ&",
    0.84: "w#+<=>^~−×→≥≤",
    1.0: "M%mW@…½",
}
_WIDTHS = {letter: em for em, letters in _EM.items() for letter in letters}


def across(text: str, size: float = SIZE) -> float:
    """About how wide the longest line of a text is."""
    return size * max(sum(map(_em, line)) for line in text.split("\n"))


def _em(letter: str) -> float:
    known = _WIDTHS.get(letter)
    if known is None:
        known = 1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.65
    return known


def room(text: str, size: float = SIZE, turn: float = 0) -> tuple[float, float]:
    """Width and height of a text's box, turned by so many degrees.

    >>> room("", 10), room("MM\\nM", 10), room("MM", 10, 90)
    ((0.0, 12.0), (20.0, 24.0), (12.0, 20.0))
    """
    wide, tall = across(text, size), size * LINE_HEIGHT * (1 + text.count("\n"))
    sine, cosine = math.sin(math.radians(turn)), math.cos(math.radians(turn))
    box = wide * cosine + tall * sine, wide * sine + tall * cosine
    return round(box[0], 6), round(box[1], 6)


def written(
    x: float,
    y: float,
    text: str,
    colour: str = INK,
    size: float = SIZE,
    anchor: str = "start",
    turn: float = 0,
    weight: str = "",
) -> str:
    """A text whose first line stands on y; turned, it rises to the right."""
    style = f"font-size:{size:g}px;fill:{colour}" + (f";font-weight:{weight}" if weight else "")
    turned = f' transform="rotate({-turn:g} {x:.2f} {y:.2f})"' if turn else ""
    lines = text.split("\n")
    said = html.escape(lines[0], quote=False)
    for line in lines[1:]:
        step = size * LINE_HEIGHT
        said += f'<tspan x="{x:.2f}" dy="{step:g}">{html.escape(line, quote=False)}</tspan>'
    return (
        f'<text x="{x:.2f}" y="{y:.2f}" style="{style}" text-anchor="{anchor}"{turned}>'
        f"{said}</text>"
    )


def middle(y: float, text: str, size: float = SIZE) -> float:
    """Where the first line of a text stands whose lines are to be centred on y."""
    return y + 0.36 * size - size * LINE_HEIGHT * text.count("\n") / 2
