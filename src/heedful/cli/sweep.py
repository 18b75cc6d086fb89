"""`heedful sweep`: a grid of models, corpora, seeds and settings, audited and put side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import AsJson, DataRoot, Device, On, tell


def sweep(
    grid: Annotated[
        Path,
        typer.Argument(
            help="TOML file: lists of models and corpora; where wanted seeds, named settings, "
            "audits, methods, documents."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for table, page and runs.")] = Path(
        "runs/sweep"
    ),
    data_root: DataRoot = None,
    device: Device = "auto",
    on: On = None,
    json: AsJson = False,
) -> None:
    """Audit every cell of a grid of your own, and compare them."""
    from heedful.cluster.sweep import sweep as swept

    done = swept(grid, out, data_root=data_root, device=device, on=on, show=True)
    tell(done, json)
