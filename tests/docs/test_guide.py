"""The guide: a page for everything, links that lead somewhere, nothing from a network."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from guide import hooks

from heedful.audits import AUDITS
from heedful.importance import METHODS

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
PARTS = ("## Formula", "## How to read it", "## When not to trust it")


@pytest.mark.parametrize(
    ("pages", "names"),
    [
        (hooks.audit_pages, {*AUDITS, *hooks.OTHER_QUESTIONS}),
        (hooks.method_pages, {name.replace(" ", "-") for name in METHODS}),
    ],
)
def test_every_audit_and_method_has_a_page_with_all_parts(
    pages: Callable[[], dict[str, str]], names: set[str]
) -> None:
    made = {Path(name).stem: text for name, text in pages().items()}
    assert made.pop("index").count("|") >= 3 * len(names)
    assert set(made) == names
    for name, text in made.items():
        assert "<math" in text, name
        assert [part for part in PARTS if part not in text] == [], name


def test_nothing_is_told_of_what_is_not_there() -> None:
    assert set(hooks.read_toml("audits.toml")) == {*AUDITS, *hooks.OTHER_QUESTIONS}
    assert set(hooks.read_toml("methods.toml")) == set(METHODS)


class _Links(HTMLParser):
    """What a page refers to, and the places in it that can be referred to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag in ("img", "script", "link", "iframe", "source"):
            self.loaded += [given[name] for name in ("src", "href") if given.get(name)]


@pytest.mark.slow
def test_the_site_is_built_offline_and_every_link_leads_somewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path)))  # strict: warnings raise
    # Pages of studies are tested with the studies.
    own = [file for file in tmp_path.rglob("*.html") if file.name != hooks.PAGE]
    read = {file: _Links(file.read_text("utf-8")) for file in own}
    assert len(own) > 60
    for file, found in read.items():
        for link in (*found.links, *found.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                assert link in found.links, f"{file.name} loads {link}"
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if parts.path.startswith("/"):  # the page of an address that is not there
                assert file.name == "404.html"
                continue
            assert target.exists(), f"{file.relative_to(tmp_path)} links to {link}"
            if parts.fragment and target in read:
                assert unquote(parts.fragment) in read[target].places, f"{file.name}: {link}"
    for sheet in tmp_path.rglob("*.css"):
        assert not re.findall(r"(?:url\(|@import )[\"']?https?:", sheet.read_text("utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("file", TUTORIALS, ids=lambda file: file.stem)
def test_a_tutorial_runs_from_its_first_cell_to_its_last(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    notebook = nbformat.read(file, as_version=4)
    place = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=120, resources=place).execute()  # a cell that fails raises
    shown = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]
    assert len(shown) >= 3


def test_tutorials_are_kept_as_they_ran() -> None:
    assert len(TUTORIALS) == 5
    for file in TUTORIALS:
        cells = json.loads(file.read_text("utf-8"))["cells"]
        counts = [cell["execution_count"] for cell in cells if cell["cell_type"] == "code"]
        assert counts == list(range(1, len(counts) + 1)), f"{file.name} was not run in one go"
        kinds = [out["output_type"] for cell in cells for out in cell.get("outputs", ())]
        assert "error" not in kinds


def test_every_command_is_told_of() -> None:
    from typer.main import get_command

    from heedful.cli import app

    told = (ROOT / "docs" / "commands.md").read_text("utf-8")
    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert [name for name in commands if f"`heedful {name}" not in told] == []
