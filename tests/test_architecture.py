"""The house: imports point one way, a name has one meaning, files stay short, --help stays fast."""

import ast
import subprocess
import sys
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
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
    "explorer",
    "cluster",
    "cli",
    "__main__",
)
FILES = sorted(SOURCE.rglob("*.py"))


def name_of(path: Path) -> str:
    """The module that a file is."""
    parts = ("heedful", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in FILES}


def imports(path: Path) -> list[tuple[int, str]]:
    """What a module imports of this package, inside functions too, not for types alone."""
    tree = ast.parse(path.read_text())
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in MODULES else node.module for name in inner]
            found += [(node.lineno, name) for name in dict.fromkeys(names)]
        elif isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
    return [(line, name) for line, name in found if name in MODULES]


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
    for line, name in imports(path):
        there = room_of(name)
        # statistics and runs stand side by side at the top and may use each other.
        assert there is None or there <= max(here, 1), f"line {line} imports {name}, a later room"


def test_every_folder_is_a_room() -> None:
    folders = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file()}
    assert folders | {"__main__"} == set(ROOMS)


def test_no_import_leads_back() -> None:
    graph = {module: {name for _, name in imports(path)} for module, path in MODULES.items()}
    for module, names in graph.items():
        names.discard(module)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" <- ".join(error.args[1])) from None


def test_a_class_name_has_one_meaning() -> None:
    defined = defaultdict(list)
    for module, path in MODULES.items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined[node.name].append(module)
    twice = {name: modules for name, modules in defined.items() if len(modules) > 1}
    assert not twice


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_are_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 420


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, heedful.__main__ as command; sys.argv[1:] = ['--help']\n"
        "try: command.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'pandas', 'matplotlib', 'transformers', 'scipy', 'ray'}\n"
        "assert not heavy & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "audit" in done.stdout
