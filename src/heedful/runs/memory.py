"""When a device has no memory left: how that is told from other errors, and what to give back."""

from __future__ import annotations

import sys

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
