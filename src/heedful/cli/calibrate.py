"""`heedful calibrate`: the verdict tested on models whose right answer is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import heedful
from heedful.cli.options import AsJson, On, tell


def calibrate(
    scale: Annotated[str, typer.Option("--scale", help="quick or full.")] = "quick",
    out: Annotated[Path, typer.Option("--out", help="Folder for the tables.")] = Path(
        "results/calibration"
    ),
    jobs: Annotated[int, typer.Option("--jobs", help="Processes beside each other.")] = 1,
    refit: Annotated[
        bool,
        typer.Option(
            "--refit", help="Fit the borders anew, to mechanisms and decoders not held out."
        ),
    ] = False,
    on: On = None,
    json: AsJson = False,
) -> None:
    """Test the verdict on models whose right answer is known."""
    if on:
        from heedful.cluster.connection import reaching

        with reaching(on, "heedful.cluster.calibration") as cluster:
            from heedful.cluster.calibration import measure_on

            measure_on(cluster, out, scale=scale, show=True)
    done = heedful.calibrate(out, scale=scale, jobs=jobs, refit=refit, show=True)
    tell(done, json)
