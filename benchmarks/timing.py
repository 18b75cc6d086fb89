"""Seconds that functions take when they run in turn, and how they grow."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import get_context
from statistics import median
from typing import Any, NamedTuple

import torch

SHORTEST = 0.05
"""Seconds a sample lasts at least: quicker functions are called several times."""


class Timed(NamedTuple):
    """What a function takes and what it gave."""

    seconds: float
    """Median over the samples."""
    result: Any


def side_by_side(
    functions: Mapping[str, Callable[[], Any]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timed]:
    """Median seconds per call; one sample of each in turn, so that a busy moment hits all alike.

    `time.process_time` as clock counts the work of our own threads alone: for comparisons so close
    that other programs on the machine would decide them.
    """
    results = {name: function() for name, function in functions.items()}  # warms up
    calls = {}
    for name, function in functions.items():
        once = _seconds(function, 1, clock)
        calls[name] = max(math.ceil(SHORTEST / once), 1)
    samples: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            samples[name].append(_seconds(function, calls[name], clock))
    return {name: Timed(median(samples[name]), results[name]) for name in functions}


def exponent(sizes: Mapping[int, float]) -> float:
    """The slope of log seconds over log size, by least squares: 1 is linear, 2 quadratic."""
    x = [math.log(size) for size in sizes]
    y = [math.log(seconds) for seconds in sizes.values()]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    across = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return across / sum((a - mean_x) ** 2 for a in x)


def bandwidth(megabytes: int = 128) -> float:
    """Bytes per second that a big copy reads and writes."""
    source = torch.ones(megabytes * 2**17, dtype=torch.float64)
    target = torch.empty_like(source)
    copied = side_by_side({"copy": lambda: target.copy_(source)}, repeats=5)["copy"]
    return 2 * 8 * len(source) / copied.seconds


def _seconds(function: Callable[[], Any], calls: int, clock: Callable[[], float]) -> float:
    started = clock()
    for _ in range(calls):
        function()
    return (clock() - started) / calls


def at_once(target: Callable[..., None], given: Sequence[tuple[Any, ...]]) -> list[Any]:
    """What each of several processes answers that begin together: one for each of `given`.

    `target` also gets a barrier to wait at and a queue for its one answer.
    """
    context = get_context("spawn")
    barrier, answers = context.Barrier(len(given)), context.SimpleQueue()
    started = [context.Process(target=target, args=(*one, barrier, answers)) for one in given]
    for process in started:
        process.start()
    for process in started:
        process.join()
    if any(process.exitcode for process in started):
        raise RuntimeError("a process beside others ended with an error; see above")
    return [answers.get() for _ in started]
