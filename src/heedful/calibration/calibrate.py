"""Calibrate the verdict: mechanisms with known answers measured, borders fitted, words counted."""

from __future__ import annotations

import multiprocessing
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd

from heedful.audits.asking import Asked
from heedful.audits.examination import Portion
from heedful.audits.exchange import GOES, MATTER, PASSES, READ, SHARE, summarise
from heedful.audits.exchanges import rows
from heedful.calibration.borders import Measured, Score, fit, score
from heedful.calibration.coverage import comparisons, coverage
from heedful.calibration.decoder_words import (
    CalibratedDecoders,
    MeasuredDecoder,
    calibrated_decoders,
    decoder_once,
)
from heedful.calibration.known_decoders import programs
from heedful.calibration.mechanism import Part
from heedful.calibration.mechanisms import MECHANISMS
from heedful.calibration.reader import reader_success
from heedful.calibration.truth import truth_of
from heedful.errors import InputError, unknown
from heedful.runs import (
    commit,
    locked,
    now,
    remove_leftovers,
    step,
    versions,
    write_csv,
    write_json,
)
from heedful.runs.orphans import end_with_pool
from heedful.runs.progress import ticking
from heedful.statistics.association import spearman
from heedful.statistics.estimates import Estimate, per_cent

VERSION, SIMULATED = 7, 4
"""Raised when mechanisms or the rule change, or what is simulated does, so that kept steps are
computed again."""
WORK = "work"
"""The folder of finished steps."""
UNTELLABLE = Estimate(np.nan, np.nan, np.nan, 0, "none")


@dataclass(frozen=True)
class CalibrationSize:
    """How much is done."""

    documents: int
    texts: int
    """Texts that the right answer looks at."""
    simulations: int
    every: int
    """Every so many mechanisms are taken, and none that is trained, where it is above 1."""
    answers: int
    """Of each decoder."""

    def names(self) -> list[str]:
        """The mechanisms of this scale."""
        if self.every == 1:
            return list(MECHANISMS)
        cheap = [name for name, one in MECHANISMS.items() if one.kind not in TRAINED]
        return cheap[:: self.every]

    def decoders(self) -> list[str]:
        """The decoders of this scale."""
        return list(programs())[:: self.every]


TRAINED = ("trained", "trained negation", "shortcuts", "taught", "frozen", "learnt", "noise",
           "learnt votes", "learnt places", "learnt conjunctions", "learnt topics",
           "learnt with noise", "learnt imbalance", "learnt idioms", "learnt long texts",
           "learnt sentences", "learnt absence", "learnt hiding", "learnt parity")  # fmt: skip
SCALES = {
    "quick": CalibrationSize(100, 40, 100, 14, 40),
    "full": CalibrationSize(200, 100, 1000, 1, 40),
}


@dataclass(frozen=True)
class Calibrated:
    """What a calibration leaves."""

    folder: Path
    borders: Mapping[str, Mapping[str, float]]
    scores: Mapping[str, Score]
    """By part: `open` mechanisms, `blind` and `opponent` ones where there are some."""
    mechanisms: int
    answers: CalibratedDecoders
    """The word about answers, on decoders."""
    seconds: float

    def lines(self) -> list[str]:
        """What a person wants to know of it, for the terminal."""
        said = [
            f"{part}: right on {one.right} of {one.right.n} mechanisms; "
            f"{len(one.deceivers_called_yes)} that should be no were called yes."
            for part, one in self.scores.items()
        ]
        said += [
            f"answers, {part.replace('_', ' ')}: right on {one.right} of {one.right.n} decoders."
            for part, one in self.answers.scores.items()
        ]
        return [*said, f"{self.mechanisms} models in {self.seconds:.0f} s; tables: {self.folder}"]


