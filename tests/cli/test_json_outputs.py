"""Every `--json` has a published schema, and the schema says something.

Real outputs of every command are held against it where the tests run that command: `conforms`.
"""

import ast
from pathlib import Path
from typing import Any

import pytest
import typer.main
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from heedful.cli import app
from heedful.cli.json_outputs import DRAFT, OUTPUTS, schema_of
from heedful.errors import InputError
from tests.demo_run import VERDICT
from tests.schemas import conforms

TESTS = Path(__file__).parents[1]


def test_every_command_with_json_has_a_schema() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    having = {n for n, one in commands.items() if any("--json" in p.opts for p in one.params)}
    assert set(OUTPUTS) == having


@pytest.mark.parametrize("command", OUTPUTS)
def test_the_command_prints_a_valid_schema(command: str) -> None:
    done = CliRunner().invoke(app, ["schema", command])
    assert done.exit_code == 0
    assert f'"$schema": "{DRAFT}"' in done.stdout
    Draft202012Validator.check_schema(schema_of(command))


def test_a_command_without_json_is_refused() -> None:
    done = CliRunner().invoke(app, ["schema", "audti"])
    assert isinstance(done.exception, InputError)
    assert "Did you mean 'audit'?" in str(done.exception)


def test_real_outputs_of_every_command_are_held_against_it() -> None:
    """Which calls of `conforms` there are is read off the tests themselves."""
    asked: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "conforms":
                first: Any = node.args[0]
                asked |= {first.value} if isinstance(first, ast.Constant) else set()
    assert set(OUTPUTS) <= asked


def test_a_wrong_output_does_not_conform() -> None:
    right = {"html": "a", "markdown": "b"}
    assert conforms("sheet", right) == right
    for wrong in ({"html": "a"}, right | {"more": 1}, right | {"html": 3}):
        with pytest.raises(AssertionError):
            conforms("sheet", wrong)
    with pytest.raises(AssertionError):
        conforms("compare", {"page": "p", "notes": [], "gains": [], "runs": [VERDICT]})
