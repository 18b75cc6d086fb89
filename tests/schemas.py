"""Outputs of commands held against the schemas that `heedful schema` prints."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from heedful.cli.json_outputs import schema_of
from heedful.runs import plain


@cache
def _validator(command: str) -> Draft202012Validator:
    schema = schema_of(command)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def conforms(command: str, printed: Any) -> Any:
    """What a command printed with `--json`, or the value it prints, which must fit its schema."""
    value = json.loads(printed) if isinstance(printed, str) else plain(printed)
    wrong = [
        f"{error.json_path}: {error.message[:200]}"
        for error in _validator(command).iter_errors(value)
    ]
    assert not wrong, wrong[:5]
    return value
