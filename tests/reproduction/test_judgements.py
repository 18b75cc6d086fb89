"""Verdicts of an earlier run beside those of a new one."""

from pathlib import Path

import pytest

from heedful.reproduction.judgements import entry, merged
from heedful.reproduction.ledger import above, judge
from heedful.reproduction.study import Claim
from heedful.runs import write_json
from heedful.statistics import Estimate
from heedful.studies.faithful.study import STUDY


def verdict(word: str, reason: str, corpus: str = "sst") -> dict[str, str]:
    return {"id": "FAI-1", "corpus": corpus, "verdict": word, "reason": reason}


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("confirmed", verdict("not measurable", "A: not computed yet"), "old"),
        ("confirmed", verdict("not measurable", "no document of that kind"), "new"),
        ("not measurable", verdict("not measurable", "A: not computed yet"), "new"),
        ("not measurable", verdict("refuted", "-1"), "new"),
        ("confirmed", verdict("undecided", "0"), "new"),
    ],
)
def test_an_old_verdict_stays_only_where_the_new_one_waits_for_results(
    tmp_path: Path, old: str, new: dict[str, str], kept: str
) -> None:
    path = tmp_path / "claims.json"
    write_json(path, [verdict(old, "old")])
    (found,) = merged(path, [new], STUDY, keep=False, waiting=["not computed yet"])
    assert found == (new if kept == "new" else verdict(old, "old"))


def test_verdicts_on_corpora_not_asked_for_stay_beside_the_new_ones(tmp_path: Path) -> None:
    path = tmp_path / "claims.json"
    write_json(path, [verdict("confirmed", "old", "ag"), verdict("confirmed", "old")])
    found = merged(path, [verdict("refuted", "new")], STUDY, keep=True)
    assert [(one["corpus"], one["reason"]) for one in found] == [("sst", "new"), ("ag", "old")]


def test_the_verdict_over_all_corpora_stays_with_that_of_a_corpus_which_waits(
    tmp_path: Path,
) -> None:
    path = tmp_path / "claims.json"
    old = [verdict("confirmed", "1"), verdict("refuted", "2", "ag"), verdict("refuted", "3", "all")]
    write_json(path, old)
    waits = verdict("not measurable", "not computed yet", "ag")
    new = [verdict("confirmed", "4"), waits, verdict("confirmed", "5", "all")]
    found = merged(path, new, STUDY, keep=False, waiting=["not computed yet"])
    assert [one["reason"] for one in found] == ["4", "2", "3"]


def test_an_entry_has_all_fields_and_smoke_says_so():
    claim = Claim("X-1", "c", "w", "s", "0.5", above(0), seeds=2)
    judgement = judge(Estimate(2.0, 1, 3, 50, "bootstrap-t"), above(0))
    found = entry(claim, STUDY.plan("smoke"), "sst", judgement, ["sst"])
    assert list(found) == [
        "id", "claim", "where", "corpus", "stand_in_for", "statistic", "side", "paper", "ours",
        "interval", "n", "seeds", "scale", "commit", "verdict", "reason", "parts",
    ]  # fmt: skip
    assert (found["ours"], found["interval"], found["n"]) == (2.0, [1, 3], 50)
    assert (found["verdict"], found["side"]) == ("confirmed", "> 0")
    assert found["reason"].startswith("smoke scale")
