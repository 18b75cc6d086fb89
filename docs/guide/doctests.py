"""Examples in docstrings, which Markdown would take for quotations, as code."""

from __future__ import annotations

from typing import Any

from griffe import Extension, Object


class Doctests(Extension):
    """Fences the lines from `>>>` on."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Changes the docstring before it is read."""
        if obj.docstring is None or "\n>>> " not in obj.docstring.value:
            return
        before, _found, example = obj.docstring.value.partition("\n>>> ")
        obj.docstring.value = f"{before}\n```python\n>>> {example.rstrip()}\n```"
