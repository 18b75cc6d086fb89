"""`python -m tests.elsewhere.bits`: what each library computes here, to the bit.

A setting that changes no bit of these has tried nothing. Computed three times, as tests compute:
in this process, in a fork of it, and in a process that it starts.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.elsewhere.processors import Processor, environment_of

ROOT = Path(__file__).parents[2]


def changed(one: dict[str, str], other: dict[str, str]) -> str:
    """The libraries whose bits differ, in words."""
    return ", ".join(name for name in one if one[name] != other[name]) or "nothing"


def bits_on(processor: Processor) -> dict[str, str]:
    """A digest of what each library computes under a processor's settings."""
    answer: dict[str, str] = json.loads(_asked(environment_of(processor)))
    return answer


def _asked(environment: dict[str, str] | None, *words: str) -> str:
    command = [sys.executable, "-m", "tests.elsewhere.bits", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    return done.stdout


def _bits(_: Any = None) -> dict[str, str]:
    import numpy as np
    import torch

    draw = np.random.default_rng(0).standard_normal
    left, right, kernel = draw((131, 257)), draw((257, 93)), draw((8, 131, 3))
    singles = [torch.from_numpy(part).float() for part in (left, right, kernel)]
    found = {
        "torch": [singles[0].softmax(1), torch.from_numpy(left).tanh()],
        "MKL": [singles[0] @ singles[1], torch.from_numpy(left) @ torch.from_numpy(right)],
        "oneDNN": [torch.nn.functional.conv1d(singles[0][None], singles[2])],
        "OpenBLAS": [left @ right, left.astype("f4") @ right.astype("f4")],
        "numpy": [np.exp(left), np.exp(left.astype("f4")), np.sin(left.astype("f4"))],
    }
    parts = {
        name: b"".join(np.asarray(one).tobytes() for one in all) for name, all in found.items()
    }
    return {name: hashlib.sha1(part).hexdigest() for name, part in parts.items()}


def main() -> None:
    """Prints the digests as JSON; ends with 1 if processes of this one compute otherwise."""
    if "alone" in sys.argv:
        print(json.dumps(_bits()))
        return
    with get_context("fork").Pool(1) as pool:  # before OpenMP has threads, which a fork loses
        forked = pool.map(_bits, [None])[0]
    started, here = json.loads(_asked(None, "alone")), _bits()
    if not here == forked == started:
        sys.exit(f"a fork differs in {changed(here, forked)}, a child in {changed(here, started)}")
    print(json.dumps(here))


if __name__ == "__main__":
    main()
