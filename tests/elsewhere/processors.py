"""Settings under which the libraries compute as they would on another processor.

torch, oneDNN, MKL, OpenBLAS and numpy each choose their instructions when they start, and each can
be told to choose as an older processor would. What is not a processor's but changes how sums are
blocked, the number of threads and of documents read together, belongs here too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

NO_AVX512 = "X86_V4 AVX512_ICL AVX512_SPR"
NO_AVX2 = f"X86_V3 {NO_AVX512}"
"""As numpy says it since 2.4; other words change nothing."""

FEW = "tests.elsewhere.few_at_once"
ROOMS = ("statistics", "models", "training", "importance", "dynamics", "audits")
COMPUTING = ("-m", "not slow and not browser", *(f"tests/{room}" for room in ROOMS))
"""The quick tests of the rooms that compute."""

KEEP_BYTE_CODE = {"PYTHONDONTWRITEBYTECODE": ""}
"""As the Makefile does: compiling the tree takes as long as importing it."""


class Processor(NamedTuple):
    """One setting of the environment, and what it stands for."""

    name: str
    environment: Mapping[str, str]


def _processor(name: str, **environment: str) -> Processor:
    return Processor(name, environment)


OLD = {
    "ATEN_CPU_CAPABILITY": "default",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "MKL_CBWR": "COMPATIBLE",
    "OPENBLAS_CORETYPE": "Prescott",
    "NPY_DISABLE_CPU_FEATURES": NO_AVX2,
}
LAPTOP = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_CBWR": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": NO_AVX512,
}
WHOLE = (
    Processor("this machine, 2 threads", {"OMP_NUM_THREADS": "2"}),
    Processor("no AVX in any library", OLD),
    Processor("AVX2 in every library, 4 threads", LAPTOP | {"OMP_NUM_THREADS": "4"}),
)
"""Whole machines: every library at once."""
HERE = _processor("this machine, 1 thread")
SINGLE = (
    *(
        _processor(f"torch: {level}", ATEN_CPU_CAPABILITY=level)
        for level in ("default", "avx2", "avx512")
    ),
    *(
        _processor(f"oneDNN: {level}", ONEDNN_MAX_CPU_ISA=level)
        for level in ("SSE41", "AVX2", "AVX512_CORE")
    ),
    *(
        _processor(f"MKL: {level}", MKL_ENABLE_INSTRUCTIONS=level)
        for level in ("SSE4_2", "AVX2", "AVX512")
    ),
    *(
        _processor(f"MKL: {level} (CBWR)", MKL_CBWR=level)
        for level in ("COMPATIBLE", "AVX2", "AVX512")
    ),
    *(
        _processor(f"OpenBLAS: {level}", OPENBLAS_CORETYPE=level)
        for level in ("Prescott", "Zen", "SkylakeX")
    ),
    _processor("numpy: no AVX2", NPY_DISABLE_CPU_FEATURES=NO_AVX2),
    _processor("numpy: no AVX512", NPY_DISABLE_CPU_FEATURES=NO_AVX512),
    *(_processor(f"{n} threads", OMP_NUM_THREADS=n) for n in ("1", "2", "4")),
    *(_processor(f"read {n} at a time", READ_AT_ONCE=n, PYTEST_PLUGINS=FEW) for n in ("1", "7")),
)
"""One library at a time; then threads, and documents that are read together."""


def environment_of(processor: Processor) -> dict[str, str]:
    """This process's environment with the processor's settings and no others of their kind."""
    kinds = ("ATEN_", "ONEDNN_", "DNNL_", "MKL_", "OPENBLAS_", "NPY_", "OMP_")
    others = {name: value for name, value in os.environ.items() if not name.startswith(kinds)}
    # Without this MKL starts no more threads than there are cores, whatever is asked for.
    ours = {"MKL_DYNAMIC": "FALSE", "OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": "1"}
    return others | ours | KEEP_BYTE_CODE | dict(processor.environment)
