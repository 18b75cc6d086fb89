"""`heedful explain`: which words of a text mattered, by the method that fits the model best."""

from __future__ import annotations

from typing import Annotated

import typer

import heedful
from heedful.cli.options import (
    AsJson,
    Chat,
    Device,
    Labels,
    Long,
    Options,
    PromptFile,
    RemoteCode,
    Seed,
    Site,
    print_json,
)
from heedful.errors import InputError, visible


def explain(
    texts: Annotated[list[str], typer.Argument(metavar="TEXT...", help="The texts to explain.")],
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help="A run folder, the folder of an audit, a folder or hf:NAME of a transformers "
            "classifier, or lm:FOLDER of a language model.",
        ),
    ],
    text2: Annotated[
        str | None, typer.Option("--text2", help="The second text, for models of pairs.")
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", help="An explanation by name; may be repeated."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="By every explanation of this model.")
    ] = False,
    target: Annotated[
        str | None, typer.Option("--target", help="The class whose reasons are asked for.")
    ] = None,
    site: Site = "pooled",
    long: Long = "beginning",
    trust_remote_code: RemoteCode = False,
    prompt: PromptFile = None,
    labels: Labels = None,
    chat: Chat = False,
    device: Device = "auto",
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Show which words of texts mattered.

    By the explanation that an audit of the model ranks first, and by attention; others by name.
    """
    if method and every:
        raise InputError("Give either --method or --all; both say which methods to show.")
    if text2 is not None and len(texts) > 1:
        raise InputError(f"--text2 goes with one text, got {len(texts)}.")
    from heedful.importance import alike, methods_of
    from heedful.jobs.explain import best_first, recommended

    options = Options(
        device=device, site=site, long=long, trust_remote_code=trust_remote_code, prompt=prompt,
        labels=labels, chat=chat,
    )  # fmt: skip
    opened = options.decider(model)
    first = recommended(model, opened)
    usual = list(dict.fromkeys([first.method, "attention"]))
    names = None if every else method or usual
    found = [
        heedful.explain(opened, text, names, target=target, text2=text2, seed=seed).to_json()
        for text in texts
    ]
    if every:
        for one in found:
            one["importance"] = best_first(one["importance"], first.method)
    if json:
        return print_json({"recommended": first._asdict(), "explanations": found})
    from heedful.report.console import print_explanation

    for explanation in found:
        print_explanation(explanation, alike(opened))
    if not method:
        typer.echo(visible(first.why))
    if not (method or every):
        others = len({*methods_of(opened, costly=True)} - {*usual})
        typer.echo(f"{others} more explanations of this model: --all, or by name: --method NAME")
    return None
