"""The commands: a thin skin over the functions of `heedful.jobs`."""

from __future__ import annotations

import typer

from heedful.cli import (
    align,
    audit,
    calibrate,
    compare,
    corpora,
    explain,
    explore,
    lexicon,
    narratives,
    prepare,
    report,
    reproduce,
    schema,
    sheet,
    sweep,
    train,
    translator,
)

app = typer.Typer(
    name="heedful",
    help="May I show this model's attention as the reason for its decision?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.command()(audit.audit)
app.command()(train.train)
app.command()(report.report)
app.command()(sheet.sheet)
app.command()(explain.explain)
app.command()(explore.explore)
app.command()(lexicon.lexicon)
app.command()(narratives.narratives)
app.command()(compare.compare)
app.command()(calibrate.calibrate)
app.command()(corpora.corpora)
app.command()(prepare.prepare)
app.command()(align.align)
app.command()(translator.translator)
app.command()(reproduce.reproduce)
app.command()(schema.schema)
app.command()(sweep.sweep)

__all__ = ["app"]
