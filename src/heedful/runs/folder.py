"""A run on disk: a folder that can be moved, resumed and read without the program."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import InputError
from heedful.runs.atomic import plain, read_json, remove_leftovers, write_json
from heedful.runs.entries import refuse_links, refuse_other_bytes, refuse_pipes
from heedful.runs.locks import locked
from heedful.runs.provenance import commit, now, versions

FORMAT = 1
SHARDS = "shards"
"""Folder of what was found on single shards, which may be there before the run is."""


@dataclass(frozen=True)
class RunFolder:
    """The places of one run and its `run.json`; get one by `create` or `open`, under `held`."""

    path: Path
    """`runs/<name>/`."""

    @classmethod
    def create(
        cls,
        path: Path | str,
        configuration: Mapping[str, Any],
        *,
        seeds: Mapping[str, int] | None = None,
        device: str = "cpu",
        corpus: str = "",
    ) -> RunFolder:
        """A new run, or the one already there when its configuration and corpus are the same.

        `corpus` is the corpus's fingerprint, `device` the accelerator in words. A folder with other
        settings, or with files that are not ours, is refused and left as it was.
        """
        run = cls(Path(path))
        configuration = plain(configuration)
        refuse_other_bytes(run.path)
        if run.file.is_file():
            found = cls.open(run.path).record
            _refuse_other_settings(run.path, found, configuration, corpus)
            return run
        if run.path.exists() and (not run.path.is_dir() or _visible(run.path)):
            raise InputError(
                f"{run.path} is not a heedful run: it has no run.json but other files; "
                "choose a new or empty folder for --out."
            )
        record = {
            "format": FORMAT,
            "configuration": configuration,
            "seeds": dict(seeds or {}),
            "corpus": corpus,
            "versions": versions(),
            "platform": platform.platform(),
            "device": device,
            "commit": commit(),
            "created": now(),
            "steps": {},
        }
        write_json(run.file, record)
        return run

    @classmethod
    def open(cls, path: Path | str) -> RunFolder:
        """An existing run, checked to be one."""
        run = cls(Path(path))
        if not run.path.exists():
            raise InputError(f"{run.path} does not exist; expected a run folder, check the path.")
        if not run.file.is_file():
            raise InputError(
                f"{run.path} is not a heedful run: no run.json; "
                "expected a folder made by `heedful train` or `heedful audit`."
            )
        refuse_pipes(run.path)
        record = read_json(run.file)
        missing = {"format", "configuration", "steps"} - set(record if _is_object(record) else ())
        if missing or not _is_readable(record):
            raise InputError(
                f"{run.path} is not a heedful run: its run.json lacks "
                f"{', '.join(sorted(missing)) or 'a readable configuration or steps'}; "
                "expected a folder made by `heedful train` or `heedful audit`."
            )
        if record["format"] != FORMAT:
            raise InputError(
                f"{run.path} has run format {record['format']}, this heedful reads {FORMAT}; "
                "use the version that made it or run again into a new folder."
            )
        return run

    @property
    def file(self) -> Path:
        """`run.json`."""
        return self.path / "run.json"

    @property
    def model(self) -> Path:
        """Folder of the trained model."""
        return self.path / "model"

    @property
    def metrics(self) -> Path:
        """One JSON line per evaluation while training."""
        return self.path / "metrics.jsonl"

    @property
    def findings(self) -> Path:
        """Folder of the audits' tables and summaries."""
        return self.path / "findings"

    @property
    def figures(self) -> Path:
        """Folder of the charts."""
        return self.path / "figures"

    @property
    def report(self) -> Path:
        """The page."""
        return self.path / "report.html"

    @property
    def record(self) -> dict[str, Any]:
        """What `run.json` says now."""
        found: dict[str, Any] = read_json(self.file)
        return found

    @property
    def configuration(self) -> dict[str, Any]:
        """The full configuration the run was made with."""
        found: dict[str, Any] = self.record["configuration"]
        return found

    def update(self, **fields: Any) -> None:
        """Sets top-level fields of `run.json`."""
        write_json(self.file, self.record | plain(fields))

    def finish(self, step: str, seconds: float, **notes: Any) -> None:
        """Records that a step is done, how long it took and when."""
        done = {"state": "done", "seconds": round(seconds, 3), "at": now(), **notes}
        self.update(steps=self.record["steps"] | {step: done})

    def is_finished(self, step: str) -> bool:
        """Whether a step is recorded as done."""
        return bool(self.record["steps"].get(step, {}).get("state") == "done")

    def forget(self, *steps: str) -> None:
        """Records that steps are to be done again."""
        kept = {name: state for name, state in self.record["steps"].items() if name not in steps}
        self.update(steps=kept)


@contextmanager
def held(path: Path | str) -> Iterator[None]:
    """Holds a run, new or not, for this process; look at it, or make it, only inside.

    What a killed process left half-written is cleared away. No link inside a run is followed, so
    that opening somebody's run changes nothing outside of it: a run with links is refused.
    """
    run = RunFolder(Path(path))
    with locked(run.path):
        if run.file.is_file():
            refuse_links(run.path)
        # A folder with nothing visible is new, or its maker was killed before run.json stood.
        if run.file.is_file() or not _visible(run.path):
            remove_leftovers(run.path)
        yield


def _is_readable(record: Mapping[str, Any]) -> bool:
    """Whether the parts of a record that are objects are so."""
    needed = [record["configuration"], record["steps"]]
    others = [record[name] for name in ("audited", "versions", "seeds") if name in record]
    is_whole = all(map(_is_object, (*needed, *others)))
    return is_whole and all(map(_is_object, record["steps"].values()))


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _visible(folder: Path) -> bool:
    """Whether a folder holds anything but shards and hidden files (our lock, a killed writer's)."""
    names = {entry.name for entry in folder.iterdir()} - {SHARDS}
    return any(not name.startswith(".") for name in names)


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables as dotted names, so that an error can name the one setting that differs."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        inner = _flat(value) if isinstance(value, Mapping) else {"": value}
        found |= {f"{name}.{key}".rstrip("."): entry for key, entry in inner.items()}
    return found


def _refuse_other_settings(
    path: Path, record: Mapping[str, Any], configuration: Mapping[str, Any], corpus: str
) -> None:
    ours = _flat({**configuration, "corpus fingerprint": corpus})
    theirs = _flat({**record["configuration"], "corpus fingerprint": record.get("corpus", "")})
    for name in [*theirs, *(name for name in ours if name not in theirs)]:
        if ours.get(name) != theirs.get(name):
            raise InputError(
                f"{path} holds a run with other settings ({name}: {theirs.get(name)!r} there, "
                f"{ours.get(name)!r} asked for); choose another --out or delete that folder."
            )
