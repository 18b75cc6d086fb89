"""Files of a data root: where they are, whether they are whole, and what to say when not."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from heedful.corpora.tables import bytes_of
from heedful.errors import InputError

VARIABLE = "HEEDFUL_DATA"


def root_of(given: str | Path | None = None) -> Path:
    """The folder of real corpora: the one given, else that of HEEDFUL_DATA."""
    where = given or os.environ.get(VARIABLE)
    if not where:
        raise InputError(
            f"Real corpora are read from a data root; name one with --data-root or {VARIABLE}, "
            "and see `heedful corpora` for the files it should hold."
        )
    root = Path(where)
    if not root.is_dir():
        raise InputError(f"The data root {root} does not exist or is not a folder.")
    return root


def locate(root: Path, name: str) -> Path | None:
    """The file of that name under the root, plain or gzipped; None when it is not there."""
    plain = name.removesuffix(".gz")
    return next((p for p in (root / name, root / plain, root / f"{plain}.gz") if p.is_file()), None)


def find(root: Path, name: str, source: str) -> Path:
    """The file of that name under the root, checked against SHA256SUMS where that lists it."""
    path = locate(root, name)
    if path is None:
        raise InputError(f"{name} is not in the data root {root}; it comes from {source}.")
    expected = _checksums(root).get(path.relative_to(root).as_posix())
    if expected is not None and _digest(path, path.stat().st_mtime_ns) != expected:
        raise InputError(
            f"{path} does not have the checksum that SHA256SUMS gives; it is half downloaded or "
            f"changed: fetch it again from {source}."
        )
    return path


def _checksums(root: Path) -> dict[str, str]:
    sums = root / "SHA256SUMS"
    if not sums.is_file():
        return {}
    pairs = (line.split(maxsplit=1) for line in sums.read_text(encoding="utf-8").splitlines())
    return {pair[1].lstrip("*"): pair[0] for pair in pairs if len(pair) == 2}


@lru_cache(maxsize=64)
def _digest(path: Path, modified: int) -> str:
    """The file's SHA-256, computed once while it does not change."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_of(path: Path) -> str:
    """The whole text of a plain or gzipped UTF-8 file."""
    text = bytes_of(path)
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(path, text.count(b"\n", 0, error.start) + 1) from error


def not_utf8(path: Path, line: int) -> InputError:
    """The error of a file whose line is no text in UTF-8."""
    return InputError(f"{path} is not UTF-8 text (line {line:,}); convert it, e.g. with iconv.")


def lines_of(path: Path) -> list[str]:
    """The lines of a text file, cut at line feeds only."""
    lines = text_of(path).split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def fields_of(path: Path, count: int) -> Iterator[list[str]]:
    """The tab-separated fields of each line; another number of them is an error."""
    for number, line in enumerate(lines_of(path), start=1):
        fields = line.split("\t", count - 1)
        if len(fields) != count:
            raise InputError(
                f"{path}, line {number}: expected {count} fields, found {len(fields)}."
            )
        yield fields


def expect(path: Path, found: Mapping[str, int], expected: Mapping[str, int]) -> None:
    """Raises unless a file has the published number of documents of each kind."""
    for kind, count in expected.items():
        if found.get(kind, 0) != count:
            raise InputError(
                f"{path} should have {count:,} {kind}, found {found.get(kind, 0):,}; "
                "it is half downloaded or another version: fetch it again."
            )
