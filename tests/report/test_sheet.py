"""The evidence sheet: what it says, what it keeps quiet, and that it prints on two pages."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from picture import chromium, show
from typer.testing import CliRunner

from heedful.cli import app
from heedful.errors import InputError
from heedful.report.sheet import LIMITS, NO_COMMAND, render_sheet
from heedful.runs import RunFolder, read_json, write_json
from tests.demo_run import VERDICT
from tests.schemas import conforms

EVIL = "<script>window.ran=1</script> a|b"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of an audit, as its files tell it."""
    configuration = {"kind": "audit", "recipe": "hf:/home/ada/models/my-model", "model": "a1b2c3"}
    folder = RunFolder.create(
        tmp_path / "run",
        configuration | {"corpus": "/home/ada/reviews.csv", "seed": 3},
        corpus="f1f2f3",
    )
    tests = [test | {"n": 60} for test in VERDICT["tests"]]
    told = VERDICT | {"tests": tests, "near": "no", "sentence": EVIL, "rule": ["A rule."]}
    write_json(folder.findings / "verdict.json", told)
    folder.update(
        audited={
            "documents": 60,
            "of": 100,
            "split": "test",
            "corpus": "/home/ada/reviews.csv",
            "notes": {"test: cut": 3},
            "titles": {},
            "command": "heedful audit /home/ada/models/my-model --data '/home/ada/my reviews.csv'",
        }
    )
    folder.finish("audit", 1.0)
    return folder.path


def test_it_says_all_that_is_to_be_filed_and_no_path_of_a_machine(run: Path) -> None:
    made = render_sheet(run)
    for text in (made.html.read_text(), made.markdown.read_text()):
        for said in (
            "my-model", "reviews.csv", "a1b2c3", "f1f2f3", "31\xa0% [27, 35]", "not measured", "60",
            "heedful audit my-model --data", "it could have been no", "provisional", "test: cut: 3",
            "60 of 100 test documents were audited", *LIMITS,
            RunFolder.open(run).record["steps"]["audit"]["at"][:10],
        ):  # fmt: skip
            assert said in text, said
        assert "/home" not in text
        assert "ada" not in re.sub(r"[a-z]*adata|<style>.*</style>", "", text, flags=re.S)
        assert str(run.parent) not in text
        assert "<script" not in text
    assert "a\\|b" in made.markdown.read_text()
    assert "http:" not in made.html.read_text()
    assert "https:" not in made.html.read_text()


def test_the_command_writes_it_where_it_is_told(run: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["sheet", str(run), "--out", str(tmp_path / "b"), "--json"])
    found = conforms("sheet", done.stdout)
    assert Path(found["html"]).parent == Path(found["markdown"]).parent == tmp_path / "b"
    assert "For a model card: " in CliRunner().invoke(app, ["sheet", str(run)]).stdout
    assert (run / "sheet.html").is_file()


def test_an_older_run_says_that_its_command_was_not_kept(run: Path) -> None:
    folder = RunFolder.open(run)
    audited = folder.record["audited"]
    audited.pop("command")
    folder.update(audited=audited)
    assert NO_COMMAND in render_sheet(run).markdown.read_text()


def test_a_run_without_a_verdict_is_refused(run: Path) -> None:
    (run / "findings" / "verdict.json").unlink()
    with pytest.raises(InputError, match="not audited yet"):
        CliRunner().invoke(app, ["sheet", str(run)], catch_exceptions=False)


@pytest.mark.browser
@pytest.mark.usefixtures("has_browser")
def test_it_prints_on_one_or_two_pages(run: Path) -> None:
    page = render_sheet(run).html
    with chromium() as browser:
        show(browser, page, 400)
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        assert wide <= 400  # a phone need not scroll sideways
        made = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
        assert browser.execute_script("return window.ran") is None
    printed = base64.b64decode(made["data"])
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 2
    assert b"595" in printed  # A4 is 595 points wide


@pytest.mark.browser
@pytest.mark.usefixtures("has_browser")
def test_what_is_not_settled_does_not_widen_it(run: Path) -> None:
    verdict = read_json(run / "findings" / "verdict.json")
    ends = {"value": 0.4, "low": 0.01, "high": 0.99, "contradicts": 0.25, "threshold": 0.7}
    tests = [test | ends | {"outcome": "mixed"} for test in verdict["tests"]]
    write_json(run / "findings" / "verdict.json", verdict | {"tests": tests})
    found = render_sheet(run)
    assert "contradicts, mixed or supports" in found.markdown.read_text()
    with chromium() as browser:
        show(browser, found.html, 390)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
