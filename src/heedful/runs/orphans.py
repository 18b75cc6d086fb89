"""No process works on after the one that started it is gone.

`python -m heedful.runs.orphans MODULE …` runs a module so from its first moment: what it imports
takes seconds, on a busy machine half a minute.
"""

from __future__ import annotations

import _thread
import os
import runpy
import sys


def end_with_parent(handle: int = 0) -> None:
    """Ends this process as soon as the one that started it is gone, whatever it is doing.

    `handle` reads from a pipe that nobody writes to and that ends with the other process: usually
    what stands in for the keyboard.
    """

    def wait() -> None:
        while os.read(handle, 1024):
            pass
        os._exit(1)

    _thread.start_new_thread(wait, ())  # a `Thread` may wait for ever for memory to begin with


def end_with_pool() -> None:
    """The same for a worker of `concurrent.futures`, as its initializer."""
    from multiprocessing import parent_process

    parent = parent_process()
    assert parent is not None
    end_with_parent(parent.sentinel)


if __name__ == "__main__":
    end_with_parent()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
