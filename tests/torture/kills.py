"""Kills by SIGKILL, each command started again, and what is then compared with one left alone.

Started again it must end well, with every file as an undisturbed run leaves it (times aside), none
that the other does not have, and no piece of work done more often than a kill can cost.

    python -m tests.torture kills --log kills.jsonl     goes on where it stopped; the same table
    python -m tests.torture kills --from 100 --count 20 some rounds of every command

A round is a few kills of one command on its way to its end, the same for the same number: four of
five begin at a file operation (all come in turn, shuffled by the seed), the fifth is by the clock.
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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests.torture.commands import KILLABLE, Killable, furnish, notes, run, worked
from tests.torture.records import Records

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
    first: int = 0
    """The moment of the first kill, of those at file operations."""


def round_of(trial: Trial, command: str, number: int, seed: int = 0) -> Outcome:
    """Some kills of a command on its way, the same for the same number."""
    moments, drawn = trial.ended.moments, random.Random(f"{command}/{seed}/{number}")
    if not moments or number % 5 == 4:
        return kills_after(trial, RESTARTS, drawn)[0]
    order = random.Random(f"{command}/{seed}").sample(range(1, moments + 1), moments)
    first = order[(number - number // 5) % moments]
    later = [drawn.randint(1, max(moments // 3, 1)) for _ in range(RESTARTS - 1)]
    return kills_at(trial, [first, *later], RESTARTS)[0]


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
        wrong = list(trial.wrong(len(killed)))
        found.append(Outcome(f"moments {killed}", len(killed), wrong, group[0]))
    return found


def kills_after(trial: Trial, kills: int, drawn: random.Random) -> list[Outcome]:
    """Kills the command at drawn times, several times before it is left alone.

    Where none came before its end, those that follow come sooner: the first run took longer.
    """
    found: list[Outcome] = []
    most = trial.ended.seconds
    while (left := kills - sum(one.kills for one in found)) > 0:
        trial.restore()
        times = [drawn.uniform(0, most) for _ in range(min(RESTARTS, left))]
        codes = [run(trial.one.words, trial.scratch, after=time).code for time in times]
        killed = codes.count(-signal.SIGKILL)
        most = most if killed else most / 2
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
        if one.then:
            run(one.then, self.scratch)
        self.files, self.work = contents(self.scratch), worked(self.scratch)

    def restore(self) -> None:
        """Puts the folder back."""
        shutil.rmtree(self.scratch)
        shutil.copytree(self.start, self.scratch)
        for path in notes(self.scratch):
            path.unlink(missing_ok=True)

    def finish(self) -> None:
        """Leaves the folder as the undisturbed command leaves it."""
        self.restore()
        run(self.one.words, self.scratch)

    def wrong(self, kills: int | None) -> Iterator[str]:
        """Runs the command to its end; what is then not as it should be, after so many kills."""
        ended = run(self.one.then or self.one.words, self.scratch)
        if ended.code != 0:
            yield f"ends with code {ended.code}: {ended.said[-600:]}"
            return
        found = contents(self.scratch)
        for name in sorted({*found, *self.files}):
            if name not in self.files:
                if self.one.keeps and name.startswith(self.one.keeps):
                    continue
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
        if sum(more.values()) > kills * self.one.steps:
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
    """Rounds of kills of every command, and a table of all that the log holds of this commit."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture kills")
    parser.add_argument("--kills", type=int, default=600, help="in all; 0: at every operation")
    parser.add_argument("--only", nargs="*", default=[*KILLABLE], choices=[*KILLABLE])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--from", type=int, default=0, dest="start", help="first round")
    parser.add_argument("--count", type=int, help="rounds of each command, whatever they kill")
    parser.add_argument("--log", type=Path, help="a line for each round; those in it are not rerun")
    given = parser.parse_args(words)
    share = -(-given.kills // len(given.only))
    with Records(given.log) as records:
        for command in given.only:
            done = records.of(command)
            if given.count is None and share and sum(one["kills"] for one in done) >= share:
                continue
            with tempfile.TemporaryDirectory() as place:
                try:
                    trial = Trial(KILLABLE[command], Path(place))
                except AssertionError as error:  # it does not even run undisturbed
                    records.add(command, round=-1, moments=0, kills=0, first=0, wrong=[str(error)])
                    continue
                _rounds(trial, command, given, share, records)
        return _table(records.rows)


def _rounds(
    trial: Trial, command: str, given: argparse.Namespace, share: int, records: Records
) -> None:
    """Rounds until they are as many as asked for, or have killed often enough."""
    moments = trial.ended.moments
    every = moments * 5 // 4 + 1 if moments else 20
    most = given.count or (every if not share else 10 * share)
    done = records.of(command)
    known = {one["round"] for one in done if one["seed"] == given.seed}
    kills = sum(one["kills"] for one in done)
    for number in range(given.start, given.start + most):
        if given.count is None and share and kills >= share:
            return
        if number in known:
            continue
        found = round_of(trial, command, number, given.seed)
        kills += found.kills
        records.add(
            command, seed=given.seed, round=number, moments=moments, kills=found.kills,
            first=found.first, when=found.when, wrong=found.wrong,
        )  # fmt: skip


def _table(rows: Sequence[Mapping[str, Any]]) -> int:
    """Prints a row for each command and commit; gives the number of rounds not survived."""
    print("| command | commit | file operations, before and after | begun at | kills | survived |")
    print("|---|---|---|---|---|---|")
    total = bad = 0
    for name, commit in sorted({(row["of"], row["commit"]) for row in rows}):
        some = [row for row in rows if (row["of"], row["commit"]) == (name, commit)]
        kills, wrong = sum(row["kills"] for row in some), [row for row in some if row["wrong"]]
        at = len({row["first"] for row in some} - {0})
        lost = sum(max(row["kills"], 1) for row in wrong)
        most = max(row["moments"] for row in some)
        print(f"| `{name}` | {commit} | {most:,} | {at:,} | {kills} | {kills - lost} |")
        total, bad = total + kills, bad + lost
        for row in wrong:
            said = f"{name}, round {row['round']}, {row.get('when')}: {'; '.join(row['wrong'])}"
            print(said, file=sys.stderr, flush=True)
    print(f"| all | | | | {total} | {total - bad} |", flush=True)
    return bad
