"""What was watched of a training, one entry a line, in the run's `watched.jsonl`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from heedful.errors import InputError
from heedful.runs.atomic import write_text

FILE = "watched.jsonl"


def entered(
    entry: dict[str, Any], entries: list[dict[str, Any]], folder: Path | None
) -> list[dict[str, Any]]:
    """The entries with one more, kept in the folder where there is one.

    Those of later steps, left by a run that was killed, are dropped.
    """
    found = [old for old in entries if old["step"] < entry["step"]] + [entry]
    if folder is not None:
        write_text(folder / FILE, "".join(json.dumps(one) + "\n" for one in found))
    return found


def kept_entries(folder: Path | None) -> list[dict[str, Any]]:
    """The entries that an earlier part of this training left."""
    if folder is None or not (folder / FILE).is_file():
        return []
    return read_watched(folder / FILE)


def read_watched(path: Path) -> list[dict[str, Any]]:
    """The entries of a `watched.jsonl`."""
    try:
        return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    except ValueError as error:
        raise InputError(f"{path} is damaged ({error}); delete it to go on without.") from error
