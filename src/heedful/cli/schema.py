"""`heedful schema`: the form of what a command prints with `--json`."""

from __future__ import annotations

from typing import Annotated

import typer

from heedful.cli.options import print_json
from heedful.errors import unknown


def schema(
    command: Annotated[str, typer.Argument(help="A command that has --json, such as audit.")],
) -> None:
    """Print the JSON schema of what a command prints with --json.

    It is of draft 2020-12.
    """
    from heedful.cli.json_outputs import OUTPUTS, schema_of

    if command not in OUTPUTS:
        raise unknown("command with --json", command, OUTPUTS)
    print_json(schema_of(command))
