"""What `--on ray` costs a study: seconds, and processor seconds of all processes that came of it.

    python -m benchmarks.overhead FOLDER STUDY [options of heedful reproduce]

does the study by `--jobs N` and by `--on ray`, N being the cores of this machine, and prints a line
of JSON for each. Processor seconds hardly depend on what else the machine does. (Linux only.)
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

ADOPT_ORPHANS = 36
"""PR_SET_CHILD_SUBREAPER: processes whose parent ended become children of this one."""


def spent() -> float:
    """Processor seconds of all that this process has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(out: Path, typed: list[str], how: list[str]) -> dict[str, object]:
    """Seconds and processor seconds until the last process of the study is gone."""
    before, began = spent(), time.perf_counter()
    command = [sys.executable, "-m", "heedful", "reproduce", *typed, "--no-figures"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([*command, "--out", str(out), *how], check=True, **quiet)  # type: ignore[call-overload]
    seconds = time.perf_counter() - began
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        pass
    told: dict[str, object] = {"how": " ".join(how), "seconds": round(seconds, 1)}
    load = round(os.getloadavg()[0], 1)
    return told | {"processor seconds": round(spent() - before, 1), "load": load}


def main() -> None:
    folder, *typed = sys.argv[1:]
    ctypes.CDLL(None).prctl(ADOPT_ORPHANS, 1, 0, 0, 0)
    for name, how in (("plain", ["--jobs", str(os.cpu_count())]), ("ray", ["--on", "ray"])):
        print(json.dumps(measured(Path(folder) / name, typed, how)), flush=True)


if __name__ == "__main__":
    main()
