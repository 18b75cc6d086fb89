"""Whole audits, against plain forward passes over the same documents in the same run."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

import heedful
from benchmarks.ranking import ranking_rows
from benchmarks.table import Row
from heedful.corpora import Corpus, planted
from heedful.corpora.batches import batches
from heedful.corpora.encoded import Encoded
from heedful.jobs.decider import Decider, read_by
from heedful.jobs.settings import settings_of
from heedful.runs import RunFolder

ASKED: Mapping[str, tuple[str, dict[str, Any], float, float]] = {
    "word": ("the word alone", {"only": "verdict"}, 5, 12),
    "normal": ("everything, effort normal", {}, 20, 70),
    "exhaustive": ("everything, effort exhaustive", {"effort": "exhaustive"}, 50, 400),
}
"""What is asked of an audit, within how many forward passes of all its documents it should be, and
within how many it is."""
GROWN = 3.0
"""Times that many documents at effort normal may cost what few do."""


def audit_rows(documents: int, compared: int, few: int, many: int, repeats: int) -> list[Row]:
    """Audits of a `bilstm+additive` on planted reviews, and what captum takes."""
    with tempfile.TemporaryDirectory() as place, torch.enable_grad():
        out = Path(place)
        corpus = planted(2, sizes={"train": 1600, "dev": 100, "test": documents})
        settings = settings_of({"train": {"epochs": 4}})
        heedful.train("bilstm+additive", corpus, out=out / "trained", settings=settings)
        model = heedful.load(out / "trained")
        found = [_row(model, corpus, out, name, documents, repeats) for name in ASKED]
        found += ranking_rows(model, read_by(model, corpus, None).splits["test"], compared)
        return [*found, _growth(model, out, few, many)]


def _passes(model: Decider, corpus: Corpus, repeats: int) -> float:
    """Seconds of the processor for one plain forward pass over the documents."""
    encoded = read_by(model, corpus, None).splits["test"]
    seconds = []
    with torch.no_grad():
        for _ in range(max(repeats, 3)):
            started = time.process_time()
            _pass(model, encoded)
            seconds.append(time.process_time() - started)
    return sorted(seconds)[len(seconds) // 2]


def _pass(model: Any, encoded: Encoded) -> None:
    model.eval()
    for batch in batches(encoded, 64, max_tokens=32_768):
        model(batch)


def _row(model: Decider, corpus: Corpus, out: Path, name: str, documents: int, repeats: int) -> Row:
    case, given, aim, limit = ASKED[name]
    found = []
    for number in range(min(repeats, 3)):
        before = _passes(model, corpus, repeats)
        started = time.process_time()
        folder = out / f"{name}-{number}"
        heedful.audit(model, corpus, folder, documents=0, **given)
        took = time.process_time() - started
        # A busy machine is slow in turns: plain passes on both sides of the audit.
        passes = (before + _passes(model, corpus, repeats)) / 2
        found.append((took / passes, took, passes))
    ratio, took, passes = sorted(found)[len(found) // 2]
    cost = RunFolder.open(folder).record["audited"]["cost"]
    return Row(
        case=f"audit of bilstm+additive, {documents} planted documents: {case}",
        ours=1000 * took,
        naive=1000 * passes,
        ratio=ratio,
        against="forward pass over them",
        at_most=limit,
        sentence=(
            f"{ratio:.1f} times a plain pass over the documents, which takes {passes:.2f} s of the "
            f"processor; {cost['forward']:.1f} passes forward and {cost['backward']:.1f} "
            f"backward were made. Aimed at: {aim:g} times. Opening the model and starting Python "
            "are not in it."
        ),
    )


def _growth(model: Decider, out: Path, few: int, many: int) -> Row:
    """What an audit at effort normal costs of many documents beside few."""
    seconds = {}
    for count in (few, many):
        corpus = planted(2, sizes={"train": 1, "dev": 1, "test": count})
        encoded = read_by(model, corpus, None)
        started = time.perf_counter()
        heedful.audit(model, encoded, out / f"of-{count}", documents=0)
        seconds[count] = time.perf_counter() - started
    return Row(
        case=f"audit of {many:,} documents at effort normal",
        ours=1000 * seconds[many],
        naive=1000 * seconds[few],
        ratio=seconds[many] / seconds[few],
        against=f"of {few:,}",
        at_most=GROWN,
        sentence=(
            "What is asked is settled after a few hundred documents, however many there are; they "
            "are read by numbers already, so that cutting texts into words is not in it."
        ),
    )
