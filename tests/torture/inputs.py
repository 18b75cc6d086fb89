"""Damaged and hostile inputs for every reader: each is read, or refused in one sentence.

    python -m tests.torture inputs                     the long run, and its table
    python -m tests.torture inputs --only CSV --case 17    one input again, with its traceback

An input fails if anything but an `InputError` of one visible line comes of it, if it takes longer
than five seconds of the processor or more than a gigabyte, or if it ends the process.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.sharedctypes import Synchronized, SynchronizedArray
from pathlib import Path
from random import Random
from types import FrameType
from typing import NamedTuple

import pyarrow as pa

from heedful.errors import InputError
from tests.torture.opened import OPENED
from tests.torture.reader import Family, Reader, sentence
from tests.torture.readers import FAMILIES

ALL: dict[str, Family] = FAMILIES | OPENED
SHARED = Path("/dev/shm")
SECONDS = 5
"""Of the processor that one input may take."""
MEMORY = 1 << 30
"""Bytes that one input may take."""


class Failure(NamedTuple):
    """An input that was not survived."""

    case: int
    said: str


class Outcome(NamedTuple):
    """What became of the inputs of one reader."""

    tried: int
    refused: int
    failures: tuple[Failure, ...]
    slowest: float
    """Seconds of the slowest input."""


class TooSlow(BaseException):
    """An input took longer than it may; not to be caught by who is slow."""


def input_of(name: str, reader: Reader, case: int, seed: int = 0) -> bytes:
    """The bytes of one input, the same for the same number."""
    return reader.damage(reader.seeds, Random(f"{name}/{seed}/{case}"))


def attempt(reader: Reader, data: bytes) -> str | None:
    """None if the input was read, a sentence if it was refused; anything else is raised."""
    try:
        reader.read(data)
    except InputError as error:
        return sentence(error)
    return None


def limited() -> None:
    """Bounds the memory of this process, beyond what Arrow sets aside when it is first asked."""
    from resource import RLIMIT_AS, setrlimit

    pa.array(["one"])
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    setrlimit(RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)


def _ring(number: int, frame: FrameType | None) -> None:
    raise TooSlow(f"more than {SECONDS} seconds")


def _work(
    name: str,
    folder: Path,
    cases: range,
    seed: int,
    at: Synchronized[int],
    told: SynchronizedArray[float],
    pipe: multiprocessing.connection.Connection,
) -> None:
    """Tries inputs in a process of its own; what it finds goes through the pipe."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    reader = ALL[name].make(Path(tempfile.mkdtemp(dir=folder)))  # here: threads survive no fork
    signal.signal(signal.SIGPROF, _ring)
    limited()
    for case in cases:
        at.value = case
        data = input_of(name, reader, case, seed)
        started = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            told[0] += attempt(reader, data) is not None
        except BaseException as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(last.filename).name}:{last.lineno}"
            pipe.send(Failure(case, f"{type(error).__name__} at {place}: {str(error)[:160]!r}"))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        told[1] = max(told[1], time.process_time() - started)
    pipe.send(None)


def tried(
    name: str, folder: Path, count: int, seed: int = 0, say: Callable[[str], None] = print
) -> Outcome:
    """Tries so many inputs; a process that one of them ends is started again behind it."""
    context = multiprocessing.get_context("fork")
    at: Synchronized[int] = context.Value("q", 0)
    told: SynchronizedArray[float] = context.Array("d", 2)  # refused, and the slowest's seconds
    failures: list[Failure] = []
    start = 0

    def failed(case: int, said: str) -> None:
        failures.append(Failure(case, said))
        say(f"  {name} {case}: {said}")

    while start < count:
        here, there = context.Pipe(duplex=False)
        worker = context.Process(
            target=_work, args=(name, folder, range(start, count), seed, at, told, there)
        )
        worker.start()
        there.close()
        last, since = start, time.monotonic()
        start = count
        while True:
            if here.poll(1):
                try:
                    found = here.recv()
                except EOFError:
                    worker.join()
                    failed(at.value, f"process ended ({worker.exitcode})")
                    start = at.value + 1
                    break
                if found is None:
                    break
                failed(*found)
            if at.value != last:
                last, since = at.value, time.monotonic()
            elif time.monotonic() - since > 20 * SECONDS:  # also what it takes to begin
                worker.kill()
                failed(last, "hung outside of Python")
                start = last + 1
                break
        worker.join()
    return Outcome(count, int(told[0]), tuple(failures), told[1])


def main(words: Sequence[str]) -> int:
    """Prints one row per reader; gives the number of failures."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture inputs")
    parser.add_argument("--only", default="", help="readers, separated by commas")
    parser.add_argument("--share", type=float, default=1.0, help="of the inputs of a long run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="one input again, in this process")
    given = parser.parse_args(words)
    names = [name for name in ALL if not given.only or name in given.only.split(",")]
    failed = total = 0
    print("| reader | inputs | refused | failed | slowest, s |\n|---|---|---|---|---|", flush=True)
    for name in names:
        # In memory where that can be: a million files on a disk wait for it.
        with tempfile.TemporaryDirectory(dir=SHARED if SHARED.is_dir() else None) as folder:
            if given.case is not None:
                reader = ALL[name].make(Path(folder))
                data = input_of(name, reader, given.case, given.seed)
                print(data[:2_000], attempt(reader, data), sep="\n")
                continue
            count = max(1, round(given.share * ALL[name].inputs))
            found = tried(
                name, Path(folder), count, given.seed, lambda said: print(said, file=sys.stderr)
            )
        failed, total = failed + len(found.failures), total + count
        row = f"{count:,} | {found.refused:,} | {len(found.failures)} | {found.slowest:.2f}"
        print(f"| {name} | {row} |", flush=True)
    print(f"| all | {total:,} | | {failed} | |")
    return failed
