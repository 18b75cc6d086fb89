"""`heedful report`: the page written again from a run's findings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import AsJson, print_json
from heedful.errors import InputError, intact, visible

if TYPE_CHECKING:
    from heedful.runs import RunFolder


def report(
    run: Annotated[Path, typer.Argument(help="A run folder that was audited.")],
    json: AsJson = False,
) -> None:
    """Write the page again from a run's findings; no model is run."""
    from heedful.runs import held

    folder = audited_run(run)
    from heedful.report import render

    with held(folder.path), intact(folder.path):
        page = render(folder.path)
    if json:
        print_json({"report": str(page)})
    else:
        typer.echo(visible(f"The page: {page}"))


def audited_run(run: Path) -> RunFolder:
    """The run folder, if it holds a verdict."""
    from heedful.runs import RunFolder

    folder = RunFolder.open(run)
    if not (folder.findings / "verdict.json").is_file():
        from heedful.jobs.decider import refuse_translator

        refuse_translator(run)
        raise InputError(f"{run} was not audited yet; run `heedful audit {run}` first.")
    return folder
