"""`heedful sheet`: the evidence of an audit on one page, to file or to put into a model card."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import AsJson, tell
from heedful.cli.report import audited_run
from heedful.errors import intact


def sheet(
    run: Annotated[Path, typer.Argument(help="A run folder that was audited.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the sheet; the run's own if none.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Write the evidence on one page, to file or to print.

    HTML to print as PDF, and Markdown for a model card.
    """
    from heedful.runs import held

    folder = audited_run(run)
    from heedful.report.sheet import render_sheet

    with held(folder.path), intact(folder.path):
        made = render_sheet(folder.path, out)
    tell(made, json)
