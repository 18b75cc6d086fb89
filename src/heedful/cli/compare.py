"""`heedful compare`: the verdicts of several runs side by side in one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import heedful
from heedful.cli.options import AsJson, tell
from heedful.errors import intact


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run folders that were audited.")],
    out: Annotated[Path, typer.Option("--out", help="The page to write.")] = Path(
        "comparison.html"
    ),
    json: AsJson = False,
) -> None:
    """Put the verdicts of several runs side by side in one page."""
    with intact("One of " + ", ".join(map(str, runs))):
        tell(heedful.compare(runs, out), json)
