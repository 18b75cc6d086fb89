"""Errors a person can act on: one sentence with what was expected, what came and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """Something the user gave cannot be used; the command line shows it without a traceback."""


class UnsupportedModel(InputError):
    """A model, or a part of one, that the asked-for measurement does not support."""


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """Returns the error for a name that is not among the known ones, with the closest match."""
    known = sorted(known)
    close = get_close_matches(name, known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return InputError(f"Unknown {kind} {name!r}; known: {', '.join(known)}.{hint}")
