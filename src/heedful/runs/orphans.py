"""No process works on after the one that started it is gone."""

from __future__ import annotations

import os
from threading import Thread


def end_with_parent(handle: int = 0) -> None:
    """Ends this process as soon as the one that started it is gone, whatever it is doing.

    `handle` reads from a pipe that nobody writes to and that ends with the other process: usually
    what stands in for the keyboard.
    """

    def wait() -> None:
        while os.read(handle, 1024):
            pass
        os._exit(1)

    Thread(target=wait, daemon=True).start()


def end_with_pool() -> None:
    """The same for a worker of `concurrent.futures`, as its initializer."""
    from multiprocessing import parent_process

    parent = parent_process()
    assert parent is not None
    end_with_parent(parent.sentinel)
