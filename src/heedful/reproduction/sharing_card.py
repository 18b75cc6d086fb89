"""NVIDIA's MPS: kernels of several processes side by side on one card, instead of in turns."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from tempfile import TemporaryDirectory

CONTROL = "nvidia-cuda-mps-control"
"""What starts and ends MPS, where a driver brought it."""
PIPES, LOGS = "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"
TURNS = "processes take turns on the card and gain less than half as much"


@contextmanager
def sharing_card(device: str, jobs: int, show: bool = False) -> Iterator[Mapping[str, str]]:
    """Lends the environment in which `jobs` processes share a card; MPS is ended afterwards.

    Where somebody started MPS before (the environment names its pipes), theirs is used and left
    alone. Where there is none, that is said, and the environment is empty.
    """
    if not device.startswith("cuda") or jobs == 1 or PIPES in os.environ:
        yield {}
        return
    control = shutil.which(CONTROL)
    if control is None:
        _say(f"MPS is not here ({CONTROL} is not found): {TURNS}", show)
        yield {}
        return
    with TemporaryDirectory(prefix="mps-") as folder:
        lent = {PIPES: folder, LOGS: folder}
        asked = {"env": os.environ | lent, "capture_output": True, "text": True}
        started = subprocess.run([control, "-d"], check=False, **asked)  # type: ignore[call-overload]
        if started.returncode:
            why = (started.stderr or started.stdout).strip().splitlines()
            _say(f"MPS did not start ({why[0] if why else 'no reason given'}): {TURNS}", show)
            yield {}
            return
        _say("MPS started: processes share the card", show)
        try:
            yield lent
        finally:
            subprocess.run([control], input="quit\n", check=False, **asked)  # type: ignore[call-overload]
            _say("MPS ended", show)


def _say(line: str, show: bool) -> None:
    if show:
        print(line, file=sys.stderr, flush=True)
