"""Whether the claim holds. Findings are read without torch; audits and verdict are not."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from heedful.audits.finding import Audit, Finding, Measure

if TYPE_CHECKING:
    from heedful.audits.registry import AUDITS
    from heedful.audits.verdict import Verdict, judge

_MODULES = {"AUDITS": "registry", "Verdict": "verdict", "judge": "verdict"}

__all__ = ["AUDITS", "Audit", "Finding", "Measure", "Verdict", "judge"]


def __getattr__(name: str) -> Any:
    """Imports what needs torch when it is first used, so that a page is drawn without."""
    if name not in _MODULES:
        raise AttributeError(f"module 'heedful.audits' has no attribute {name!r}")
    return getattr(import_module(f"heedful.audits.{_MODULES[name]}"), name)
