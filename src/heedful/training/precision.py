"""How exactly a GPU computes products."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def reduced_precision(device: torch.device) -> Iterator[None]:
    """Lends matrix products in TF32 on a GPU, as the library's own LSTM has them by default."""
    before = torch.get_float32_matmul_precision()
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
