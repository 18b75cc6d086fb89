"""Resources that run out: one sentence, exit code 2, and the same command ends well afterwards.

A full disk and one that cannot be written are real (a small tmpfs; mounting needs root), as are the
limits of the system on the size of a file and on memory.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.torture.commands import KILLABLE, TRAIN, Ended, furnish, run
from tests.torture.kills import Outcome, Trial, contents, spread
from tests.torture.records import Records

NOBODY = 65534
MEGABYTES = (1, 4, 16, 64)
"""Room for memory beyond what a process has when it starts."""
PAGE = 4096


def unclean(ended: Ended, *, said: str = "") -> Iterator[str]:
    """What is wrong with the way a command that lacked something ended."""
    lines = ended.said.strip().splitlines()
    if ended.code != 2:
        yield f"ends with code {ended.code}, expected 2: {ended.said[-600:]}"
    elif not lines or not lines[-1].startswith("heedful: ") or "Traceback" in ended.said:
        yield f"says no sentence: {ended.said[-600:]}"
    elif said and said not in lines[-1]:
        yield f"does not say {said!r}: {lines[-1][:300]}"


@contextmanager
def mounted(folder: Path, size: int) -> Iterator[Callable[[str], None]]:
    """A file system of so many bytes at a folder; gives what changes its options."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield partial(_remount, folder)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def _remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True)


