"""The commands that are killed, a line each, and a place of tiny files for them to work on."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from tests.forked import started
from tests.torture.file_operations import Watched, note_work

SIZES = """
[model]
embedding_dim = 6
width = 6
"""
TRAINING = """
[train]
epochs = 2
learning_rate = 0.02
checkpoint_seconds = 0
"""
DOCUMENTS = 90
IDLE = 120
"""Seconds without a moment of the processor after which a process counts as hung."""


@dataclass(frozen=True)
class Killable:
    """A command that writes into the folder `run`, as it is typed in a place made by `furnish`."""

    words: str
    before: tuple[str, ...] = ()
    """Commands that made what it starts from."""
    updates: int = 1
    """Most updates of a training between two checkpoints."""
    steps: int = 1
    """Most steps that one kill strikes: one inside the other."""
    then: str = ""
    """What is run after the kills, where it is another command on the same folder."""
    keeps: str = ""
    """How that begins which the killed command may leave for itself where another is run."""


GRID = """
models = ["none+additive", "none+dot"]
corpora = ["../texts.csv"]
documents = 5
audits = ["exchange", "concentration"]
methods = ["attention", "random"]
[settings.tiny.model]
embedding_dim = 6
width = 6
[settings.tiny.train]
epochs = 1
checkpoint_seconds = 0
"""
TRAIN = "train {} --data ../texts.csv --config ../tiny.toml --out {}"
AUDIT = (
    "audit run --audits exchange,erasure,concentration --methods attention,random --documents {}"
)
KILLABLE = {
    "train": Killable(TRAIN.format("gru+additive", "run")),
    "train --from": Killable(
        "train --from first --objective tying:1,3 --out run",
        before=(TRAIN.format("gru+additive", "first"),),
    ),
    "train a Transformer": Killable(
        TRAIN.format("../bert", "run").replace("tiny.toml", "tuning.toml")
    ),
    "audit": Killable(AUDIT.format(9), before=(TRAIN.format("gru+additive", "run"),)),
    "audit other documents": Killable(
        AUDIT.format(6), before=(TRAIN.format("none+additive", "run"), AUDIT.format(9))
    ),
    "audit other documents, then the first again": Killable(
        AUDIT.format(9),
        before=(TRAIN.format("none+additive", "run"), AUDIT.format(6)),
        then=AUDIT.format(6),
        keeps="run/work-",
    ),
    "audit a recipe": Killable(
        TRAIN.format("none+dot", "run").replace("train", "audit", 1) + " --documents 5"
    ),
    "audit a Transformer": Killable(
        "audit ../bert --data ../texts.csv --out run --documents 5 --audits exchange,erasure "
        "--methods attention,random"
    ),
    "reproduce": Killable("reproduce quicklook --seeds 1 --out run", updates=25),
    "calibrate": Killable("calibrate --out run"),
    "sweep": Killable("sweep ../grid.toml --out run", steps=2),
    "explore": Killable(
        "explore run --no-browser --port 0 --data ../texts.csv",
        before=(TRAIN.format("none+additive", "run"),),
    ),
}
"""The live page ends by itself here, a moment after it serves: see `_make_cheap`."""


def furnish(place: Path, words: str = "") -> None:
    """Texts and settings, which all commands share, and a small Transformer for words with one."""
    import pandas as pd

    place.mkdir(parents=True, exist_ok=True)
    said = ("good", "bad", "food", "service", "slow", "friend", "staff", "very", "the", "was")
    rows = []
    for number in range(DOCUMENTS):
        mood = number % 2
        text = [said[(number * 7 + place * (3 + mood)) % len(said)] for place in range(4 + mood)]
        rows.append((" ".join([*text[:2], ("bad", "good")[mood], *text[2:]]), ("neg", "pos")[mood]))
    pd.DataFrame(rows, columns=["text", "label"]).to_csv(place / "texts.csv", index=False)
    (place / "tiny.toml").write_text(SIZES + TRAINING)
    (place / "tuning.toml").write_text(TRAINING)
    (place / "grid.toml").write_text(GRID)
    if "bert" in words:
        from tests import tiny_transformers

        tiny_transformers.save(place / "bert", "bert", ("neg", "pos"))
        for path in (place / "bert").iterdir():
            path.chmod(0o644)  # weights are for their owner alone, as safetensors writes them


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    code: int
    """Its exit code; below 0 the signal that killed it."""
    seconds: float
    moments: int
    """How many moments of file operations it lived through."""
    said: str
    """What it wrote to stderr."""


class Notes(NamedTuple):
    """Where a process tells what it did, outside of the folder that it works in."""

    work: Path
    moments: Path
    said: Path


def notes(scratch: Path, apart: str = "") -> Notes:
    """The places of a folder's notes."""
    return Notes(*(scratch.with_name(f"{scratch.name}.{name}{apart}") for name in Notes._fields))


