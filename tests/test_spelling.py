"""One spelling of per cent in the sources, and no name that nobody defined."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from heedful.statistics.estimates import per_cent

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src/heedful").rglob("*.py"))
TEMPLATES = sorted((ROOT / "src/heedful/report/templates").iterdir())
SPACED = re.compile(r"\d[\s\u00a0\u202f]%")
"""A share that was typed, or made without the helper."""


def own_spellings(source: str) -> Iterator[str]:
    """Where a source writes per cent itself: a format of that kind, or a sign behind a number."""
    tree = ast.parse(source)
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    for node in ast.walk(tree):
        match node:
            case ast.FormattedValue(format_spec=ast.JoinedStr() as spec):
                if ast.unparse(spec).strip("f'\"").endswith("%"):
                    yield ast.unparse(node)
            case ast.JoinedStr(values=parts):
                for before, after in pairwise(parts):
                    text = str(after.value) if isinstance(after, ast.Constant) else ""
                    is_behind = re.match(r"[\s\u00a0\u202f]?%", text)
                    if is_behind and isinstance(before, ast.FormattedValue):
                        yield ast.unparse(node)
            case ast.Constant(value=str(text)) if id(node) not in told:
                if SPACED.search(text) or re.search(r":\.?\d*%\}", text):
                    yield text


def test_per_cent_is_written_by_one_helper() -> None:
    found = {str(path.relative_to(ROOT)): list(own_spellings(path.read_text())) for path in SOURCES}
    written = {name: told for name, told in found.items() if told}
    # The name of a mechanism is what its draws are keyed by, in tables that are published.
    assert written.pop("src/heedful/calibration/mechanisms_words.py") == ["{share:.0%}"]
    assert list(written) == ["src/heedful/statistics/estimates.py"], written
    assert len(written["src/heedful/statistics/estimates.py"]) == 1
    assert per_cent(0.093) == "9\u00a0%"
    assert per_cent(-0.0001, 1) == "0.0\u00a0%"


def test_templates_never_tear_per_cent_from_its_number() -> None:
    for path in TEMPLATES:
        if path.suffix in (".html", ".j2", ".js"):
            torn = re.findall(r".{20}[\d}] %(?![}\w(]).{0,20}", path.read_text())
            assert not torn, (path.name, torn)


def test_published_text_spells_per_cent_so_too() -> None:
    """Sentences of results and pages; the name of a mechanism is what its draws are keyed by."""
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        assert not re.findall(r"(?<!decoy in \d)\d%", path.read_text()), path
    results = [*(ROOT / "docs/results").rglob("*.json"), ROOT / "benchmarks/results.json"]
    said = {
        str(p): re.findall(r'"(?:sentence|reason|part)": "(.*)"', p.read_text()) for p in results
    }
    assert sum(map(len, said.values())) > 500
    assert not [one for told in said.values() for one in told if re.search(r"\d%", one)]
    for page in (ROOT / "docs/results").rglob("index.html"):
        shown = re.sub(r"(?s)<(style|script).*?</\1>|<[^>]*>", " ", page.read_text())
        assert not re.findall(r".{20}\d%", shown), page


@pytest.mark.parametrize(
    ("planted", "is_caught"),
    [
        ('f"{share:.0%} of the texts"', True),
        ('f"{100 * share:.0f} % of the texts"', True),
        ('"in {yes:.0%} of the texts".format(yes=share)', True),
        ('"95 % interval"', True),
        ('f"{per_cent(share)} of the texts"', False),
        ("rest = number % 7", False),
    ],
)
def test_another_spelling_is_caught(planted: str, is_caught: bool) -> None:
    assert bool(list(own_spellings(f"said = {planted}\n"))) == is_caught


@pytest.mark.parametrize("where", ["src/heedful/audits/planted.py", "tests/planted.py"])
def test_a_name_that_nobody_defined_fails_the_linter(where: str) -> None:
    planted = (
        "from jaxtyping import Float\nfrom torch import Tensor\n\n\n"
        'def twice(x: Float[Tensor, " batch"], y: Float[Tensor, "batch unit"]) -> Undefined:\n'
        '    """Twice."""\n    return x + missing + y\n'
    )
    command = [sys.executable, "-m", "ruff", "check", "--output-format", "concise"]
    done = subprocess.run(
        [*command, "--stdin-filename", str(ROOT / where), "-"],
        input=planted, capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    said = [line for line in done.stdout.splitlines() if "F821" in line]
    assert [line.split("`")[1] for line in said] == ["Undefined", "missing"], done.stdout
    assert "F722" not in done.stdout
