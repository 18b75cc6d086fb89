"""The steps of a study on Ray; the tables, claims and page are made here afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from heedful.cluster.connection import Cluster
from heedful.cluster.engine import Doing, Outcome, Workload, finish
from heedful.reproduction.request import StudyRequest
from heedful.runs import locked, remove_leftovers
from heedful.studies import names_of, study_of


def compute_on(
    study: str, cluster: Cluster, request: StudyRequest, *, show: bool = False
) -> dict[str, Outcome]:
    """What became of the steps that were left to do, of one study or of `all`.

    `heedful.reproduce` finds the steps done afterwards.
    """
    found: dict[str, Outcome] = {}
    root = None if request.data_root is None else Path(request.data_root).resolve()
    request = replace(request, out=Path(request.out).resolve(), data_root=root)
    request = request if request.device == "cuda" else request.here()  # the cluster's card
    for name in names_of(study, request):
        asked = study_of(name)
        folder = request.folder(asked)
        with locked(folder):
            remove_leftovers(folder)
            results, wanted = request.steps(asked)
            todo = results.planned(wanted)
            needs = {one.name: [need.name for need in one.needs] for one in todo}
            names = [one.name for one in todo]
            task = {"study": name, "request": request.to_json()}
            pieces = Workload(__name__, task, names, needs, results.seconds())
            found |= finish(pieces, cluster, folder, request.device, show)
    return found


def doing(task: Mapping[str, Any]) -> Doing:
    """What does a step by its name, in a worker: the study is imported once."""
    results, wanted = StudyRequest.from_json(task["request"]).steps(study_of(task["study"]))
    steps = {one.name: one for one in results.planned(wanted)}

    def do(name: str) -> None:
        results[steps[name]]

    return do
