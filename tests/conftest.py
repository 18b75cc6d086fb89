"""What all tests share: one thread each, so that workers running side by side do not fight.

`make test-elsewhere` sets OMP_NUM_THREADS to try other numbers.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))  # picture.py drives the browser

import pytest
import torch

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


@pytest.fixture(scope="session")
def has_browser() -> None:
    """Skips where there is no Chromium; fails instead where HEEDFUL_BROWSER=required."""
    from picture import browser_paths

    if browser_paths() is not None:
        return
    missing = "no Chromium with chromedriver on this machine"
    if os.environ.get("HEEDFUL_BROWSER") == "required":
        pytest.fail(f"HEEDFUL_BROWSER=required, but there is {missing}")
    pytest.skip(missing)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips what needs the real corpora, with the reason, when there is no data root."""
    if os.environ.get("HEEDFUL_DATA"):
        return
    skip = pytest.mark.skip(reason="HEEDFUL_DATA is not set: the real corpora are not here")
    for item in items:
        if item.get_closest_marker("corpora"):
            item.add_marker(skip)
