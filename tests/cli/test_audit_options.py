"""`--audits` and `--methods` of `heedful audit` are those of Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from heedful.cli import app

RUN = ["audit", "none+additive", "--quick", "--documents", "20", "--json"]


def test_chosen_audits_and_methods_alone_are_done(tmp_path: Path) -> None:
    chosen = ["--audits", "substitution, input-erasure", "--methods", "random,attention"]
    done = CliRunner().invoke(app, [*RUN, "--out", str(tmp_path / "run"), *chosen])
    assert done.exit_code == 0, done.output
    findings = json.loads(done.stdout)["findings"]
    assert (
        {"substitution", "input-erasure"}
        <= set(findings)
        <= {"substitution", "input-erasure", "words"}
    )
    methods = {row["method"] for row in findings["input-erasure"]["measures"]}
    assert methods == {"random", "attention", "attention - random", "random - attention"} & methods
    assert {"random", "attention"} <= methods


@pytest.mark.parametrize(
    ("option", "kind"), [("--audits", "audit"), ("--methods", "importance method")]
)
def test_an_unknown_name_is_refused_before_anything_is_trained(
    option: str, kind: str, tmp_path: Path
) -> None:
    done = CliRunner().invoke(app, [*RUN, "--out", str(tmp_path / "run"), option, "attenton"])
    assert done.exit_code != 0
    assert kind in f"{done.output}{done.exception}"
    assert not (tmp_path / "run").exists()
