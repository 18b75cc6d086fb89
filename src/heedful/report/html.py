"""What pages are made of: templates, styles and scripts, all inside the package."""

from __future__ import annotations

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


def shareable(name: Any) -> Any:
    """The name of a model or corpus without the folders of somebody's machine: a page is shared.

    >>> shareable("hf:/home/ada/secret/my-model"), shareable("hf:org/name"), shareable("sst:2")
    ('my-model', 'hf:org/name', 'sst:2')
    """
    place = str(name).removeprefix("hf:")
    is_folder = place.startswith(("/", "~", ".")) or PureWindowsPath(place).drive
    return PureWindowsPath(place).name if is_folder else name
