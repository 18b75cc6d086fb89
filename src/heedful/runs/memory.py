"""When a device has no memory left: how that is told from other errors, and what to give back."""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from heedful.errors import InputError

T = TypeVar("T", bound=Any)
R = TypeVar("R")
SAID = (
    "out of memory",
    "alloc_failed",
    "bad_alloc",  # C++
    "can't allocate memory",
    "cannot allocate memory",
    "failed to map segment",  # of a library that is loaded late
    "could not create a primitive",  # oneDNN
    "can't start new thread",
    "failed to launch worker thread",
)

_ROOM = 1 << 25
"""Bytes that writing a small file takes at most."""
BESIDE = 1 << 26
"""Bytes that libraries take while they open or make a model: stacks and arenas of their threads.

A thread that gets no memory for what is its own ends the process without a word of ours.
"""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out: PyTorch, its libraries and the system each say it in other words."""
    said = str(error).lower()
    return any(words in said for words in SAID)


def use_system_memory() -> None:
    """Lets Arrow take memory as everything else does: its own way ends a process that runs out."""
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if (arrow := sys.modules.get("pyarrow")) is not None:
        arrow.set_memory_pool(arrow.system_memory_pool())


def give_back_memory() -> None:
    """Frees what is cached on the GPU but not in use, for other processes on it."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def halving(ask: Callable[[T], R], rows: T, join: Callable[[list[R]], R]) -> R:
    """What is made of the rows; where memory does not suffice, of each half of them, said once."""
    try:
        return ask(rows)
    except (RuntimeError, MemoryError) as error:
        if len(rows) < 2 or not is_out_of_memory(error):
            raise
    give_back_memory()
    tell_halved(len(rows))
    half = len(rows) // 2
    return join([halving(ask, rows[:half], join), halving(ask, rows[half:], join)])


@cache
def tell_halved(rows: int) -> None:
    """Says, once for each size, that so much did not fit."""
    print(
        f"Memory does not suffice for {rows:,} texts at once; they are read in halves.",
        file=sys.stderr,
    )


def free_memory() -> int:
    """Bytes that this process may still take: what the machine, its container and limits leave."""
    left = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        told = next(line for line in lines if line.startswith("MemAvailable:"))
        left.append(1024 * int(told.split()[1]))
    with suppress(OSError, ValueError):  # a container's limit; "max" where there is none
        held = Path("/sys/fs/cgroup")
        used = int((held / "memory.current").read_text())
        left.append(int((held / "memory.max").read_text()) - used)
    with suppress(ImportError, OSError, ValueError):
        from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit

        if (limit := getrlimit(RLIMIT_AS)[0]) != RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            left.append(limit - pages * os.sysconf("SC_PAGE_SIZE"))
    return max(min(left), 0)


def refuse_without_room() -> None:
    """Raises a MemoryError where so little is left that a library would end the process.

    Arrow and safetensors do, by other words, where a page that they ask for is not given.
    """
    try:
        mmap.mmap(-1, _ROOM).close()  # asked for and given back, never touched
    except OSError as error:
        raise MemoryError(f"less than {_ROOM >> 20} MB are left") from error


def refuse_larger(needed: int, what: str) -> None:
    """Raises before anything is allocated where a thing needs more memory than there is."""
    free, needed = free_memory(), needed + BESIDE
    if needed > free:
        raise InputError(
            f"{what} needs {needed / 1e9:,.2f} GB of memory, and {free / 1e9:,.2f} GB are free on "
            "this machine; choose smaller sizes, or a larger machine."
        )


def peak_memory(device: str = "cpu") -> int:
    """The most bytes that this process has taken so far, of the machine or of its card."""
    torch = sys.modules.get("torch")
    if device == "cuda" and torch is not None:
        return int(torch.cuda.max_memory_reserved())
    with suppress(ImportError):
        from resource import RUSAGE_SELF, getrusage

        peak = getrusage(RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak
    return 0
