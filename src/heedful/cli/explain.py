"""`heedful explain`: which words of a text mattered, by every method."""

from __future__ import annotations

from typing import Annotated

import typer

import heedful
from heedful.cli.options import AsJson, Device, Long, Options, RemoteCode, Seed, Site, print_json


def explain(
    text: Annotated[str, typer.Argument(help="The text to explain.")],
    model: Annotated[
        str,
        typer.Option(
            "--model", help="A run folder, or a folder or hf:NAME of a transformers classifier."
        ),
    ],
    text2: Annotated[
        str | None, typer.Option("--text2", help="The second text, for models of pairs.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option("--method", help="Importance method; may be repeated.")
    ] = None,
    site: Site = "pooled",
    long: Long = "beginning",
    trust_remote_code: RemoteCode = False,
    device: Device = "auto",
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Show which words of a text mattered, by every method."""
    options = Options(device=device, site=site, long=long, trust_remote_code=trust_remote_code)
    found = heedful.explain(options.decider(model), text, method or None, seed=seed, second=text2)
    if json:
        print_json(found.to_json())
    else:
        from heedful.report.console import print_explanation

        print_explanation(found.to_json())
