"""When a device has no memory left: how that is told from other errors, and what to give back."""

from __future__ import annotations

import sys

SAID = ("out of memory", "alloc_failed", "can't allocate memory")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out: PyTorch, its libraries and the driver each say it in other words."""
    said = str(error).lower()
    return isinstance(error, RuntimeError) and any(words in said for words in SAID)


def give_back_memory() -> None:
    """Frees what is cached on the GPU but not in use, for other processes on it."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
