"""What all tests share: one thread each, so that workers running side by side do not fight."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips what needs the real corpora, with the reason, when there is no data root."""
    if os.environ.get("HEEDFUL_DATA"):
        return
    skip = pytest.mark.skip(reason="HEEDFUL_DATA is not set: the real corpora are not here")
    for item in items:
        if item.get_closest_marker("corpora"):
            item.add_marker(skip)
