"""The live page and its two files: the report's own components, and what is live about them."""

from __future__ import annotations

from collections.abc import Sequence

from heedful import __version__
from heedful.report.html import asset, bundled, template

SCRIPTS = (
    "decision.js", "words.js", "flow.js", "heads.js", "panel.js", "list.js", "curve.js",
    "export.js", "live.js", "explore.js", "start.js",
)  # fmt: skip


def explore_page(models: Sequence[str]) -> str:
    """The page; all that is about a text is put into it by the script."""
    return template("explore.html").render(models=models, version=__version__)


def explore_script() -> str:
    """All scripts of the page as one file."""
    return bundled(SCRIPTS)


def explore_style() -> str:
    """The report's style, and what is added to it."""
    return asset("page.css") + asset("explore.css")
