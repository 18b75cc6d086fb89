"""`heedful prepare`: corpora tokenised once, to files that training elsewhere can start from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import AsJson, DataRoot, Seed, Vectors, print_json
from heedful.errors import visible


def prepare(
    names: Annotated[list[str], typer.Argument(help="Corpora by name; see `heedful corpora`.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the prepared files.")] = Path(
        "prepared"
    ),
    vectors: Vectors = None,
    min_count: Annotated[
        int | None, typer.Option(help="Keep words seen at least so often; else as the recipe says.")
    ] = None,
    data_root: DataRoot = None,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Tokenise corpora once, for training elsewhere to start from."""
    from heedful.corpora import load_corpus, recipe_of
    from heedful.corpora import prepare as prepare_corpus

    done = []
    for name in names:
        found = load_corpus(name, data_root=data_root, seed=seed)
        folder = out / re.sub(r"[^\w.-]+", "-", name)
        least = recipe_of(name).min_count if min_count is None else min_count
        prepare_corpus(found, folder, vectors=vectors, min_count=least)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        done.append({"corpus": name, "folder": str(folder), "bytes": size})
        if not json:
            typer.echo(visible(f"{name}: {folder} ({size / 1e6:.1f} MB)"))
    if json:
        print_json(done)
