"""The steps of a study on Ray; the tables, claims and page are made here afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from heedful.cluster.engine import Doing, Outcome, Workload, finish
from heedful.jobs.decider import device_of
from heedful.reproduction.workers import wanted_steps
from heedful.runs import locked, remove_leftovers
from heedful.studies import STUDIES, study_of


def compute_on(
    study: str,
    on: str,
    *,
    only: Iterable[str] = (),
    scale: str = "smoke",
    corpora: Iterable[str] = (),
    seeds: int | None = None,
    out: Path | str = "runs/reproduce",
    data_root: Path | str | None = None,
    device: str = "cpu",
    show: bool = False,
) -> dict[str, Outcome]:
    """What became of the steps that were left to do, of one study or of `all`.

    Options are those of `heedful.reproduce`, which finds the steps done afterwards.
    """
    found: dict[str, Outcome] = {}
    for name in STUDIES if study == "all" else [study]:
        folder = Path(out).resolve() / study_of(name).name
        task: dict[str, Any] = {
            "module": STUDIES[name], "only": list(only), "scale": scale, "corpora": list(corpora),
            "seeds": seeds, "out": str(Path(out).resolve()),
            "device": device if device == "cuda" else str(device_of(device)),
            "data_root": None if data_root is None else str(Path(data_root).resolve()),
        }  # fmt: skip
        with locked(folder):
            remove_leftovers(folder)
            results, wanted = wanted_steps(task)
            todo = results.planned(wanted)
            needs = {one.name: [need.name for need in one.needs] for one in todo}
            names = [one.name for one in todo]
            pieces = Workload(__name__, task, names, needs, results.seconds())
            found |= finish(pieces, on, folder, task["device"], show)
    return found


def doing(task: Mapping[str, Any]) -> Doing:
    """What does a step by its name, in a worker: the study is imported once."""
    results, wanted = wanted_steps(task)
    steps = {one.name: one for one in results.planned(wanted)}

    def do(name: str) -> None:
        results[steps[name]]

    return do
