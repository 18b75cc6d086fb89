"""What a notebook shows of an explanation and of an audit: HTML without a script, text escaped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from heedful.report.html import asset, template
from heedful.report.page import shown_tests

OPEN = 2
"""Methods that are shown at once; the others are folded."""
_COLOURS = re.compile(r"^:root \{(.*?)^\}.*?^@media (.*?) \{ :root\S+ \{(.*?)^\} \}", re.M | re.S)


def explanation_card(explanation: Mapping[str, Any], sentences: Mapping[str, str]) -> str:
    """The text once for each method, words shaded by their importance as on the page.

    `sentences` say what each method claims.
    """
    gaps, words = _as_written(explanation)
    methods = []
    for name, values in explanation["importance"].items():
        top = max((abs(value) for value in values if value is not None), default=0.0) or 1.0
        shades = [0.0 if value is None else value / top for value in values]
        rows = zip(gaps, words, shades, values, strict=True)
        methods.append({"name": name, "sentence": sentences.get(name, ""), "words": list(rows)})
    return _card(
        "explanation.html",
        explanation=explanation,
        probabilities=sorted(explanation["probabilities"].items(), key=lambda one: -one[1]),
        shown=methods[:OPEN],
        folded=methods[OPEN:],
        is_signed=any(x and x < 0 for v in explanation["importance"].values() for x in v),
    )


def verdict_card(verdict: Mapping[str, Any], documents: int, quality: str, page: str) -> str:
    """The verdict's word, the tests behind it with their intervals, and where the page is."""
    return _card(
        "verdict_card.html",
        verdict=verdict,
        tests=shown_tests(verdict),
        documents=documents,
        quality=quality,
        page=page,
    )


def colours() -> str:
    """The page's colours, light and dark, for what lies inside an element of class `heedful`."""
    found = _COLOURS.search(asset("page.css"))
    assert found is not None
    light, is_dark, dark = found.groups()
    return f".heedful {{{light}}}\n@media {is_dark} {{ .heedful {{{dark}}} }}\n"


def _card(name: str, **filled: Any) -> str:
    return template(name).render(style=Markup(colours() + asset("notebook.css")), **filled)


def _as_written(explanation: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[str]]:
    """What stands before each unit, and the unit, as in the text; else as the model reads it."""
    text, spans, units = explanation["text"], explanation["spans"], explanation["units"]
    if len(spans) != len(units):
        return [" "] * len(units), units
    ends = [0, *(stop for _, stop in spans)]
    gaps = [text[end:start] for end, (start, _) in zip(ends, spans, strict=False)]
    return gaps, [text[start:stop] for start, stop in spans]
