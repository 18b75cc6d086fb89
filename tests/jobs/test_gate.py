"""The gate: every pair of words, an earlier run, and what a pipeline sees of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import heedful
from heedful.audits.verdict import judge
from heedful.cli import app
from heedful.errors import InputError, VerdictWorse
from heedful.jobs import audit as job
from heedful.jobs.gate import ORDER, Baseline, baseline_of, require
from heedful.jobs.settings import settings_of
from heedful.runs import read_json, write_json


@pytest.mark.parametrize("word", ORDER)
def test_a_worse_word_is_refused_and_no_other(word: str) -> None:
    passing = {"yes": {"yes"}, "partly": {"yes", "partly"}}
    for least, good in passing.items():
        if word in good:
            require(word, least)
        else:
            with pytest.raises(VerdictWorse, match=word.upper()):
                require(word, least)
    for before in ORDER:
        earlier = Baseline("runs/old", before, "same")
        if ORDER.index(word) >= ORDER.index(before):
            require(word, None, earlier, "same")
        else:
            with pytest.raises(VerdictWorse, match=r"in runs/old\.$"):
                require(word, None, earlier, "same")
            with pytest.raises(VerdictWorse, match="which was audited on other documents"):
                require(word, None, earlier, "others")


def test_a_word_that_cannot_be_asked_for_is_refused() -> None:
    for word in ("no", "cannot tell", "Yes", ""):
        with pytest.raises(InputError, match="Expected yes or partly"):
            require("yes", word)


@pytest.mark.slow
@pytest.mark.usefixtures("sketched")
def test_an_audit_is_required_in_python_and_by_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    corpus = heedful.load_corpus("planted:2:short", sizes={"train": 60, "dev": 20, "test": 20})
    small = settings_of({"train": {"epochs": 1}, "model": {"embedding_dim": 8, "width": 8}})
    own = tmp_path / "own"
    audited = heedful.audit("none+additive", corpus, own, settings=small, audits=["concentration"])
    assert audited.verdict.word == "cannot tell"
    with pytest.raises(heedful.VerdictWorse, match="CANNOT TELL, and PARTLY or better"):
        audited.require("partly")
    assert audited.require() is audited
    assert audited.require(baseline=own) is audited
    fine = replace(audited, verdict=replace(audited.verdict, word="yes"))
    assert fine.require("yes", baseline=own) is fine

    monkeypatch.setattr(job, "judge", lambda *given: replace(judge(*given), word="partly"))
    run = tmp_path / "run"
    words = ["audit", str(own), "--audits", "concentration", "--out", str(run),
             "--corpus", "planted:2:short", "--documents", "20"]  # fmt: skip
    done = CliRunner().invoke(app, [*words, "--require", "partly", "--json"])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, [*words, "--require", "yes", "--json"])
    assert done.exit_code == 3
    assert '"word": "partly"' in done.stdout  # all is said before
    assert done.stderr.splitlines()[-1] == "heedful: The verdict is PARTLY, and YES was required."
    # The folder itself may be the baseline: what it said before counts.
    kept = run / "findings" / "verdict.json"
    write_json(kept, read_json(kept) | {"word": "yes"})
    assert baseline_of(run).word == "yes"
    done = CliRunner().invoke(app, [*words, "--baseline", str(run)])
    assert done.exit_code == 3
    assert "The verdict is PARTLY, and it was YES in" in done.stderr
    assert CliRunner().invoke(app, [*words, "--baseline", str(run)]).exit_code == 0
    for wrong in (["--require", "no"], ["--baseline", str(tmp_path / "nowhere")]):
        assert isinstance(CliRunner().invoke(app, [*words, *wrong]).exception, InputError)
