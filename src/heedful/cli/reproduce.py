"""`heedful reproduce`: the tables, figures and claims of a study rebuilt."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import heedful
from heedful.cli.options import AsJson, DataRoot, Device, On, parts, tell
from heedful.studies import STUDIES


def reproduce(
    study: Annotated[str, typer.Argument(help=f"{', '.join(STUDIES)}, or all.")],
    only: Annotated[
        str, typer.Option("--only", help="Ids of artifacts and claims, separated by commas.")
    ] = "",
    scale: Annotated[str, typer.Option("--scale", help="smoke or paper.")] = "smoke",
    corpora: Annotated[
        str, typer.Option("--corpora", help="Corpora to use, separated by commas.")
    ] = "",
    seeds: Annotated[int | None, typer.Option("--seeds", help="How many seeds.")] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("results"),
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            help="Processes that compute side by side; as many as cores on a GPU or for all, else "
            "one.",
        ),
    ] = None,
    figures: Annotated[bool, typer.Option(help="Draw figures and the index page.")] = True,
    compute: Annotated[
        bool, typer.Option(help="Compute missing steps; without, only redraw finished ones.")
    ] = True,
    data_root: DataRoot = None,
    device: Device = "auto",
    on: On = None,
    json: AsJson = False,
) -> None:
    """Rebuild the tables, figures and claims of a study."""
    asked: dict[str, Any] = {
        "only": parts(only), "scale": scale, "corpora": parts(corpora), "seeds": seeds, "out": out,
        "data_root": data_root,
    }  # fmt: skip
    if on and compute:
        from heedful.cluster.connection import reaching

        with reaching(on, "heedful.cluster.studies") as cluster:
            from heedful.cluster.studies import compute_on
            from heedful.reproduction.request import StudyRequest

            compute_on(study, cluster, StudyRequest(**asked, device=device), show=True)
        device = "cpu" if device == "cuda" else device  # the card was the cluster's
        jobs = 1
    done = heedful.reproduce(
        study, jobs=jobs, figures=figures, compute=compute, device=device, show=True, **asked
    )
    tell(done, json)
