"""What documents and docstrings name is there: files of the house, modules, their functions."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "heedful"
ROOMS = "|".join(sorted(path.name for path in SOURCE.iterdir() if path.is_dir()))
FILE = re.compile(rf"(?<![\w/.])(?:src/heedful/)?((?:{ROOMS})/[\w/]*\w\.py)\b")
NAME = re.compile(rf"\bheedful\.((?:{ROOMS})(?:\.\w+)*)")
READ = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "docs" / "studies").glob("*.md"),
    *SOURCE.rglob("*.py"),
    *(ROOT / "benchmarks").rglob("*.py"),
]


def is_there(name: str) -> bool:
    """Whether a dotted name below the package is a module, or something a module has."""
    parts = name.split(".")
    for known in range(len(parts), 0, -1):
        place = SOURCE.joinpath(*parts[:known])
        if place.is_dir() or place.with_suffix(".py").is_file():
            module = import_module(".".join(["heedful", *parts[:known]]))
            return known == len(parts) or hasattr(module, parts[known])
    return False


@pytest.mark.parametrize("path", READ, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_named_is_there(path: Path) -> None:
    text = path.read_text()
    for file in FILE.findall(text):
        found = [root / file for root in (SOURCE, ROOT, ROOT / "tests")]
        assert any(place.is_file() for place in found), file
    for name in NAME.findall(text):
        assert is_there(name), f"heedful.{name}"
