"""The table of what paper scale is says what the code would do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from heedful.reproduction.request import StudyRequest
from heedful.studies import STUDIES, study_of

PAGE = Path(__file__).parents[2] / "docs" / "reproducing.md"
ROWS = {
    name: (int(seeds), int(corpora), int(steps))
    for name, seeds, corpora, steps in re.findall(
        r"^\| (\w+)(?: \(ours\))? \| (\d+) \| (\d+) \| (\d+) \|", PAGE.read_text(), re.MULTILINE
    )
}


def test_every_study_has_its_row() -> None:
    assert set(ROWS) == set(STUDIES) - {"quicklook"}


@pytest.mark.parametrize("name", ROWS)
def test_seeds_corpora_and_steps_are_those_of_the_code(name: str, tmp_path: Path) -> None:
    request = StudyRequest(scale="paper", out=tmp_path)
    study = study_of(name)
    results, wanted = request.steps(study)
    plan = request.plan(study)
    found = len(plan.seeds), len(plan.corpora), len(results.planned(wanted))
    assert ROWS[name] == found
