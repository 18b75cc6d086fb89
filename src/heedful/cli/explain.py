"""`heedful explain`: which words of a text mattered, by every method."""

from __future__ import annotations

from typing import Annotated

import typer

from heedful.cli.options import AsJson, Device, Long, RemoteCode, Seed, Site, print_json


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
    from heedful.jobs import explain as explain_job
    from heedful.jobs import load
    from heedful.jobs.subject import deciding

    opened = load(model, device, site=site, long=long, allows_remote_code=trust_remote_code)
    found = explain_job(deciding(opened), text, method or None, seed=seed, second=text2)
    if json:
        return print_json(found.to_json())
    from heedful.report.console import print_explanation

    print_explanation(found.to_json())
    return None
