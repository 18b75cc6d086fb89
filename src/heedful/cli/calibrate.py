"""`heedful calibrate`: the verdict tested on models whose right answer is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import heedful
from heedful.cli.options import AsJson, Device, tell


def calibrate(
    scale: Annotated[str, typer.Option("--scale", help="quick or full.")] = "quick",
    out: Annotated[Path, typer.Option("--out", help="Folder for the tables.")] = Path(
        "results/calibration"
    ),
    seeds: Annotated[int | None, typer.Option("--seeds", help="How many seeds.")] = None,
    device: Device = "auto",
    json: AsJson = False,
) -> None:
    """Test the verdict on models whose right answer is known."""
    done = heedful.calibrate(out, scale=scale, seeds=seeds, device=device, show=True)
    tell(done, json)
