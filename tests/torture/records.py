"""What long runs found, a line each, so that they can be ended at any time and added up later."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any


def commit() -> str:
    """The commit of the working tree, marked where it was changed since."""
    words = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    done = subprocess.run(words, cwd=Path(__file__).parent, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


class Records:
    """Rows, each with what it is of, the commit and the time; kept in a file where one is named."""

    def __init__(self, path: Path | None) -> None:
        self.commit = commit()
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        self.rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
        self._file = path.open("a") if path is not None else None

    def __enter__(self) -> Records:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        if self._file is not None:
            self._file.close()

    def of(self, name: str) -> list[dict[str, Any]]:
        """The rows of this name and of the commit that is tried now."""
        return [row for row in self.rows if (row["of"], row["commit"]) == (name, self.commit)]

    def add(self, name: str, **values: Any) -> None:
        """Keeps a row."""
        at = datetime.now(UTC).isoformat(timespec="seconds")
        row = {"of": name, "commit": self.commit, "at": at, **values}
        self.rows.append(row)
        if self._file is not None:
            self._file.write(json.dumps(row) + "\n")
            self._file.flush()
