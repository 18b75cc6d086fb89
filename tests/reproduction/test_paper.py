from __future__ import annotations

from pathlib import Path

import pytest

from heedful.reproduction.ledger import above, below, within
from heedful.reproduction.paper import Paper
from heedful.reproduction.study import Made, Source, Study
from heedful.studies import STUDIES, study_of

PAPER = """
reference = "Somebody, Something, 2020."

[[deviation]]
text = "{count} runs."

[[deviation]]
text = "Small."
scale = "smoke"

[stands_for]
ours = "Theirs"
made = "None of theirs"

[artifacts.T1]
title = "A table"
where = "Table 1"
kind = "table"

[claims.C-1]
sentence = "It grows."
where = "section 2"
statistic = "slope"
over = "all"
side = "> 0"
[claims.C-1.paper]
Theirs = "0.3"

[claims.C-2]
sentence = "Both grow."
where = "section 3"
statistic = "slopes"
paper = "stated"
[claims.C-2.side]
"{first|second} slope" = "< 1"
"gap, {a|b}{1|2}" = "size ≤ 2"

[printed]
sizes = '''
corpus words
ours   12
made   -
'''
"""


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    (tmp_path / "paper.toml").write_text(PAPER, "utf-8")
    return Paper.beside(str(tmp_path / "printed.py"))


def test_a_claim_has_its_words_and_the_value_of_the_corpus_that_ours_stands_for(
    paper: Paper,
) -> None:
    claim = paper.claim("C-1", None)
    assert (claim.sentence, claim.where, claim.over) == ("It grows.", "section 2", "all")
    assert claim.side == above(0)
    parts = paper.claim("C-2", None).side
    assert isinstance(parts, dict)
    assert list(parts) == [
        "first slope",
        "second slope",
        "gap, a1",
        "gap, a2",
        "gap, b1",
        "gap, b2",
    ]
    assert parts["second slope"] == below(1)
    assert parts["gap, b1"] == within(2)
    assert claim.paper == {"ours": "0.3"}
    assert claim.paper_value("made") == "not given"


def test_an_artifact_has_its_words_and_a_table_its_numbers(paper: Paper) -> None:
    artifact = paper.artifact("T1", lambda views: Made())
    assert (artifact.title, artifact.kind, artifact.paper) == ("A table", "table", "")
    sizes = paper.printed("sizes", ["corpus"])
    assert sizes["words"].tolist()[0] == 12
    assert sizes["words"].isna().tolist() == [False, True]


def test_deviations_are_those_of_the_scale_with_their_numbers(paper: Paper) -> None:
    study = Study("s", "S", "r", (Source("ours", "O"),), (), (), {"smoke": 1, "paper": 1})
    assert paper.deviations(study.plan("smoke"), count=3) == ("3 runs.", "Small.")
    assert paper.deviations(study.plan("paper"), count=5) == ("5 runs.",)


@pytest.mark.parametrize("name", [name for name in STUDIES if name != "quicklook"])
def test_every_word_of_a_paper_belongs_to_an_artifact_or_claim_of_its_study(name: str) -> None:
    import heedful.studies

    said = Paper.beside(str(Path(heedful.studies.__file__).parent / name / "printed.py")).said
    study = study_of(name)
    assert {one.id for one in study.artifacts} == set(said["artifacts"])
    assert {one.id for one in study.claims} == set(said["claims"])
