"""A user's own grid: models × corpora × seeds × settings, each audited once, then side by side."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from heedful.audits.exchange import SHARE
from heedful.cluster.connection import reaching
from heedful.cluster.engine import Doing, Workload, finish
from heedful.corpora.tables import SUFFIXES, suffix_of
from heedful.errors import InputError, unknown
from heedful.jobs.audit import MOST_DOCUMENTS, audit
from heedful.jobs.audited import Audited
from heedful.jobs.compare import compare
from heedful.jobs.decider import device_of
from heedful.jobs.settings import settings_of
from heedful.jobs.sources import DocumentSource
from heedful.reproduction.results import Results, Step, named
from heedful.runs import digest, fingerprint, locked, remove_leftovers, write_csv
from heedful.runs.entries import refuse_pipe
from heedful.statistics.estimates import Estimate

KEYS = ("models", "corpora", "seeds", "settings", "audits", "methods", "documents")
"""What a grid may say; `settings` has a table for each name."""


@dataclass(frozen=True)
class Swept:
    """What a sweep leaves."""

    table: pd.DataFrame
    """A row for each cell of the grid."""
    folder: Path
    page: Path | None
    """The runs side by side; none where fewer than two were audited."""

    def to_json(self) -> dict[str, Any]:
        """The sweep as plain data."""
        cells = self.table.astype(object).where(self.table.notna(), None).to_dict("records")
        page = None if self.page is None else str(self.page)
        return {"folder": str(self.folder), "page": page, "cells": cells}

    def lines(self) -> list[str]:
        """The sweep for the terminal."""
        told = self.table[["model", "corpus", "seed", "settings", "word", "documents"]].copy()
        told["word"] = told["word"].fillna("skipped")
        told["documents"] = ["–" if pd.isna(n) else f"{n:,}" for n in told["documents"]]
        for name, title in (("accuracy", "accuracy"), ("share", "all three tests hold")):
            if self.table[name].notna().any():
                told[title] = [_told(row, name) for row in self.table.to_dict("records")]
        reasons = self.table.loc[self.table["skipped"] != "", "skipped"].value_counts()
        return [
            *(line.rstrip() for line in told.to_string(index=False, na_rep="–").splitlines()),
            *(f"Skipped ({count:,}): {reason}" for reason, count in reasons.items()),
            f"Table: {self.folder / 'table.csv'}",
            *([f"Page: {self.page}"] if self.page else []),
        ]


def read_grid(path: Path) -> dict[str, Any]:
    """The grid of a TOML file, each key checked."""
    refuse_pipe(path)
    try:
        grid = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; expected a TOML file of a grid.") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not valid TOML: {error}.") from None
    for key, value in grid.items():
        if key not in KEYS:
            raise unknown("key of a grid", key, KEYS)
        kind = {"settings": dict, "documents": int}.get(key, list)
        if not isinstance(value, kind) or value in ([], {}):
            raise InputError(f"{path}: {key} must be a filled {kind.__name__}, got {value!r}.")
    for key in ("models", "corpora"):
        if key not in grid:
            raise InputError(f"{path} has no {key}; a grid needs models and corpora.")
    if not all(isinstance(seed, int) for seed in grid.get("seeds", [0])):
        raise InputError(f"{path}: seeds must be whole numbers, got {grid['seeds']!r}.")
    for settings in grid.get("settings", {}).values():
        settings_of(settings)
    return grid


def sweep(
    grid: Path | str | Mapping[str, Any],
    out: Path | str = "runs/sweep",
    *,
    data_root: Path | str | None = None,
    device: str = "auto",
    on: str | None = None,
    show: bool = False,
) -> Swept:
    """Audits every cell of a grid once, and puts all side by side in `table.csv` and `index.html`.

    `grid` is a mapping, or a TOML file: lists of `models` (recipes or trained ones) and `corpora`
    (names or files), and where wanted `seeds`, named `settings`, `audits`, `methods` and
    `documents`. A cell that cannot be had is skipped and says why.
    """
    folder = Path(out).resolve()
    said = dict(grid) if isinstance(grid, Mapping) else read_grid(Path(grid))
    task: dict[str, Any] = {
        "grid": said, "out": str(folder),
        "device": device if on and device == "cuda" else str(device_of(device)),
        "data_root": None if data_root is None else str(Path(data_root).resolve()),
        "models": {one: str(Path(one).resolve()) for one in said["models"] if Path(one).exists()},
        "files": {one: str(Path(one).resolve()) for one in said["corpora"] if _is_file(one)},
    }  # fmt: skip
    with locked(folder) as may_write:
        remove_leftovers(folder)
        results, steps = _steps(task)
        results.show = show
        if on is None:
            results.finish(steps)
        else:
            todo = [one.name for one in results.planned(steps)]
            pieces = Workload(__name__, task, todo, seconds=results.seconds())
            with reaching(on, __name__) as cluster:
                found = finish(pieces, cluster, folder, task["device"], show)
            for name, outcome in found.items():
                if outcome.skipped:
                    results.skipped[name] = outcome.skipped
        rows = [_row(results, step, cell) for step, cell in zip(steps, _cells(said), strict=True)]
        table = pd.DataFrame(rows).astype({"documents": "Int64"})
        runs = [str(row["run"]) for row in rows if not row["skipped"]]
        page = folder / "index.html" if len(runs) > 1 else None
        file = folder / "table.csv"
        if may_write or not file.is_file():
            if page is not None:
                compare(runs, page)
            write_csv(file, table)  # last: it says that the page stands, too
    return Swept(table, folder, page)


def _cells(grid: Mapping[str, Any]) -> list[tuple[str, str, int, str]]:
    """Model, corpus, seed and name of the settings of each cell."""
    several = (
        grid["models"],
        grid["corpora"],
        grid.get("seeds", [0]),
        list(grid.get("settings", {"usual": {}})),
    )
    return list(product(*several))


def _is_file(name: str) -> bool:
    return suffix_of(Path(name)) in SUFFIXES


def doing(task: Mapping[str, Any]) -> Doing:
    """What audits a cell by its name, in a worker."""
    results, steps = _steps(task)
    found = {one.name: one for one in steps}

    def do(name: str) -> None:
        results[found[name]]

    return do


def _steps(task: Mapping[str, Any]) -> tuple[Results, list[Step[Any]]]:
    results = Results(Path(task["out"]) / "steps", task["device"])
    return results, [_step(task, cell) for cell in _cells(task["grid"])]


def _step(task: Mapping[str, Any], cell: tuple[str, str, int, str]) -> Step[Any]:
    model, corpus, seed, named_so = cell
    grid = task["grid"]
    settings = grid.get("settings", {}).get(named_so, {})
    told = fingerprint({"model": model, "corpus": corpus})[:6]  # two folders may have one name
    name = named("-".join([Path(model).name, Path(corpus).name, str(seed), named_so, told]))
    place, file = task["models"].get(model), task["files"].get(corpus)
    options = {
        "audits": grid.get("audits"),
        "methods": grid.get("methods"),
        "documents": grid.get("documents", MOST_DOCUMENTS),
    }

    def compute(results: Results) -> dict[str, Any]:
        root = task["data_root"]
        source = DocumentSource(None if file else corpus, file, seed=seed, data_root=root)
        documents, _ = source.open()
        found = audit(
            place or model,
            documents,
            Path(task["out"]) / "runs" / name,
            settings=settings_of(settings),
            seed=seed,
            device=task["device"],
            source=None if place else source,
            **options,
        )
        return _summary(found)

    inputs: dict[str, Any] = {"model": model, "corpus": corpus, "seed": seed, "settings": settings}
    inputs |= options
    if file and Path(file).is_file():
        inputs["file"] = digest(Path(file))
    if place:
        inputs["weights"] = digest(Path(place) / "model")
    return Step(name, compute, inputs)


def _summary(found: Audited) -> dict[str, Any]:
    """What the table says of an audit."""
    exchange = found.findings.get("exchange")
    share = exchange.get(SHARE) if exchange else None
    return {
        "word": found.verdict.word,
        "documents": found.documents,
        "share": None if share is None else share.to_json(),
        "accuracy": next((dict(one) for one in found.quality.values() if "n" in one), None),
    }


def _told(row: Mapping[Any, Any], name: str) -> str:
    """A number of the table with its interval."""
    value, low, high = (row[one] for one in (name, f"{name}, low", f"{name}, high"))
    if pd.isna(value):
        return "–"
    low, high = (math.nan if pd.isna(end) else float(end) for end in (low, high))
    return str(Estimate(float(value), low, high, 0, ""))


def _row(results: Results, step: Step[Any], cell: Sequence[Any]) -> dict[str, Any]:
    """A row of the table."""
    row: dict[str, Any] = dict(zip(("model", "corpus", "seed", "settings"), cell, strict=True))
    skipped = results.skipped.get(step.name, "")
    found = {} if skipped else results[step]
    row |= {"word": found.get("word"), "documents": found.get("documents")}
    for name in ("accuracy", "share"):
        estimate = found.get(name) or {}
        row |= {name: estimate.get("value"), f"{name}, low": estimate.get("low")}
        row[f"{name}, high"] = estimate.get("high")
    return row | {"skipped": skipped, "run": str(results.folder.parent / "runs" / step.name)}
