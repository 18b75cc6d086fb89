"""The house: imports point one way, files stay short, and --help stays fast."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "heedful"
ROOMS = (
    "statistics",
    "runs",
    "corpora",
    "models",
    "training",
    "importance",
    "dynamics",
    "audits",
    "report",
    "jobs",
    "calibration",
    "reproduction",
    "studies",
    "cli",
    "__main__",
)
FILES = sorted(SOURCE.rglob("*.py"))


def room_of(module: str) -> int | None:
    """The place of a module in the order of rooms; none for the package and its errors."""
    parts = module.split(".")
    if parts[0] != "heedful" or len(parts) < 2 or parts[1] not in ROOMS:
        return None
    return ROOMS.index(parts[1])


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path: Path) -> None:
    here = room_of("heedful." + ".".join(path.relative_to(SOURCE).with_suffix("").parts))
    if here is None:
        return
    tree = ast.parse(path.read_text())
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            there = room_of(name)
            # statistics and runs stand side by side at the top and may use each other.
            if there is not None and id(node) not in typing_only:
                assert there <= max(here, 1), f"{path.name} imports {name} from a later room"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_are_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 420


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, heedful.__main__ as command; sys.argv[1:] = ['--help']\n"
        "try: command.main()\n"
        "except SystemExit: pass\n"
        "assert not {'torch', 'pandas', 'matplotlib', 'transformers', 'scipy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "audit" in done.stdout
