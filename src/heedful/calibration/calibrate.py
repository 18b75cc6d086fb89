"""Calibrate the verdict: audit models with known answers, fit its borders, test them on others."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from heedful.audits.verdict import BORDERS
from heedful.calibration.borders import COLUMNS, Measured, Score, fit, score
from heedful.calibration.constructions import MARGIN, NO, YES, ConstructedModel
from heedful.calibration.coverage import comparisons, coverage
from heedful.calibration.dials import draw_dials
from heedful.calibration.discrimination import documents_needed, telling
from heedful.calibration.grids import GridSize, scale_of, settings
from heedful.calibration.headlines import MEASURES, measure, measure_explanations
from heedful.jobs.decider import device_of
from heedful.runs import (
    commit,
    locked,
    now,
    read_json,
    step,
    versions,
    write_json,
    write_text,
    writing,
)
from heedful.runs.progress import ticking

LEAST_ACCURACY, MOST_EVIDENCE = 0.9, 0.05
"""A trained model counts only if it decides so well and, if it hides, attends so little to it."""
VERSION, EXPLAINED, SIMULATED = 5, 1, 3
"""Raised when constructions or measures of attention change, when those of explanations do, or when
what is simulated does, so that kept steps are computed again."""


@dataclass(frozen=True)
class Calibrated:
    """What a calibration leaves."""

    folder: Path
    borders: Mapping[str, Mapping[str, float]]
    score: Score
    models: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """The calibration as plain data."""
        return {
            "folder": str(self.folder),
            "borders": {key: dict(pair) for key, pair in self.borders.items()},
            "right": self.score.right,
            "of": self.score.of,
            "false yes": self.score.false_yes,
            "table": {"columns": list(COLUMNS), "rows": [list(row) for row in self.score.rows]},
            "wrong": [list(row) for row in self.score.wrong],
            "models": self.models,
            "seconds": self.seconds,
        }

    def lines(self) -> list[str]:
        """What a person wants to know of it, for the terminal."""
        return [
            f"{self.score.right} of {self.score.of} models the rule was not fitted to were judged "
            f"right; {self.score.false_yes} deceiving ones were called yes.",
            f"{self.models} models in {self.seconds:.0f} s; tables and the dial: {self.folder}",
        ]


def calibrate(
    out: str | Path = "results/calibration",
    *,
    scale: str = "quick",
    seeds: int | None = None,
    device: str = "auto",
    show: bool = False,
) -> Calibrated:
    """The verdict's borders, fitted on one half of the constructed models and tested on the other.

    Leaves `calibration.json` (what the verdict loads when it lies in the package), one CSV per
    table and `dial.svg` in the folder `out`; models that were audited before are not audited again.
    """
    chosen, folder, target = scale_of(scale), Path(out), device_of(device)
    seeds = chosen.seeds if seeds is None else seeds
    folder.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    with locked(folder):
        models, left_out = _measured(folder, chosen, seeds, target, show)
        halves = {half: [m for m in models if m.half == half] for half in ("fit", "test")}
        fitted = fit(halves["fit"])
        found = score(halves["test"], fitted)
        simulated = step(
            folder / "work",
            "statistics",
            lambda: {
                "coverage": coverage(chosen.simulations),
                "comparisons": comparisons(chosen.simulations),
            },
            inputs={"simulations": chosen.simulations, "version": SIMULATED},
        )
        by_size = _by_size(folder, chosen, halves["test"], fitted, target, show)
        seconds = _seconds(folder)
        tables: dict[str, pd.DataFrame] = {
            "confusion": pd.DataFrame(list(found.rows), columns=list(COLUMNS)),
            "fit_confusion": pd.DataFrame(
                list(score(halves["fit"], fitted).rows), columns=list(COLUMNS)
            ),
            "wrong": pd.DataFrame(list(found.wrong), columns=["model", "right", "given"]),
            "transformers": pd.DataFrame(
                list(score(_only_transformers(halves["test"]), fitted).rows), columns=list(COLUMNS)
            ),
            "audits": telling(halves["test"], MEASURES),
            "documents": documents_needed(halves["test"], fitted, by_size),
            "models": _flat(models),
            "coverage": pd.DataFrame(simulated["coverage"]),
            "comparisons": pd.DataFrame(simulated["comparisons"]),
        }
        for name, table in tables.items():
            with writing(folder / f"{name}.csv") as path:
                table.to_csv(path, index=False, float_format="%.4g")
        write_text(folder / "dial.svg", draw_dials(models, MEASURES))
        provenance = _provenance(scale, seeds, str(target), seconds, halves)
        provenance["trained models that did not learn"] = left_out
        stored = {
            "borders": fitted,
            "table": _table(found, len(halves["fit"])),
            "held out": {"right": found.right, "of": found.of, "false yes": found.false_yes},
            "coverage": simulated["coverage"],
            "provenance": provenance,
        }
        write_json(folder / "calibration.json", stored)
    elapsed = round(time.perf_counter() - started, 1)
    return Calibrated(folder, fitted, found, len(models), elapsed)


def _measured(
    folder: Path, scale: GridSize, seeds: int, device: torch.device, show: bool
) -> tuple[list[Measured], list[str]]:
    """Every model of both halves, audited; and the names of trained ones that did not learn."""
    todo = [(half, s) for half in scale.halves for s in settings(scale, half, seeds)]
    found, left_out = [], []
    with ticking("calibrating", len(todo), "models", show) as ticker:
        for half, setting in todo:
            stored = _audited(folder, setting, scale.documents, device)
            stored["estimates"] |= _explained(folder, setting, scale.documents, device)["estimates"]
            ticker.advance()
            has_learnt = stored["accuracy"] >= LEAST_ACCURACY
            if stored["kind"] == "deceiving":
                has_learnt &= stored["evidence"] <= MOST_EVIDENCE
            if has_learnt or not setting.construction.startswith("trained"):
                found.append(Measured.from_json(stored | {"half": half}))
            else:
                left_out.append(setting.name)
    return found, left_out


def _audited(
    folder: Path, setting: ConstructedModel, documents: int, device: torch.device
) -> dict[str, Any]:
    """What the audits of attention say of one model, computed once."""
    result: dict[str, Any] = step(
        folder / "work",
        f"{setting.name}-{documents}",
        partial(measure, setting, documents, device),
        inputs={"setting": asdict(setting), "documents": documents, "version": VERSION},
    )
    return result


def _explained(
    folder: Path, setting: ConstructedModel, documents: int, device: torch.device
) -> dict[str, Any]:
    """What the audits of explanations say of its attention, a step of their own."""
    result: dict[str, Any] = step(
        folder / "work" / "explanations",
        f"{setting.name}-{documents}",
        partial(measure_explanations, setting, documents, device),
        inputs={"setting": asdict(setting), "documents": documents, "version": EXPLAINED},
    )
    return result


def _by_size(
    folder: Path,
    scale: GridSize,
    tested: Sequence[Measured],
    fitted: Mapping[str, Any],
    device: torch.device,
    show: bool,
) -> dict[int, Score]:
    """How the rule does on some held-out models with fewer or more documents."""
    every = [s for s in settings(scale, "test", 1) if not s.construction.startswith("trained")]
    some = every[:: max(len(every) // 48, 1)]
    found = {}
    for size in scale.sizes:
        again = []
        with ticking(f"{size} documents", len(some), "models", show) as ticker:
            for setting in some:
                stored = _audited(folder, setting, size, device)
                again.append(Measured.from_json(stored | {"half": "test"}))
                ticker.advance()
        found[size] = score(again, fitted)
    if scale.sizes:
        names = {setting.name for setting in some}
        found[scale.documents] = score([m for m in tested if m.name in names], fitted)
    return dict(sorted(found.items()))


def _seconds(folder: Path) -> dict[str, float]:
    """Time behind all steps of the folder, also those of earlier calls: by the clock, and of CPU.

    What is simulated has no count of its own and adds its time by the clock to both.
    """
    clock = cpu = 0.0
    for record in (folder / "work").rglob("*.step.json"):
        passed = float(read_json(record)["seconds"])
        result = read_json(record.with_name(record.name.replace(".step", "")))
        clock, cpu = clock + passed, cpu + float(result.get("cpu_seconds", passed))
    return {"clock": round(clock, 1), "cpu": round(cpu, 1)}


def _flat(models: Sequence[Measured]) -> pd.DataFrame:
    rows = []
    for model in models:
        row = {k: v for k, v in vars(model).items() if k != "estimates"}
        for name, estimate in model.estimates.items():
            row[name] = estimate.value
            if name in {border.key for border in BORDERS}:
                row[f"{name} low"], row[f"{name} high"] = estimate.low, estimate.high
        rows.append(row)
    return pd.DataFrame(rows)


def _only_transformers(models: Sequence[Measured]) -> list[Measured]:
    return [model for model in models if model.is_transformer]


def _table(found: Score, fitted_on: int) -> dict[str, Any]:
    """What every report shows behind the word."""
    caption = (
        f"The verdict on {found.of} held-out models whose right answer is known by construction: "
        f"{found.right} right ({100 * found.share:.1f} %), {found.false_yes} deceiving ones called "
        f"yes. They are flat, hierarchical and Transformers; the thresholds were fitted on "
        f"{fitted_on} others, with other encoders and other documents. Right words on a dial: no "
        f"up to a known reliance of {NO:g}, yes from {YES:g} on; models within {MARGIN:g} of "
        "these, and a construction that no audit here sees through, are listed and not counted."
    )
    return {"columns": list(COLUMNS), "rows": [list(r) for r in found.rows], "caption": caption}


def _provenance(
    scale: str,
    seeds: int,
    device: str,
    seconds: Mapping[str, float],
    halves: Mapping[str, Sequence[Measured]],
) -> dict[str, Any]:
    return {
        "command": f"heedful calibrate --scale {scale}",
        "seeds": seeds,
        "models": {half: len(models) for half, models in halves.items()},
        "commit": commit(),
        "device": device,
        "processor": platform.machine(),
        "seconds": seconds,
        "at": now(),
        "versions": versions(),
    }
