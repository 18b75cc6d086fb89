"""`python -m tests.elsewhere.neighbour RUN`: an audit alone and beside a busy process, as a table.

As torch starts its threads by itself, as `heedful` starts them, and on one thread: what one core
can do. RUN is what `heedful train bilstm+additive --out RUN` left. The machine must be quiet
otherwise.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

START = "from heedful.__main__ import main; main()"
UNSHARED = "from heedful.runs import threads; threads.share_cores = lambda: None; "
DOCUMENTS = "150"


class _Took(NamedTuple):
    """Seconds by the clock and of the processor."""

    clock: float
    processor: float


def main() -> None:
    """Five audits, each from nothing; prints a row for every way to start threads."""
    torchs, ours = _pair(UNSHARED + START), _pair(START)
    one = _audit(START, OMP_NUM_THREADS="1")
    print("| | alone | beside it | ratio | processor time beside it |\n|---|---|---|---|---|")
    for name, (alone, beside) in (
        ("torch starts by itself", torchs),
        ("`heedful` starts it", ours),
    ):
        ratio = beside.clock / alone.clock
        print(
            f"| as {name} | {alone.clock:.1f} s | {beside.clock:.1f} s "
            f"| {ratio:.2f} | {beside.processor:.1f} s |"
        )
    print(f"| one thread, alone: what one core can do | {one.clock:.1f} s | | | |")
    print(f"\nOf what the core that is left can do: {ours[1].clock / one.clock:.2f} times.")


def _pair(program: str) -> tuple[_Took, _Took]:
    """What an audit takes alone, and beside an endless loop on one thread."""
    alone = _audit(program)
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as loop:
        try:
            return alone, _audit(program)
        finally:
            loop.kill()


def _audit(program: str, **environment: str) -> _Took:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-c", program, "audit", f"{folder}/run", "--documents", DOCUMENTS]
        shutil.copytree(sys.argv[1], f"{folder}/run")
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(words, env=kept | environment, check=True, stdout=subprocess.DEVNULL)
        clock, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    # The loop is waited for after this, so that its time is not among these.
    spent = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    return _Took(clock, spent)


if __name__ == "__main__":
    main()
