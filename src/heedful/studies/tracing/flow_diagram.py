"""How attention flows through the heads and layers of one sentence, as a drawing.

See docs/studies/tracing.md, "Flow diagram".

Columns are heads, rows are layers, the lowest row of dots is the input. A line is as dark as the
traced attention that goes along it, a dot as dark as what it holds. What is drawn is plain data,
which `jobs.instance_layers` describes.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

SPACING, GAP, SIDE = 9.0, 14.0, 34.0
"""Between two dots, between two heads, and room for the names of the layers."""
FOOT = 120.0
"""Room under the input for slanted words of 14 letters, the longest that are written."""
FLOOR = 0.003
"""Darkness of an edge that carries nothing; below TOO_FAINT nothing is drawn."""
TOO_FAINT = 0.01
STEPS = 24
"""Shades of lines: all lines of one shade in a cell are one path."""
INK, SOFT = "var(--ink, #1d1c1a)", "var(--soft, #5f5c55)"
Floats = Float[np.ndarray, "token"]


def _clamped(scores: Floats) -> Floats:
    return np.asarray(np.clip(scores, 0, 1))


def _of_largest(scores: Floats) -> Floats:
    return np.asarray(scores / scores.max())


def _softmax(scores: Floats) -> Floats:
    raised = np.exp(scores - scores.max())
    return np.asarray(raised / raised.sum())


DARKNESS: dict[str, Callable[[Floats], Floats]] = {
    "clamp": _clamped,
    "max": _of_largest,
    "softmax": _softmax,
}
"""How the score of a word becomes its darkness."""


def raw(flow: Mapping[str, Any]) -> dict[str, Any]:
    """The same text with each layer's attention as it is, nothing handed down (`attention`).

    A dot of the top row holds its pooling weight, any other what it receives on average.
    """
    attention = np.asarray(flow["attention"])
    heads = attention.shape[1]
    top = np.tile(np.asarray(flow["pooling"]), (1, heads, 1))
    shares = np.concatenate([attention.mean(2), top])
    return {**flow, "flow": attention.tolist(), "shares": shares.tolist()}


def draw(
    flow: Mapping[str, Any],
    title: str = "Traced attention",
    darkness: str = "max",
    has_pooling: bool = True,
) -> str:
    """The flow diagram as an SVG element; text is escaped."""
    shares, edges = np.asarray(flow["shares"]), np.asarray(flow["flow"])
    layers, heads, count, _ = edges.shape
    width = SPACING * max(count - 1, 1)
    place = SIDE + np.arange(heads) * (width + GAP)
    total = SIDE + heads * width + (heads - 1) * GAP + 12
    fan = 0.8 * width if has_pooling else 0.0
    top = 30 + fan
    bottom = top + layers * width
    parts = [_axis(place, width, layers, top, bottom, total)]
    for head, left in enumerate(place.tolist()):
        dots = left + SPACING * np.arange(count)
        if has_pooling:
            parts.append(_fan(dots, np.asarray(flow["pooling"]), left + width / 2, top, fan))
        for layer in range(layers):
            low = bottom - layer * width
            parts.append(
                f'<g data-head="{head}" data-layer="{layer + 1}">'
                f"{_edges(edges[layer, head], dots, low, width)}</g>"
            )
        for height in range(layers + 1):
            parts.append(_dots(dots, bottom - height * width, shares[height, head]))
    scores = shares[0].sum(0)
    parts.append(_words(flow["words"], scores, shares[0], place, bottom, total, darkness))
    return (
        f'<svg viewBox="0 0 {total:.0f} {bottom + FOOT:.0f}" role="img" font-size="11" '
        f'style="font-family:Georgia,serif"><title>{html.escape(title)}</title>{"".join(parts)}</svg>'
    )


def _axis(place: Floats, width: float, layers: int, top: float, bottom: float, total: float) -> str:
    heads = "".join(
        _text(left + width / 2, 26, str(number)) for number, left in enumerate(place.tolist(), 1)
    )
    rows = ["input", *map(str, range(1, layers + 1))]
    names = "".join(
        _text(SIDE - 8, bottom - number * width + 4, name, "end")
        for number, name in enumerate(rows)
    )
    turned = f'transform="rotate(-90 8 {(top + bottom) / 2:.1f})"'
    return (
        _text(total / 2, 11, "Heads") + heads + names
        + f'<text x="8" y="{(top + bottom) / 2:.1f}" text-anchor="middle" {turned} '
        f'style="fill:{SOFT}">Layers</text>'
    )  # fmt: skip


def _edges(flow: Float[np.ndarray, "query key"], dots: Floats, low: float, width: float) -> str:
    """Lines from each lower dot (key) to each upper one (query), one path per shade."""
    opacity = flow * (1 - FLOOR) + FLOOR
    shade = np.ceil(STEPS * opacity).astype(int)
    found = []
    shade[opacity < TOO_FAINT] = 0
    for step in np.unique(shade[shade > 0]).tolist():
        lines = "".join(
            f"M{dots[key]:.1f} {low:.1f}L{dots[query]:.1f} {low - width:.1f}"
            for query, key in zip(
                *np.nonzero((shade == step) & (opacity >= TOO_FAINT)), strict=True
            )
        )
        found.append(_path(lines, (step - 0.5) / STEPS))
    return "".join(found)


def _path(lines: str, opacity: float, thickness: float = 1.5) -> str:
    return (
        f'<path d="{lines}" fill="none" stroke-width="{thickness}" stroke-opacity="{opacity:.3f}" '
        f'style="stroke:{INK}"/>'
    )


def _dots(dots: Floats, y: float, shares: Floats) -> str:
    return "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill-opacity="{max(min(share, 1), 0.04):.3f}" '
        f'style="fill:{INK}"/>'
        for x, share in zip(dots.tolist(), shares.tolist(), strict=True)
    )


def _fan(dots: Floats, pooling: Floats, x: float, top: float, height: float) -> str:
    return "".join(
        _path(f"M{dot:.1f} {top:.1f}L{x:.1f} {top - height + 6:.1f}", max(share, FLOOR))
        for dot, share in zip(dots.tolist(), pooling.tolist(), strict=True)
        if share >= TOO_FAINT
    )


def _words(
    words: Sequence[str],
    scores: Floats,
    by_head: Float[np.ndarray, "head token"],
    place: Floats,
    bottom: float,
    total: float,
    darkness: str,
) -> str:
    """The words at a fixed pitch under the grid, each joined to its dot in every head."""
    pitch = (total - SIDE) / max(len(words), 1)
    middle = SIDE + pitch * (np.arange(len(words)) + 0.5)
    shade = DARKNESS[darkness](scores)
    found = []
    for token, word in enumerate(words):
        for left, share in zip(place.tolist(), by_head[:, token].tolist(), strict=True):
            if share >= TOO_FAINT:
                x = left + SPACING * token
                line = f"M{x:.1f} {bottom:.1f}L{middle[token]:.1f} {bottom + 52:.1f}"
                found.append(_path(line, min(share, 1), 1.0))
        x, y = middle[token], bottom + 64
        found.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="end" '
            f'transform="rotate(-35 {x:.1f} {y:.1f})" fill-opacity="{max(shade[token], 0.12):.3f}" '
            f'style="fill:{INK}">{html.escape(_short(word))}<title>{html.escape(word)}: '
            f"{scores[token]:.3f}</title></text>"
        )
    return "".join(found)


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" style="fill:{SOFT}">'
        f"{html.escape(text)}</text>"
    )


def _short(word: str) -> str:
    return word if len(word) <= 14 else word[:13] + "…"


def schematic() -> str:
    """Fig. 2: the forward pass of one head over three layers, and its trace back, side by side."""
    tokens, layers = 4, 3
    attention = np.full((layers, tokens, tokens), 0.08)
    for layer, strong in enumerate((1, 1, 2)):
        attention[layer, :, strong] += 0.5
        attention[layer, np.arange(tokens), np.arange(tokens)] += 0.18
    attention /= attention.sum(-1, keepdims=True)
    pooling = np.array([0.1, 0.2, 0.6, 0.1])
    shares = [pooling]
    for layer in range(layers - 1, -1, -1):
        shares.insert(0, shares[0] @ attention[layer])
    gap, step = 46.0, 52.0
    parts = []
    for panel, (title, is_traced) in enumerate((("forward", False), ("traced back", True))):
        left = 70 + panel * (gap * tokens + 60)
        dots = left + gap * np.arange(tokens)
        bottom = 60 + step * layers
        parts.append(_text(left + gap * (tokens - 1) / 2, 16, title))
        for layer in range(layers):
            flow = attention[layer] * (shares[layer + 1][:, None] if is_traced else 1)
            parts.append(_edges(flow, dots, bottom - step * layer, step))
        for height in range(layers + 1):
            held = shares[height] if is_traced else np.ones(tokens)
            parts.append(_dots(dots, bottom - step * height, held))
            name = "input" if height == 0 else f"layer {height}"
            if not panel:
                parts.append(_text(left - 12, bottom - step * height + 4, name, "end"))
        parts.append(_fan(dots, pooling, left + gap * 1.5, 60, 34))
    size = 70 + 2 * (gap * tokens + 60)
    return _drawing(parts, size - 60, 70 + step * layers + 20, "One head, forward and traced back")


def architecture() -> str:
    """Fig. 1: the two models as boxes, from word vectors to the answer."""
    shared = ("word vectors, frozen", "6 × encoder layer, 8 heads", "pooling attention")
    columns: Iterable[tuple[str, tuple[str, ...]]] = (
        ("classification", (*shared, "MLP 300-64-5", "class")),
        ("time series", (*shared, "LSTM over windows", "MLP 300-64-1", "rating per window")),
    )
    parts = []
    for number, (title, boxes) in enumerate(columns):
        left = 20 + 250 * number
        parts.append(_text(left + 105, 18, title))
        for step, name in enumerate(boxes):
            y = 300 - 50 * step
            parts.append(
                f'<rect x="{left}" y="{y}" width="210" height="30" rx="4" fill="none" '
                f'style="stroke:{SOFT}"/>' + _text(left + 105, y + 20, name)
            )
            if step:
                parts.append(_path(f"M{left + 105} {y + 50}L{left + 105} {y + 31}", 0.8))
        if number:
            parts.append(_text(left + 105, 346, "the words of each 5-second window"))
        else:
            parts.append(_text(left + 105, 346, "the words of a sentence"))
    return _drawing(parts, 500, 360, "The two models")


def _drawing(parts: Sequence[str], width: float, height: float, title: str) -> str:
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-size="12">'
        f"<title>{html.escape(title)}</title>{''.join(parts)}</svg>"
    )
