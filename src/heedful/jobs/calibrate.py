"""Calibrate the verdict: audit models with known answers, fit its borders, test them on others."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from heedful.audits import AUDITS, adversary, input_erasure
from heedful.audits.finding import Finding
from heedful.audits.verdict import BORDERS
from heedful.corpora.batches import batches
from heedful.corpora.encoded import EncodedCorpus
from heedful.importance import explain
from heedful.jobs.constructions import MARGIN, NO, YES, Setting, construct
from heedful.jobs.coverage import comparisons, coverage
from heedful.jobs.fitting import COLUMNS, Measured, Score, fit, score
from heedful.jobs.grids import Scale, scale_of, settings
from heedful.jobs.opening import device_of
from heedful.jobs.telling import documents_needed, telling
from heedful.models import AttentionClassifier, read
from heedful.report.dials import draw_dials
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

METHODS = ("random", "attention", "leave-one-out")
BATCH = 64
LEAST_ACCURACY, MOST_EVIDENCE = 0.9, 0.05
"""A trained model counts only if it decides so well and, if it hides, attends so little to it."""
VERSION = 5
"""Raised when constructions or measures change, so that kept steps are computed again."""
SIMULATED = 1
"""The same for what is simulated."""


class Headline(NamedTuple):
    """The measure that speaks for an audit, and whether more of it speaks for attention."""

    audit: str
    measure: str
    method: str = ""
    rises: bool = True


MEASURES: dict[str, Headline] = {
    **{border.key: Headline(border.audit, border.measure, border.method) for border in BORDERS},
    "uniform": Headline("substitution", "decisions changed, against chance", "uniform"),
    "efficiency": Headline("erasure", "efficiency", "attention"),
    "mass": Headline("erasure", "mass removed", "greedy"),
    "one unit": Headline("single-erasure", "only top - only random", "attention"),
    "comprehensiveness": Headline("input-erasure", "comprehensiveness", "attention - random"),
    "sufficiency": Headline("input-erasure", "loss avoided", "attention"),
    "adversary": Headline("adversary", "attention can be moved almost completely", rises=False),
    "confidence": Headline("confidence", "units that decide alike", rises=False),
    "concentration": Headline("concentration", "largest weight"),
    "agreement": Headline("agreement", "Kendall τ", "attention ~ leave-one-out"),
    "evidence": Headline("evidence", "AUPRC", "attention - random"),
}
SLOW = {"adversary": 64}
"""Audits that get only the so many shortest documents of each model."""


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
    folder: Path, scale: Scale, seeds: int, device: torch.device, show: bool
) -> tuple[list[Measured], list[str]]:
    """Every model of both halves, audited; and the names of trained ones that did not learn."""
    todo = [(half, s) for half in scale.halves for s in settings(scale, half, seeds)]
    found, left_out = [], []
    with ticking("calibrating", len(todo), "models", show) as ticker:
        for half, setting in todo:
            stored = _audited(folder, setting, scale.documents, device)
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
    folder: Path, setting: Setting, documents: int, device: torch.device
) -> dict[str, Any]:
    """What the audits say of one model, computed once."""
    result: dict[str, Any] = step(
        folder / "work",
        f"{setting.name}-{documents}",
        partial(measure, setting, documents, device),
        inputs={"setting": asdict(setting), "documents": documents, "version": VERSION},
    )
    return result


def measure(setting: Setting, documents: int, device: torch.device | str = "cpu") -> dict[str, Any]:
    """One constructed model with the estimates of every headline measure."""
    started = time.process_time()
    known = construct(setting, documents)
    model = known.model.to(device)
    findings, accuracy, evidence = _findings(model, known.corpus, setting.seed, device)
    estimates = {}
    for name, headline in MEASURES.items():
        estimate = findings[headline.audit].get(headline.measure, headline.method)
        if estimate is not None:
            estimates[name] = estimate.to_json()
    return {
        "name": setting.name,
        "construction": setting.construction,
        "kind": known.kind,
        "word": known.word,
        "reliance": known.reliance,
        "apart": known.apart,
        "classes": setting.classes,
        "accuracy": accuracy,
        "evidence": evidence,
        "estimates": estimates,
        "cpu_seconds": round(time.process_time() - started, 3),
    }


def _findings(
    model: AttentionClassifier, corpus: EncodedCorpus, seed: int, device: torch.device | str
) -> tuple[dict[str, Finding], float, float]:
    """The findings of every audit, accuracy, and attention on the evidence."""
    rows: dict[str, list[pd.DataFrame]] = {name: [] for name in AUDITS}
    right, on_evidence = [], []
    for batch in batches(corpus.splits["test"], BATCH):
        reading = read(model, batch.to(device))
        importance = explain(model, reading, METHODS, seed)
        right.append((reading.decision == reading.labels).cpu().numpy())
        assert reading.evidence is not None
        on_evidence.append((reading.attention * reading.evidence).sum(-1).cpu().numpy())
        # Two rankings are enough where every ranking means to read the documents again.
        two = {name: importance[name] for name in ("random", "attention")}
        for name, audit in AUDITS.items():
            if name in SLOW and sum(map(len, rows[name])) >= SLOW[name]:
                continue
            if name == "input-erasure":
                found = input_erasure.rows(model, reading, two, seed, modes=("removed",))
            elif name == "adversary":
                found = adversary.rows(model, reading, importance, seed, searched=0.0)
            else:
                found = audit.rows(model, reading, importance, seed)
            rows[name].append(found)
    tables = {name: pd.concat(parts, ignore_index=True) for name, parts in rows.items()}
    tables["substitution"]["label"] = -1  # F1 under each attention is not needed here
    findings = {name: AUDITS[name].summarise(table) for name, table in tables.items()}
    shares = float(np.concatenate(right).mean()), float(np.concatenate(on_evidence).mean())
    return findings, *shares


def _by_size(
    folder: Path,
    scale: Scale,
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


def _table(found: Score, fitted_on: int) -> dict[str, Any]:
    """What every report shows behind the word."""
    caption = (
        f"The verdict on {found.of} held-out models whose right answer is known by construction: "
        f"{found.right} right ({100 * found.share:.1f} %), {found.false_yes} deceiving ones called "
        f"yes. The thresholds were fitted on {fitted_on} other models, with other encoders and "
        f"other documents. Right words on a dial: no up to a known reliance of {NO:g}, yes from "
        f"{YES:g} on; models within {MARGIN:g} of these, and a construction that no audit here "
        "sees through, are listed and not counted."
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
