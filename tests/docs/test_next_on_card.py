"""The table of what to run next on a card: jobs of the code, verdicts of the published claims."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from heedful.cli import app
from heedful.reproduction.results import Step
from heedful.studies import study_of

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reproducing.md").read_text()
_, _, SECTION = PAGE.partition("\n## What to run next on a card\n")
SECTION = SECTION.partition("\n## ")[0]
ROWS = re.findall(r"^\| `([^`]+)`[^|]*\| ([^|]+) \|", SECTION, re.MULTILINE)
COMMANDS = [
    command
    for block in re.findall(r"```console\n(.*?)```", SECTION, re.DOTALL)
    for line in block.splitlines()
    for command in line.split(" && ")
    if command.startswith("heedful ")
]
CALL = re.findall(r"```bash\n(.*?)```", SECTION, re.DOTALL)[0]
LONGEST_CALL = 2_000
"""Characters that a call of the card may have."""


def closed(steps: Iterable[Step[Any]], found: set[str] | None = None) -> set[str]:
    """The names of steps and of all that they need."""
    found = set() if found is None else found
    for step in steps:
        if step.name not in found:
            found.add(step.name)
            closed(step.needs, found)
    return found


def computed(study: str, corpora: str, parts: str = "") -> set[str]:
    """What a job leaves behind."""
    found = study_of(study)
    plan = found.plan("paper", corpora.split(","))
    artifacts, claims = found.chosen(parts.split(",") if parts else ())
    return closed(plan.steps([*artifacts, *claims]))


def test_the_verdicts_of_a_row_are_those_that_wait_for_no_other_job() -> None:
    assert len(ROWS) >= 10
    done: dict[tuple[str, str], set[str]] = {}
    counted: dict[tuple[str, str], set[str]] = {}
    for job, told in ROWS:
        study, *more = job.split(" ")
        if not more:
            assert told.startswith("none undecided")
            continue
        claims = json.loads((ROOT / f"docs/results/{study}/claims.json").read_text())
        by_id = {claim.id: claim for claim in study_of(study).claims}
        new = 0
        for corpus in more[0].split(","):
            place = study, corpus
            # Parts that are named for several corpora may be another job's for one of them.
            have = done.setdefault(place, set())
            have |= computed(study, corpus, *more[1:])
            plan = study_of(study).plan("paper", [corpus])
            may = {
                one["id"]
                for one in claims
                if one["corpus"] == corpus and one["verdict"] == "undecided"
                if {step.name for step in by_id[one["id"]].needs(plan, corpus)} <= have
            }
            new += len(may - counted.setdefault(place, set()))
            counted[place] |= may
        assert told.split(",")[0].split(" ")[0] == str(new), job


def test_every_command_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    import heedful

    asked: list[tuple[str, dict[str, Any]]] = []

    def reproduce(study: str, **options: Any) -> None:
        asked.append((study, options))
        raise typer.Exit

    monkeypatch.setattr(heedful, "reproduce", reproduce, raising=False)
    for command in COMMANDS:
        assert CliRunner().invoke(app, shlex.split(command)[1:]).exit_code == 0, command
    assert len(asked) == len(COMMANDS) >= 5
    for study, options in asked:
        found = study_of(study)
        found.chosen(options["only"])
        assert found.plan("paper", options["corpora"]).corpora


def test_the_call_fits_and_its_jobs_are_the_first_of_the_table() -> None:
    assert len(CALL) <= LONGEST_CALL
    subprocess.run(["bash", "-n"], input=CALL, text=True, check=True)
    jobs = re.findall(r'"(\w+ [\w,-]+ [\w,-]+)"', CALL)
    assert jobs == [job for job, _ in ROWS[: len(jobs)]]
    assert len(jobs) == 3


def test_no_study_is_left_out() -> None:
    claims = ROOT.glob("docs/results/*/claims.json")
    waiting = {
        path.parent.name
        for path in claims
        if any(one["verdict"] == "undecided" for one in json.loads(path.read_text()))
    }
    assert waiting - {job.split(" ")[0] for job, _ in ROWS} <= {"polarity"}
