"""The documents that a page shows one by one: made harmless, and as many as it has room for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.errors import InputError, one_line, visible
from heedful.report.html import embedded
from heedful.runs.atomic import read_json

MOST_BYTES = 5_000_000
"""Of a page; what does not fit is left out, and said."""
OWN_BYTES = 400_000
"""Of these, what everything but findings and documents may take."""
MOST_LETTERS = 200
"""Of a word on the page."""


def read_documents(path: Path) -> dict[str, Any]:
    """What an `instances.json` holds, with words that a page can show."""
    empty = {"classes": [], "methods": [], "linear": True, "documents": 0, "instances": []}
    empty |= {"audited": {"unit": "word", "where": "", "rows": "", "heads": "What is attended to"}}
    stored = read_json(path) if path.is_file() else {}
    entries = stored.get("instances", []) if isinstance(stored, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"{path} holds no instances that can be shown; audit the run again.")
    found = empty | stored
    found["classes"] = [_short(name) for name in found["classes"]]
    found["methods"] = [
        {name: one_line(str(said)) for name, said in method.items()} for method in found["methods"]
    ]
    return found | {"instances": [_harmless(entry) for entry in entries]}


def _harmless(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A document whose words are visible and of bounded length, whatever they are."""
    changed = dict(entry)
    for name in ("units", "gaps", "tags"):
        if name in entry:
            changed[name] = [_short(word) for word in entry[name]]
    if entry.get("flow"):
        changed["flow"] = entry["flow"] | {"words": [_short(w) for w in entry["flow"]["words"]]}
    return changed | ({"id": _short(entry["id"])} if "id" in entry else {})


def _short(word: Any) -> str:
    shown = visible(str(word))
    return shown if len(shown) <= MOST_LETTERS else f"{shown[:MOST_LETTERS]}…"


def fitting(
    entries: Sequence[Mapping[str, Any]], room: int
) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The documents that a page has room for, in their order, and what is said of the others.

    Where not all fit they are drawn by their id, and none may take a twentieth of the room.
    """
    sizes = [len(embedded(entry)) + 1 for entry in entries]
    if sum(sizes) <= room:
        return list(entries), []
    ids = [str(entry.get("id")).encode("utf-8", "replace") for entry in entries]
    drawn = sorted(range(len(entries)), key=lambda row: hashlib.sha256(ids[row]).digest())
    kept = set()
    for row in drawn:
        if sizes[row] <= min(room, MOST_BYTES // 20):
            kept.add(row)
            room -= sizes[row]
    told = f"{len(kept):,} of the {len(entries):,} documents that could be shown fit on a page of "
    told += f"{MOST_BYTES / 1e6:g} MB: drawn by their ids, without those that are very large."
    return [entry for row, entry in enumerate(entries) if row in kept], [told]
