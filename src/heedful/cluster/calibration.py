"""The mechanisms of a calibration on Ray; borders and tables are made here afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.calibration.calibrate import SCALES, measured_once
from heedful.cluster.connection import Cluster
from heedful.cluster.engine import Doing, Outcome, Workload, finish
from heedful.errors import unknown
from heedful.runs import locked


def measure_on(
    cluster: Cluster, out: str | Path, *, scale: str = "quick", seed: int = 0, show: bool = False
) -> dict[str, Outcome]:
    """Measures every mechanism of the scale once; `heedful.calibrate` finds them measured.

    Decoders whose sources are known are measured by the process that asks, a few minutes of them.
    """
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    folder = Path(out).resolve()
    task = {"out": str(folder), "scale": scale, "seed": seed}
    with locked(folder):
        return finish(Workload(__name__, task, SCALES[scale].names()), cluster, folder, show=show)


def doing(task: Mapping[str, Any]) -> Doing:
    """What measures a mechanism by its name, in a worker."""

    def do(name: str) -> None:
        measured_once(name, Path(task["out"]), task["seed"], SCALES[task["scale"]])

    return do
