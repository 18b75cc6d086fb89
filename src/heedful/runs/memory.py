"""When a device has no memory left: how that is told from other errors, and what to give back."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from heedful.errors import InputError

SAID = (
    "out of memory",
    "alloc_failed",
    "can't allocate memory",
    "cannot allocate memory",
    "failed to map segment",  # of a library that is loaded late
    "can't start new thread",
    "failed to launch worker thread",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out: PyTorch, its libraries and the system each say it in other words."""
    said = str(error).lower()
    return any(words in said for words in SAID)


def give_back_memory() -> None:
    """Frees what is cached on the GPU but not in use, for other processes on it."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


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


def refuse_larger(needed: int, what: str) -> None:
    """Raises before anything is allocated where a thing needs more memory than there is."""
    free = free_memory()
    if needed > free:
        raise InputError(
            f"{what} needs {needed / 1e9:,.1f} GB of memory, and {free / 1e9:,.1f} GB are free on "
            "this machine; choose smaller sizes, or a larger machine."
        )