def why_no_mount() -> str:
    """Why no file system can be mounted here; nothing where one can."""
    if os.geteuid() != 0:
        return "mounting a small file system needs root"
    with tempfile.TemporaryDirectory() as folder:
        tried = ["mount", "-t", "tmpfs", "-o", "size=4096", "tmpfs", folder]
        done = subprocess.run(tried, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            subprocess.run(["umount", "-l", folder], check=True)
        return done.stderr.strip()


def full_disk(trial: Trial, count: int) -> list[Outcome]:
    """The command on disks of so many sizes, all too small; then there is room."""
    trial.finish()
    start, end = _pages(trial.start), _pages(trial.scratch)
    found = []
    for pages in (start + room for room in spread(max(end - start, 1), count)):
        shutil.rmtree(trial.scratch)
        trial.scratch.mkdir()
        with mounted(trial.scratch, PAGE * pages) as remount:
            shutil.copytree(trial.start, trial.scratch, dirs_exist_ok=True)
            ended = run(trial.one.words, trial.scratch)
            # Less than all of a command may fit: its files are smaller than at their largest.
            wrong = list(unclean(ended, said="No space left")) if ended.code else []
            remount("size=1g")
            wrong += trial.wrong(None)
        found.append(Outcome(f"disk of {pages} pages", int(ended.code != 0), wrong))
    return found


def limited_files(trial: Trial, sizes: Sequence[int]) -> list[Outcome]:
    """The command where no file may be larger than so many bytes; then any may."""
    found = []
    for size in sizes:
        trial.restore()
        ended = run(trial.one.words, trial.scratch, limits=partial(_limit_files, size))
        wrong = list(unclean(ended, said="File too large")) if ended.code else []
        wrong += trial.wrong(None)
        found.append(Outcome(f"files of {size} bytes", int(ended.code != 0), wrong))
    return found


def limited_memory(trial: Trial, rooms: Sequence[int]) -> list[Outcome]:
    """The command with so many bytes of memory more than it starts with; then with all."""
    found = []
    for room in rooms:
        trial.restore()
        ended = run(trial.one.words, trial.scratch, limits=partial(_limit_memory, room))
        wrong = list(unclean(ended, said="memory")) if ended.code else []
        wrong += trial.wrong(None)
        found.append(Outcome(f"memory of {room / 1e6:.1f} MB", int(ended.code != 0), wrong))
    return found


def read_only(trial: Trial, is_finished: bool) -> list[Outcome]:
    """The command on a disk that cannot be written, and as a user who may not write there.

    What is finished is given back; what is not is refused, and nothing is changed.
    """
    found = []
    for how in ("disk", "user"):
        trial.finish() if is_finished else trial.restore()
        kept = trial.start.with_name("kept")
        shutil.copytree(trial.scratch, kept)
        before = contents(kept)
        if how == "disk":
            with mounted(trial.scratch, 1 << 30) as remount:
                shutil.copytree(kept, trial.scratch, dirs_exist_ok=True)
                remount("ro")
                ended = run(trial.one.words, trial.scratch)
                after = contents(trial.scratch)
        else:
            for path in (trial.scratch, *trial.scratch.rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o644)
            ended = run(trial.one.words, trial.scratch, limits=_become_nobody)
            after = contents(trial.scratch)
        shutil.rmtree(kept)
        wrong = [
            f"{name} was changed"
            for name in {*before, *after}
            if before.get(name, 0) != after.get(name, 0)
        ]
        if not is_finished:
            wrong += unclean(ended, said="Cannot write")
        elif ended.code != 0:
            wrong.append(f"ends with code {ended.code}: {ended.said[-600:]}")
        found.append(Outcome(f"read-only {how}", 1, wrong))
    return found


def long_paths(place: Path) -> list[Outcome]:
    """Names and paths that are longer than the system takes."""
    name, deep = "x" * 300, "/".join(["x" * 200] * 25)
    words = [TRAIN.format("none+dot", one) for one in (name, deep)]
    words += [f"audit none+dot --data ../{name}.csv --out run", f"audit {name}", f"report {deep}"]
    words += [f"train --from {name} --out run", f"calibrate --out {name}"]
    words += [f"reproduce quicklook --out {deep}", f"audit hf:{name} --data ../texts.csv --out run"]
    scratch = place / "scratch"
    scratch.mkdir(exist_ok=True)
    found = []
    for one in words:
        ended = run(one, scratch)
        wrong = list(unclean(ended))
        wrong += [f"{path.name[:20]} stays behind" for path in scratch.iterdir()]
        found.append(Outcome(" ".join(word[:20] for word in one.split()[:3]), 1, wrong))
    return found


def _pages(folder: Path) -> int:
    """Pages of memory that the files and folders inside take on a tmpfs."""
    return sum(-(-path.stat().st_size // PAGE) for path in folder.rglob("*") if path.is_file())


def _limit_files(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def _limit_memory(room: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + room
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _become_nobody() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def main(words: Sequence[str]) -> int:
    """Every command under every fault, a row for each kind of fault and commit in the log."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture faults")
    parser.add_argument("--only", nargs="*", default=[*KILLABLE, PATHS], choices=[*KILLABLE, PATHS])
    parser.add_argument("--count", type=int, default=6, help="sizes of each limit")
    parser.add_argument("--log", type=Path, help="a line for each try; what is in it is not rerun")
    given = parser.parse_args(words)
    no_mount = why_no_mount()
    with Records(given.log) as records:
        for command in given.only:
            todo = [kind for kind in KINDS if command != PATHS and not (no_mount and kind in DISKS)]
            todo = [kind for kind in todo or [PATHS] if not _done(records, kind, command)]
            if not todo:
                continue
            with tempfile.TemporaryDirectory() as folder:
                os.chmod(folder, 0o755)
                if command == PATHS:
                    furnish(Path(folder))
                    _keep(records, PATHS, PATHS, long_paths(Path(folder)))
                    continue
                trial = Trial(KILLABLE[command], Path(folder))
                for kind in todo:
                    _keep(records, kind, command, KINDS[kind](trial, given.count))
        print("| fault | commit | tried | clean |\n|---|---|---|---|")
        for kind, commit in sorted({(row["of"], row["commit"]) for row in records.rows}):
            some = [row for row in records.rows if (row["of"], row["commit"]) == (kind, commit)]
            clean = sum(not row["wrong"] for row in some)
            print(f"| {kind} | {commit} | {len(some)} | {clean} |")
        if no_mount:
            print(f"Without full and read-only disks: {no_mount}.")
        bad = [row for row in records.rows if row["wrong"]]
    for row in bad:
        said = f"{row['command']}, {row['when']}: {'; '.join(row['wrong'])}"
        print(said, file=sys.stderr, flush=True)
    return len(bad)


PATHS = "paths too long"
DISKS = ("disk full", "finished run, read-only", "unfinished run, read-only")
KINDS: dict[str, Callable[[Trial, int], list[Outcome]]] = {
    # stderr is a file, too: below 2 kB there would be no room for the sentence
    "file-size limit": lambda trial, count: limited_files(trial, [2048 << n for n in range(count)]),
    "memory limit": lambda trial, count: limited_memory(
        trial, [1_000_000 * size for size in MEGABYTES]
    ),
    "disk full": full_disk,
    "finished run, read-only": lambda trial, count: read_only(trial, is_finished=True),
    "unfinished run, read-only": lambda trial, count: (
        read_only(trial, is_finished=False) if trial.ended.moments else []
    ),
}
"""A command that writes nothing is never unfinished."""


def _done(records: Records, kind: str, command: str) -> bool:
    return any(row["command"] == command for row in records.of(kind))


def _keep(records: Records, kind: str, command: str, found: Sequence[Outcome]) -> None:
    for one in found:
        records.add(kind, command=command, when=one.when, struck=one.kills, wrong=one.wrong)
