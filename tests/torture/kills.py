"""Kills by SIGKILL, each command started again, and what is then compared with one left alone.

Started again it must end well, with every file as an undisturbed run leaves it (times aside), none
that the other does not have, and no piece of work done more often than a kill can cost.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests.torture.commands import KILLABLE, Killable, furnish, notes, run, worked

TIMES = ("at", "seconds", "created", "made", "time")
"""Keys of JSON files that tell of clocks."""
_CLOCKS = re.compile(r"20\d\d-\d\d-\d\d[T ][\d:]+(\+00:00)?|\d+ s in \d+ steps, \d+ s")
RESTARTS = 3
"""Kills on its way before a command is left alone."""


class Outcome(NamedTuple):
    """What came of some kills and a start afterwards."""

    when: str
    kills: int
    wrong: list[str]
    """A sentence for each thing that is not as it should be."""


def kills_at(trial: Trial, moments: Sequence[int], times: int = 1) -> list[Outcome]:
    """Kills the command at these moments of its file operations, so many times on its way.

    What goes on has fewer operations left: it is killed within the first third of all moments.
    """
    found = []
    early = trial.ended.moments // 3
    for group in (moments[start : start + times] for start in range(0, len(moments), times)):
        trial.restore()
        killed = []
        for moment in (group[0], *(1 + later % early for later in group[1:])):
            if run(trial.one.words, trial.scratch, kill_at=moment).code == -signal.SIGKILL:
                killed.append(moment)
        found.append(Outcome(f"moments {killed}", len(killed), list(trial.wrong(len(killed)))))
    return found


def kills_after(trial: Trial, kills: int, seed: int = 0) -> list[Outcome]:
    """Kills the command at times drawn by the seed, several times before it is left alone."""
    found: list[Outcome] = []
    drawn = random.Random(seed)
    while (left := kills - sum(one.kills for one in found)) > 0:
        trial.restore()
        times = [drawn.uniform(0, trial.ended.seconds) for _ in range(min(RESTARTS, left))]
        codes = [run(trial.one.words, trial.scratch, after=time).code for time in times]
        killed = codes.count(-signal.SIGKILL)
        found.append(Outcome(f"after {times} s", killed, list(trial.wrong(killed))))
    return found


def spread(moments: int, count: int) -> list[int]:
    """So many moments, evenly over all."""
    if count >= moments:
        return list(range(1, moments + 1))
    return sorted({1 + place * (moments - 1) // max(count - 1, 1) for place in range(count)})


class Trial:
    """A command in a folder that can be put back as it was before it."""

    def __init__(self, one: Killable, folder: Path) -> None:
        self.one, self.scratch = one, folder / "scratch"
        self.start = folder / "start"
        furnish(folder, one.words)
        self.scratch.mkdir()
        for words in one.before:
            ended = run(words, self.scratch)
            assert ended.code == 0, f"{words}: {ended.said}"
        shutil.copytree(self.scratch, self.start)
        self.restore()
        self.ended = run(one.words, self.scratch)
        assert self.ended.code == 0, f"{one.words}: {self.ended.said}"
        self.files, self.work = contents(self.scratch), worked(self.scratch)

    def restore(self) -> None:
        """Puts the folder back."""
        shutil.rmtree(self.scratch)
        shutil.copytree(self.start, self.scratch)
        for path in notes(self.scratch):
            path.unlink(missing_ok=True)

    def wrong(self, kills: int | None) -> Iterator[str]:
        """Runs the command to its end; what is then not as it should be, after so many kills."""
        ended = run(self.one.words, self.scratch)
        if ended.code != 0:
            yield f"ends with code {ended.code}: {ended.said[-600:]}"
            return
        found = contents(self.scratch)
        for name in sorted({*found, *self.files}):
            if name not in self.files:
                yield f"{name} stays behind"
            elif name not in found:
                yield f"{name} is missing"
            elif found[name] != self.files[name]:
                yield f"{name} differs"
        if kills is None:
            return
        more = worked(self.scratch) - self.work
        updates = more.pop("update", 0)
        if updates > kills * self.one.updates:
            yield f"{updates} updates were made again after {kills} kills"
        if sum(more.values()) > kills:
            yield f"{dict(more)} were done again after {kills} kills"


def contents(folder: Path) -> dict[str, Any]:
    """All files and folders inside, with what they hold apart from times and the folder's name."""
    found: dict[str, Any] = {}
    data: Any
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        data = b"" if path.is_dir() else path.read_bytes()
        with suppress(ValueError):  # a torn file is what it is
            if path.suffix == ".json":
                data = _timeless(json.loads(data))
            elif path.name == "journal.jsonl":  # a killed step has a line and is done again
                data = sorted({json.loads(line)["step"] for line in data.splitlines()})
            elif path.suffix in (".html", ".svg"):
                data = _CLOCKS.sub("", data.decode())
        found[name] = data
    return found


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _timeless(one) for name, one in value.items() if name not in TIMES}
    if isinstance(value, list):
        return [_timeless(one) for one in value]
    return value


def main(words: Sequence[str]) -> int:
    """Kills every command at least so often, a fifth by the clock, the rest at file operations."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture kills")
    parser.add_argument("--kills", type=int, default=600, help="in all; 0: at every operation")
    parser.add_argument("--only", nargs="*", default=[*KILLABLE], choices=[*KILLABLE])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(words)
    share = -(-given.kills // len(given.only))
    wrong = 0
    print("| command | moments | kills | survived |\n|---|---|---|---|", flush=True)
    for command in given.only:
        with tempfile.TemporaryDirectory() as place:
            trial = Trial(KILLABLE[command], Path(place))
            found = kills_after(trial, share // 5 or 20, given.seed)
            count = share - share // 5 if share else trial.ended.moments
            moments = spread(trial.ended.moments, count)
            random.Random(given.seed).shuffle(moments)
            found += kills_at(trial, moments, RESTARTS)
        bad = [one for one in found if one.wrong]
        wrong += len(bad)
        kills, survived = (sum(one.kills for one in some) for some in (found, bad))
        print(f"| {command} | {trial.ended.moments} | {kills} | {kills - survived} |", flush=True)
        for one in bad:
            print(f"{command}, {one.when}: {'; '.join(one.wrong)}", file=sys.stderr, flush=True)
    return wrong
