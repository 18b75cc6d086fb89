"""The page on pipelines: its workflow runs as plain shell, its table of exit codes is right."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import heedful
from heedful.jobs.gate import ORDER
from heedful.jobs.settings import settings_of
from heedful.runs import write_json
from tests.cli.test_commands import reviews
from tests.schemas import conforms

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "in-your-pipeline.md"
WORKFLOW = DOCS / "examples" / "attention-gate.yml"
PATCHES = """
import heedful.audits.verdict, heedful.report.page
heedful.audits.verdict.FEWEST_DOCUMENTS = 5
heedful.report.page.draw = lambda *given: "<svg></svg>"
"""
"""Few documents do, and charts, which others test, are frames."""


def steps() -> dict[str, str]:
    """The shell of every step that has some, by its name."""
    found = yaml.safe_load(WORKFLOW.read_text())["jobs"]["gate"]["steps"]
    return {step["name"]: step["run"] for step in found if "run" in step}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a model and reviews, where few documents do and pip only takes notes."""
    monkeypatch.chdir(tmp_path)
    reviews(60).to_csv("reviews.csv", index=False)
    small = settings_of({"train": {"epochs": 1}, "model": {"embedding_dim": 8, "width": 8}})
    sizes = {"train": 60, "dev": 20, "test": 20}
    corpus = heedful.load_corpus("planted:2:short", sizes=sizes)
    heedful.train("none+additive", corpus, "model", settings=small)
    shims = tmp_path / "bin"
    shims.mkdir()
    (shims / "pip").write_text('#!/bin/sh\necho "$@" >> pip.txt\n')
    (shims / "heedful").write_text(
        f"#!{sys.executable}\n{PATCHES}\nfrom heedful.__main__ import main\nmain()\n"
    )
    for shim in shims.iterdir():
        shim.chmod(0o755)
    return tmp_path


def run(script: str, place: Path) -> subprocess.CompletedProcess[str]:
    """What GitHub does with a step on Linux: bash that stops at the first error."""
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    source = str(Path(heedful.__file__).parents[1])
    there = os.environ | {
        "PATH": f"{place / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": source,
    }  # fmt: skip
    return subprocess.run(shell, cwd=place, env=there, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
def test_the_workflow_runs_as_plain_shell(place: Path) -> None:
    script = steps()
    assert run(script["Install"], place).returncode == 0
    assert (place / "pip.txt").read_text() == "install heedful\n"
    accepted = place / "audits" / "accepted"
    write_json(accepted / "run.json", {"format": 1, "configuration": {}, "steps": {}})
    write_json(accepted / "findings" / "verdict.json", {"word": "yes"})
    done = run(script["Audit"], place)
    told = conforms("audit", (place / "verdict.json").read_text())
    word = told["verdict"]["word"]
    assert told["documents"] == 60
    assert done.returncode == (0 if word == "yes" else 3), done.stderr
    if word != "yes":
        said = done.stderr.splitlines()[-1]
        assert said.startswith(f"heedful: The verdict is {word.upper()}, and ")
    done = run(script["Evidence sheet"], place)
    assert done.returncode == 0, done.stderr
    assert "--require partly --baseline" in (place / "evidence" / "sheet.md").read_text()


def test_the_page_shows_the_workflow_as_it_is() -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert shown == WORKFLOW.read_text()


def test_the_page_names_the_words_in_their_order_and_every_exit_code() -> None:
    text = PAGE.read_text()
    assert " < ".join(f"`{word}`" for word in ORDER) in text
    for code in (0, 1, 2, 3, 130):
        assert re.search(rf"^\| {code} \|", text, re.MULTILINE), code


def test_the_page_s_call_in_python_is_public() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    compile(example, str(PAGE), "exec")
    assert set(re.findall(r"heedful\.(\w+)", example)) <= set(heedful.__all__)


def test_the_schema_on_the_page_is_a_command_s_own() -> None:
    from typer.testing import CliRunner

    from heedful.cli import app

    commands = re.findall(r"^heedful (schema \w+)", PAGE.read_text(), re.MULTILINE)
    assert commands
    for command in commands:
        done = CliRunner().invoke(app, command.split())
        assert json.loads(done.stdout)["title"] == f"heedful {command.split()[1]} --json"
