"""Output where the terminal, or who reads a pipe, does not take every character (not UTF-8)."""

from __future__ import annotations

import codecs
import sys
import unicodedata

MARKS = str.maketrans(
    {"✓": "+", "✗": "x", "▲": "^", "△": "'", "▼": "v", "·": ".", "−": "-", "→": "->", "…": "..."}
    | {"“": '"', "”": '"', "‘": "'", "’": "'", "–": "-", "±": "+-"}
)
"""Marks that must stay apart from each other."""


def takes_all(encoding: str | None) -> bool:
    """Whether an encoding has every character."""
    try:
        return codecs.lookup(encoding or "utf-8").name.startswith("utf")
    except LookupError:
        return False


def use_plain_characters() -> None:
    """Lets both streams write a plainer character where theirs has none, and go on."""
    codecs.register_error("plainer", _plainer)
    for stream in (sys.stdout, sys.stderr):
        # A stream that a caller put in our place (a notebook, a test) takes what it takes.
        if hasattr(stream, "reconfigure") and not takes_all(stream.encoding):
            stream.reconfigure(errors="plainer")


def _plainer(error: UnicodeError) -> tuple[str, int]:
    """What is written for characters that an encoding lacks, as `codecs` asks for it."""
    assert isinstance(error, UnicodeEncodeError)
    known = error.object[error.start : error.end].translate(MARKS)
    parts = unicodedata.normalize("NFKD", known)
    bare = "".join(char for char in parts if not unicodedata.combining(char))
    return bare.encode("ascii", "replace").decode("ascii"), error.end
