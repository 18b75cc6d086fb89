"""Two processes on one folder: one gets it, the other is refused, and nothing of the first is lost.

And workers, which end with a killed parent.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.torture.commands import KILLABLE, TRAIN, Killable, Running
from tests.torture.faults import unclean
from tests.torture.kills import Outcome, Trial, contents

PAIRS = {
    "train, two recipes": (
        Killable(TRAIN.format("none+additive", "run")), Killable(TRAIN.format("none+dot", "run"))
    ),
    "train, one recipe": (Killable(TRAIN.format("none+dot", "run")),) * 2,
    "audit, two recipes": tuple(
        Killable(f"audit {one} --data ../texts.csv --config ../tiny.toml --out run --documents 5 "
                 "--audits erasure --methods attention")
        for one in ("none+additive", "none+dot")
    ),
    "reproduce": (KILLABLE["reproduce"],) * 2,
}  # fmt: skip
"""Commands on one new folder."""


def pairs(one: Killable, other: Killable, count: int, place: Path, seed: int = 0) -> list[Outcome]:
    """So many pairs, the second started some time after the first."""
    trial = Trial(one, place)
    alone = [trial.files]
    trial.restore()
    Running(other.words, trial.scratch).ended()
    alone.append(contents(trial.scratch))
    drawn = random.Random(seed)
    found = []
    for _ in range(count):
        trial.restore()
        apart = drawn.choice((0.0, drawn.uniform(0, trial.ended.seconds)))
        first = Running(one.words, trial.scratch, apart="-first")
        time.sleep(apart)
        second = Running(other.words, trial.scratch, apart="-second")
        ends = [first.ended(), second.ended()]
        codes, wrong = [end.code for end in ends], []
        for end in ends:
            if end.code:
                wrong += unclean(end)
                if not any(why in end.said for why in ("in use by", "other settings", "holds a")):
                    wrong.append(f"is refused for another reason: {end.said[-300:]}")
        if 0 not in codes:
            wrong.append("both are refused")
        elif contents(trial.scratch) not in [alone[n] for n in (0, 1) if codes[n] == 0]:
            wrong.append(f"the folder is not as the one that ended well leaves it ({codes})")
        found.append(Outcome(f"{apart:.2f} s apart", int(2 in codes), wrong))
    return found


def gone(processes: Sequence[int], seconds: float) -> bool:
    """Whether all of these processes end within some seconds."""
    end = time.monotonic() + seconds
    while any(_is_alive(one) for one in processes):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _is_alive(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def workers_left(words: str, place: Path) -> list[str]:
    """Kills a command with `--jobs` by SIGKILL; which of its workers work on is wrong."""
    process = subprocess.Popen(
        [sys.executable, "-m", "heedful", *words.split()],
        cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    workers: list[int] = []
    end = time.monotonic() + 120
    while len(workers) < 2 and process.poll() is None and time.monotonic() < end:
        time.sleep(0.2)
        tasks = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        workers = [int(one) for one in tasks.read_text().split()]
    time.sleep(random.uniform(0, 5))  # importing, computing, waiting
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    if len(workers) < 2:
        return [f"{words} started no workers"]
    return [] if gone(workers, 20) else [f"workers of {words} outlive it"]


def main(words: Sequence[str]) -> int:
    """Every pair of commands so many times."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture pairs")
    parser.add_argument("--count", type=int, default=60, help="pairs of each kind")
    parser.add_argument("--killed", type=int, default=5, help="kills of each command with workers")
    given = parser.parse_args(words)
    failures = 0
    print("| two processes on one folder | pairs | one refused | clean |\n|---|---|---|---|")
    for name, (one, other) in PAIRS.items():
        with tempfile.TemporaryDirectory() as place:
            found = pairs(one, other, given.count, Path(place))
        bad = [outcome for outcome in found if outcome.wrong]
        refused = sum(outcome.kills for outcome in found)
        print(f"| {name} | {len(found)} | {refused} | {len(found) - len(bad)} |", flush=True)
        for outcome in bad:
            print(f"{name}, {outcome.when}: {'; '.join(outcome.wrong)}", file=sys.stderr)
        failures += len(bad)
    with tempfile.TemporaryDirectory() as place:
        commands = ("calibrate --jobs 2 --out a", "reproduce quicklook --jobs 2 --out b")
        left = []
        for command in commands * given.killed:
            left += workers_left(command, Path(place))
            shutil.rmtree(Path(place) / command[-1], ignore_errors=True)
    print(f"| parents of workers killed | {2 * given.killed} | | {2 * given.killed - len(left)} |")
    print(*left, sep="\n", file=sys.stderr)
    return failures + len(left)
