"""Work that is done once: a step has a result file and a record of what it was computed from.

    table = step(out, "imdb/erasure", lambda: audit(model), inputs={"seed": 0}, form=TABLE)

leaves `imdb/erasure.parquet` and, written last, `imdb/erasure.step.json`. Asked again with equal
inputs it reads the file; with other inputs, or with a file that is not the recorded one, it
computes again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from heedful.errors import InputError
from heedful.runs.atomic import plain, read_json, write_json, writing, writing_folder
from heedful.runs.memory import refuse_without_room
from heedful.runs.provenance import commit, now, versions

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


@dataclass(frozen=True)
class Form(Generic[T]):
    """How a kind of result lies on disk."""

    suffix: str
    """With its dot; empty for a result that is a folder."""
    save: Callable[[Path, T], None]
    """Writes the result at a path, which `step` renames afterwards."""
    load: Callable[[Path], T]
    """Reads it back."""


def _save_table(path: Path, table: pd.DataFrame) -> None:
    table.to_parquet(path, index=False)


def _load_table(path: Path) -> pd.DataFrame:
    from pyarrow.parquet import ParquetFile

    # Where there is no memory to start a thread, pyarrow waits for ever; pandas' own reader hands
    # files to threads even where it is told to use none.
    refuse_without_room()
    with ParquetFile(path) as file:
        return cast("pd.DataFrame", file.read(use_threads=False).to_pandas(use_threads=False))


def _save_tables(folder: Path, tables: Mapping[str, pd.DataFrame]) -> None:
    for name, table in tables.items():
        _save_table(folder / f"{name}.parquet", table)


def _load_tables(folder: Path) -> Mapping[str, pd.DataFrame]:
    return {path.stem: _load_table(path) for path in sorted(folder.glob("*.parquet"))}


JSON: Form[Any] = Form(".json", write_json, read_json)
TABLE: Form[pd.DataFrame] = Form(".parquet", _save_table, _load_table)
TABLES: Form[Mapping[str, "pd.DataFrame"]] = Form("", _save_tables, _load_tables)


def step(
    folder: Path | str,
    name: str,
    compute: Callable[[], T],
    *,
    inputs: Mapping[str, Any],
    form: Form[T] = JSON,
) -> T:
    """The result of `compute`, from disk when it was computed before from equal inputs.

    `inputs` is everything the result depends on, in values that have a JSON form. A fresh result
    is read back from its file too, so a run that was killed and resumed cannot differ from one that
    was not (tuples come back as lists, nan as None, an index is dropped). `name` may have
    slashes. Hold the folder's lock when several processes could work in it.
    """
    result, record = _places(folder, name, form)
    if not is_done(folder, name, inputs=inputs, form=form):
        started = time.perf_counter()
        value = compute()
        seconds = time.perf_counter() - started
        # A kill between the next three lines leaves a result without a record: not done.
        record.unlink(missing_ok=True)
        with (writing if form.suffix else writing_folder)(result) as temporary:
            form.save(temporary, value)
        write_json(
            record,
            {
                "fingerprint": fingerprint(inputs),
                "digest": digest(result),
                "inputs": inputs,
                "seconds": round(seconds, 3),
                "at": now(),
                "heedful": versions()["heedful"],
                "commit": commit(),
            },
        )
    return form.load(result)


def is_done(
    folder: Path | str, name: str, *, inputs: Mapping[str, Any], form: Form[Any] = JSON
) -> bool:
    """Whether the step's result is on disk, undamaged and computed from equal inputs."""
    result, record = _places(folder, name, form)
    if not (record.is_file() and result.exists()):
        return False
    try:
        found = read_json(record)
    except InputError:  # a damaged record proves nothing
        return False
    return (
        isinstance(found, dict)
        and found.get("fingerprint") == fingerprint(inputs)
        and found.get("digest") == digest(result)
    )


def fingerprint(inputs: Mapping[str, Any]) -> str:
    """Sixteen hex digits that change when any input does; the order of keys does not matter."""
    text = json.dumps(plain(inputs), sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _places(folder: Path | str, name: str, form: Form[Any]) -> tuple[Path, Path]:
    """Where a step's result and its record lie."""
    parts = name.split("/")
    if not all(part and not part.startswith(".") for part in parts):
        raise ValueError(f"a step's name is made of visible names and slashes, got {name!r}")
    place = Path(folder).joinpath(*parts)
    return place.with_name(place.name + form.suffix), place.with_name(place.name + ".step.json")


def digest(result: Path) -> str:
    """A hash of a file, or of a folder's file names and contents."""
    if result.is_file():
        with result.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    inside = [path for path in sorted(result.rglob("*")) if path.is_file()]
    lines = [f"{path.relative_to(result).as_posix()}\0{digest(path)}\n" for path in inside]
    return hashlib.sha256("".join(lines).encode()).hexdigest()
