"""What is asked of a study: one value that travels from the command to every worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.jobs.decider import device_of
from heedful.reproduction.results import Results, Step

if TYPE_CHECKING:
    from heedful.reproduction.study import Plan, Study

STEPS = "steps"
"""Folder of the steps' results."""


@dataclass(frozen=True)
class StudyRequest:
    """Which part of a study, at which scale, from where and to where."""

    only: tuple[str, ...] = ()
    """Ids of artifacts and claims; all without."""
    scale: str = "smoke"
    """`smoke` or `paper`."""
    corpora: tuple[str, ...] = ()
    """Those of the scale without."""
    seeds: int | None = None
    """How many; as many as the scale has without."""
    out: Path | str = "runs/reproduce"
    """The results go to a folder of the study's name in it."""
    data_root: Path | str | None = None
    """Where corpora lie."""
    device: str = "cpu"

    def to_json(self) -> dict[str, Any]:
        """The request as plain data."""
        root = None if self.data_root is None else str(self.data_root)
        return asdict(self) | {"out": str(self.out), "data_root": root}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> StudyRequest:
        """The request that `to_json` told."""
        lists = {name: tuple(told[name]) for name in ("only", "corpora")}
        return cls(**{**told, **lists})

    def here(self) -> StudyRequest:
        """The request with a device of this machine in the place of `auto`."""
        return replace(self, device=str(device_of(self.device)))

    def folder(self, study: Study) -> Path:
        """Where the study's results go."""
        return Path(self.out) / study.name

    def plan(self, study: Study) -> Plan:
        """The study's plan for it."""
        return study.plan(self.scale, self.corpora, self.seeds, self.data_root, self.device)

    def steps(self, study: Study) -> tuple[Results, list[Step[Any]]]:
        """The results, and the steps that the artifacts and claims asked for need."""
        artifacts, claims = study.chosen(self.only)
        results = Results(self.folder(study) / STEPS, self.device)
        return results, self.plan(study).steps([*artifacts, *claims])