def calibrate(
    out: str | Path = "results/calibration",
    *,
    scale: str = "quick",
    seed: int = 0,
    jobs: int = 1,
    refit: bool = False,
    show: bool = False,
) -> Calibrated:
    """The rule's words on all mechanisms, with borders fitted to all but the opponent's if `refit`.

    Without it the borders are those in the package, frozen before the blind mechanisms were
    written. Leaves `calibration.json` (what the verdict loads when it lies in the package) and a
    CSV per table in the folder `out`; mechanisms that were measured before are not measured again.
    """
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    if jobs < 1:
        raise InputError(f"--jobs must be at least 1, got {jobs}.")
    chosen, folder = SCALES[scale], Path(out)
    started = time.perf_counter()
    with locked(folder) as may_write:
        if (folder / WORK).is_dir():
            remove_leftovers(folder)
        measured = [Measured.from_json(one) for one in _measured(folder, chosen, seed, jobs, show)]
        parts = {part: [m for m in measured if m.part == part] for part in get_args(Part)}
        parts = {part: some for part, some in parts.items() if some}
        known = [one for one in measured if one.part != "opponent"]
        fitted = fit(known) if refit else _frozen()
        decoders = calibrated_decoders(_decoders(folder, chosen, seed, jobs, show), refit)
        at = {side: border["value"] for side, border in fitted.items()}
        scores = {part: score(some, at) for part, some in parts.items()}
        simulated = step(
            folder / WORK,
            "statistics",
            lambda: {
                "coverage": coverage(chosen.simulations),
                "comparisons": comparisons(chosen.simulations),
            },
            inputs={"simulations": chosen.simulations, "version": SIMULATED},
        )
        file = folder / "calibration.json"
        if may_write or not file.is_file():
            _write(
                folder,
                mechanisms=table(measured, at),
                decoders=decoders.table,
                coverage=pd.DataFrame(simulated["coverage"]),
                comparisons=pd.DataFrame(simulated["comparisons"]),
            )
            stored = {
                "borders": fitted,
                "table": _shown(parts, scores, at),
                "scores": scores,
                "reader": {part: _reader(some) for part, some in parts.items()},
                "coverage": simulated["coverage"],
                "answers": decoders,
                "provenance": {
                    "command": f"heedful calibrate --scale {scale}",
                    "commit": commit(),
                    "processor": platform.machine(),
                    "at": now(),
                    "versions": versions(),
                },
            }
            write_json(file, stored)
    elapsed = round(time.perf_counter() - started, 1)
    return Calibrated(folder, fitted, scores, len(measured), decoders, elapsed)


def _reader(measured: Sequence[Measured]) -> Estimate:
    """Whether the shares order models as a reader's success does: rank correlation over models."""
    told = [(one, one.reader) for one in measured if one.reader is not None]
    shares, success = [one.share.value for one, _ in told], [reader for _, reader in told]
    return spearman(shares, success, [one.name for one, _ in told])


def _frozen() -> Mapping[str, Mapping[str, float]]:
    from heedful.audits.verdict import calibration

    stored = calibration()
    assert stored is not None
    found: Mapping[str, Mapping[str, float]] = stored["borders"]
    return found


def _measured(
    folder: Path, scale: CalibrationSize, seed: int, jobs: int, show: bool
) -> Iterator[dict[str, Any]]:
    """Every mechanism of a scale with its right answer and what the rule says of it."""
    ask = partial(measured_once, folder=folder, seed=seed, scale=scale)
    return _asked(ask, scale.names(), jobs, "mechanisms", show)


def _decoders(
    folder: Path, scale: CalibrationSize, seed: int, jobs: int, show: bool
) -> list[MeasuredDecoder]:
    """Every decoder of a scale with its right word and what an audit measures of it."""
    ask = partial(decoder_once, folder=folder / WORK, seed=seed, answers=scale.answers)
    found = _asked(ask, scale.decoders(), jobs, "decoders", show)
    return [MeasuredDecoder.from_json(one) for one in found]


def _asked(
    ask: Callable[[str], dict[str, Any]], names: Sequence[str], jobs: int, what: str, show: bool
) -> Iterator[dict[str, Any]]:
    with ticking("calibrating", len(names), what, show) as ticker:
        if jobs == 1:
            for name in names:
                yield ask(name)
                ticker.advance()
            return
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=end_with_pool) as pool:
            for one in pool.map(ask, names):
                yield one
                ticker.advance()


