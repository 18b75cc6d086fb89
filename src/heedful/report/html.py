"""What pages are made of: templates, styles and scripts, all inside the package."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import PureWindowsPath
from typing import TYPE_CHECKING, Any

from heedful.errors import one_line

if TYPE_CHECKING:
    from jinja2 import Template


def template(
    name: str, filters: Mapping[str, Callable[..., Any]] | None = None, lstrip: bool = True
) -> Template:
    """A page to fill in: all text is escaped, visible and of bounded length; no value may lack."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=lstrip,
        finalize=lambda value: one_line(value) if type(value) is str else value,
    )
    environment.filters |= filters or {}
    return environment.from_string(asset(name))


def asset(name: str) -> str:
    """The text of a template, a style or a script."""
    return files("heedful.report").joinpath("templates", name).read_text("utf-8")


def bundled(scripts: Sequence[str]) -> str:
    """All scripts as one, with names of their own."""
    return '(() => {\n"use strict";\n' + "\n".join(map(asset, scripts)) + "})();\n"


def script_hash(script: str) -> str:
    """What the page's policy admits: this script and no other."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def embedded(value: Any) -> str:
    """The value as JSON that can stand inside a script element: no <, > or &, ASCII only."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def shareable(name: Any) -> Any:
    """The name of a model or corpus without the folders of somebody's machine: a page is shared.

    >>> shareable("hf:/home/ada/secret/my-model"), shareable("hf:org/name"), shareable("sst:2")
    ('my-model', 'hf:org/name', 'sst:2')
    """
    place = str(name).removeprefix("hf:")
    is_folder = place.startswith(("/", "~", ".")) or PureWindowsPath(place).drive
    return PureWindowsPath(place).name if is_folder else name


def encodable(text: str) -> str:
    """The text with a mark in place of half surrogate pairs, which no UTF-8 file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
