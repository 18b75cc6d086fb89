"""`heedful align`: which words of two files go together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import AsJson, tell


def align(
    source: Annotated[Path, typer.Argument(help="Source sentences, one per line, words apart.")],
    target: Annotated[Path, typer.Argument(help="Their translations, line by line.")],
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the alignments and tables.")
    ] = Path("alignment"),
    iterations: Annotated[
        int, typer.Option("--iterations", help="Of expectation maximisation; 1 gives the counts.")
    ] = 5,
    empty_word: Annotated[
        bool, typer.Option(help="Let target words come from no source word.")
    ] = True,
    lower: Annotated[bool, typer.Option("--lower", help="Read both files in lower case.")] = False,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", help="Leave out pairs with a longer line.")
    ] = 200,
    json: AsJson = False,
) -> None:
    """Align the words of two files: which goes with which.

    Each target word gets the source word that it goes with, by IBM Model 1.
    """
    from heedful.jobs.align import align as align_job

    done = align_job(
        source,
        target,
        out,
        iterations=iterations,
        has_empty_word=empty_word,
        lower=lower,
        max_tokens=max_tokens,
        show=True,
    )
    tell(done, json)