class Running:
    """A command in a process of its own in `scratch`, which may kill itself at a moment.

    Processes side by side keep their notes `apart`.
    """

    def __init__(
        self, words: str, scratch: Path, kill_at: int | None = None, limits: Any = None,
        apart: str = "",
    ) -> None:  # fmt: skip
        self.words, self.notes = words, notes(scratch, apart)
        self.begun = time.monotonic()
        given = (words.split(), str(scratch), self.notes, kill_at, limits)
        self.process = started(_command, given)

    def ended(self, after: float | None = None) -> Ended:
        """How it ends, by itself or killed after some seconds."""
        if after is not None:
            self.process.join(after)
            if self.process.is_alive():
                self.process.kill()
        hung = "" if self._ends() else f"hung: {IDLE} s without the processor"
        seconds = time.monotonic() - self.begun
        told = [path.read_text(errors="replace") if path.exists() else "" for path in self.notes]
        said = told[2].partition("\nExtension modules")[0]  # by which `faulthandler` ends
        return Ended(self.process.exitcode or 0, seconds, int(told[1] or 0), said + hung)

    def _ends(self) -> bool:
        """Waits for its end; one that computes nothing for a while hangs, and is killed."""
        stat, used, since = Path(f"/proc/{self.process.pid}/stat"), "", time.monotonic()
        while True:
            self.process.join(2)
            if self.process.exitcode is not None:
                return True
            with suppress(OSError):  # it has ended
                now = stat.read_text().rpartition(")")[2].split()[11:13]
                if str(now) != used:
                    used, since = str(now), time.monotonic()
            if time.monotonic() - since > IDLE:
                os.kill(self.process.pid or 0, signal.SIGABRT)  # tells where it hangs
                self.process.join()
                return False


def run(
    words: str, scratch: Path, *, kill_at: int | None = None, after: float | None = None,
    limits: Any = None,
) -> Ended:  # fmt: skip
    """How a command ends that is killed at a moment, or after some seconds, or left alone."""
    return Running(words, scratch, kill_at, limits).ended(after)


def worked(scratch: Path) -> Counter[str]:
    """How often each piece of work was done in all processes in a folder."""
    path = notes(scratch).work
    return Counter(path.read_text().splitlines() if path.exists() else ())


def _command(given: Any, environment: dict[str, str]) -> None:
    words, scratch, beside, kill_at, limits = given
    os.environ.update(environment)
    os.chdir(scratch)
    watched = Watched(kill_at, beside.work, beside.moments)
    for handle, name in ((1, os.devnull), (2, str(beside.said))):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), handle)
    faulthandler.enable()  # where a library crashes
    _make_cheap()
    note_work(watched)
    sys.argv = ["heedful", *words]
    from heedful.__main__ import main

    watched.begin()
    if limits is not None:
        limits()
    try:
        main()
    except Exception:
        traceback.print_exc()
        os._exit(1)


def _make_cheap() -> None:
    """Less of everything that takes long and writes no file."""
    import threading

    import uvicorn

    from heedful.calibration import calibrate
    from heedful.calibration.calibrate import SCALES
    from heedful.report import page
    from heedful.studies import quicklook

    serve = uvicorn.Server.run

    def briefly(server: uvicorn.Server, *given: Any, **options: Any) -> None:
        threading.Timer(0.5, setattr, [server, "should_exit", True]).start()
        serve(server, *given, **options)

    uvicorn.Server.run = briefly  # type: ignore[method-assign]
    page.draw = lambda *given: '<svg role="img"></svg>'
    quick = replace(SCALES["quick"], documents=24, texts=6, simulations=4, every=60)
    SCALES["quick"] = quick
    calibrate.SCALES = SCALES
    quicklook.SIZES = {"smoke": {"train": 80, "dev": 20, "test": 20}}