def measured_once(name: str, folder: Path, seed: int, scale: CalibrationSize) -> dict[str, Any]:
    """One mechanism, measured once: a finished step is read again."""
    sizes = {"documents": scale.documents, "texts": scale.texts}
    result: dict[str, Any] = step(
        folder / WORK,
        f"{name.replace(' ', '-').replace('%', '')}-{seed}-{scale.documents}",
        partial(measure, name, seed, **sizes),
        inputs={"name": name, "seed": seed, "version": VERSION} | sizes,
    )
    return result


def measure(name: str, seed: int = 0, documents: int = 200, texts: int = 100) -> dict[str, Any]:
    """A mechanism's right answer, and what the rule measures of it."""
    mechanism = MECHANISMS[name]
    built = mechanism.build(seed, documents)
    right = truth_of(built, seed, texts)
    test, portion = built.corpus.splits["test"], Portion(64, None)
    table = rows(built.model, test, seed, at_once=portion)
    reader = reader_success(Asked(built.model, test, at_once=portion), seed)
    found = summarise(table)
    tests = {test: found.get(test) or UNTELLABLE for test in (GOES, MATTER, PASSES)}
    cost = found.get(READ) or UNTELLABLE
    return {
        "name": name,
        "kind": mechanism.kind,
        "part": mechanism.part,
        "dial": mechanism.dial,
        "word": right.word,
        "is_near": right.is_near,
        "is_deceiver": right.is_deceiver,
        "truth": {
            "both": right.both.value,
            "pointing": right.pointing.value,
            "mediation": right.mediation.value,
        },
        "share": (found.get(SHARE) or UNTELLABLE).to_json(),
        "tests": {test: estimate.to_json() for test, estimate in tests.items()},
        "is_overturned": bool(found.drawn.get("overturned")),
        "reader": None if reader is None else reader.attention.value,
        "accuracy": right.accuracy,
        "passes": None if np.isnan(cost.value) else cost.value,
    }


def table(measured: Sequence[Measured], at: Mapping[str, float]) -> pd.DataFrame:
    """A row per mechanism: the right word and the rule's, with the shares behind both."""
    found = []
    for one in measured:
        found.append(
            {
                "mechanism": one.name,
                "kind": one.kind,
                "part": one.part,
                "right word": one.word + (" (near)" if one.is_near else ""),
                "word": one.said(at),
                "right share": one.truth["both"],
                "share": one.share.value,
                "low": one.share.low,
                "high": one.share.high,
                "points, right": one.truth["pointing"],
                "mediates, right": one.truth["mediation"],
                **{test: estimate.value for test, estimate in one.tests.items()},
                "deceiver": one.is_deceiver,
                "reader": one.reader,
                "accuracy": one.accuracy,
                "passes": one.passes,
            }
        )
    return pd.DataFrame(found)


def _write(folder: Path, **tables: pd.DataFrame) -> None:
    for name, one in tables.items():
        write_csv(folder / f"{name}.csv", one, "%.4g")


def _shown(
    parts: Mapping[str, Sequence[Measured]],
    scores: Mapping[str, Score],
    at: Mapping[str, float],
) -> dict[str, Any]:
    """What every report shows behind the word: how often it was right, by kind of mechanism."""
    lines: list[list[str | int]] = []
    for part, some in parts.items():
        kinds: dict[tuple[str, str], list[Measured]] = {}
        for one in some:
            kinds.setdefault((one.kind, one.word), []).append(one)
        for (kind, word), group in sorted(kinds.items()):
            said = [one.said(at) for one in group]
            counts = [said.count(each) for each in ("yes", "partly", "no", "cannot tell")]
            lines.append([f"{kind} ({part})", word, len(group), *counts])
    told = "; ".join(
        f"{part}: right on {per_cent(one.right.value)} "
        f"[{100 * one.right.low:.0f}, {100 * one.right.high:.0f}] of {one.right.n}, "
        f"{len(one.deceivers_called_yes)} that should be no called yes"
        for part, one in scores.items()
    )
    columns = ["kind of mechanism", "right word", "models", "yes", "partly", "no", "cannot tell"]
    caption = (
        "The verdict on mechanisms whose right answer is known by changing words of the input; all "
        f"steps of a dial count as one. {told[0].upper()}{told[1:]}."
    )
    return {"columns": columns, "rows": lines, "caption": caption}
