"""Processes of their own that need not import everything first: for what is killed or runs beside.

A server imports heedful once; each process is a fork of it, with the environment of who asks.
"""

from __future__ import annotations

import os
import sys
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from typing import Any

CONTEXT = get_context("forkserver")
PRELOADED = ("heedful.cli", "heedful.reproduction.workers", "tests.forked_imports")
CONTEXT.set_forkserver_preload([*PRELOADED])


def command(*words: object) -> BaseProcess:
    """`heedful WORDS` in a process of its own, started; what it prints is dropped."""
    return started(_heedful, [str(word) for word in words])


class Worker:
    """Stands in for `subprocess.Popen` of a worker of a study."""

    def __init__(self, words: list[str], env: dict[str, str], stdin: int) -> None:
        assert words[2:4] == ["heedful.runs.orphans", "heedful.reproduction.workers"]
        self.process = started(_work, words[4:], env)
        self.terminate = self.process.terminate

    def poll(self) -> int | None:
        return self.process.exitcode

    def wait(self) -> int | None:
        self.process.join()
        return self.process.exitcode


def started(target: Any, given: Any, environment: dict[str, str] | None = None) -> BaseProcess:
    """`target(given, environment)` in a process of its own; the environment is usually ours."""
    process = CONTEXT.Process(target=target, args=(given, environment or dict(os.environ)))
    process.start()
    return process


def _heedful(words: list[str], environment: dict[str, str]) -> None:
    os.environ.update(environment)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    sys.argv = ["heedful", *words]
    from heedful.__main__ import main

    main()


def _work(task: list[str], environment: dict[str, str]) -> None:
    import torch

    from heedful.reproduction.workers import work

    os.environ.update(environment)
    torch.set_num_threads(1)
    work(*task)
