"""Where a number comes from: versions, machine, commit."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide numbers, read without importing them."""
    found = {"python": platform.python_version()}
    for package in ("heedful", "torch", "transformers", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


@cache
def commit() -> str | None:
    """The commit this package runs from, with "+" when files changed since; None if installed."""
    root = _PACKAGE.parents[1]
    # An installed package may lie inside someone else's repository, whose commit is not ours.
    if _PACKAGE.parent.name != "src" or not (root / ".git").exists():
        return None
    head = _git(root, "rev-parse", "HEAD")
    if head is None:
        return None
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    return head + ("+" if changed else "")


@cache
def code_digest() -> str:
    """A hash of this package's code, which tells apart what has one version number."""
    files = sorted(_PACKAGE.rglob("*.py"))
    lines = [
        f"{file.relative_to(_PACKAGE).as_posix()}\0".encode() + file.read_bytes() for file in files
    ]
    return hashlib.sha256(b"\n".join(lines)).hexdigest()


def now() -> str:
    """The time in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _git(root: Path, *arguments: str) -> str | None:
    """What git answers, or None where there is no git or no commit."""
    try:
        answer = subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
