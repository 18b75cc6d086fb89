"""Data that lies beside the module it belongs to."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def data_beside(module: str) -> dict[str, Any]:
    """What the TOML file beside a module (its `__file__`) says, with tuples for its lists."""
    found: dict[str, Any] = _fixed(
        tomllib.loads(Path(module).with_suffix(".toml").read_text("utf-8"))
    )
    return found


def _fixed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _fixed(inner) for name, inner in value.items()}
    return tuple(map(_fixed, value)) if isinstance(value, list) else value
