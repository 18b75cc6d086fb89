"""What all tests share: one thread each, so that workers running side by side do not fight.

Three things are spared that no test is about: planted reviews are written once, nothing waits for
the disk (a killed process loses nothing that it has handed to the system), and the garbage
collector leaves alone what was there before the first test.

`make test-elsewhere` sets OMP_NUM_THREADS to try other numbers.
"""

import gc
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))  # picture.py drives the browser

import pytest
import torch
from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent
AXE = "4.14.0"
"""The version of axe-core, of the npm package; its rules change with it."""
LONGEST = {
    HERE / "benchmarks" / "test_bench.py",
    HERE / "calibration" / "test_calibrate.py",
    HERE / "cli" / "test_commands.py",
    HERE / "docs" / "test_advice_walk.py",
    HERE / "docs" / "test_walks.py",
    HERE / "reproduction" / "test_workers.py",
    HERE / "studies" / "test_polarity_study.py",
    HERE / "test_wheel.py",
}
"""Files whose tests take eight seconds and more: begun last, one of them would end alone."""
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
# How long an example takes says something of the machine, not of the code.
settings.register_profile("any", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any")


@pytest.fixture(scope="session", autouse=True)
def _spared() -> Iterator[None]:
    """Corpora by name are made once, and files are not flushed to the disk one by one."""
    from heedful.corpora import catalogue
    from heedful.corpora.documents import Corpus

    write = catalogue._planted

    @cache
    def written(task: str, seed: int, sizes: tuple[tuple[str, int], ...] | None) -> Corpus:
        return write(task, seed, **({} if sizes is None else {"sizes": dict(sizes)}))

    def planted(task: str, seed: int, **options: Any) -> Corpus:
        if not set(options) <= {"sizes"}:
            return write(task, seed, **options)
        sizes = options.get("sizes")
        found = written(task, seed, None if sizes is None else tuple(sizes.items()))
        return replace(found, splits={name: list(one) for name, one in found.splits.items()})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "_planted", planted)
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture
def sketched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages whose charts are frames: half of an audit's time is drawing, which others test."""
    monkeypatch.setattr("heedful.report.page.draw", lambda *given: '<svg role="img"></svg>')


def pytest_collection_finish() -> None:
    """Modules and tests stay: the collector need not look at them again after every few objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


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


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core, fetched once by npm into a folder that is kept."""
    kept = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "heedful-tests"
    script = kept / f"axe-core-{AXE}" / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        missing = "npm is not here" if shutil.which("npm") is None else ""
        if not missing:
            place = script.parents[2]
            place.mkdir(parents=True, exist_ok=True)
            command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(place)]
            done = subprocess.run(
                [*command, f"axe-core@{AXE}"], capture_output=True, text=True, timeout=120
            )
            missing = "" if done.returncode == 0 else f"npm failed: {done.stderr[-200:]}"
        if missing and os.environ.get("HEEDFUL_BROWSER") == "required":
            pytest.fail(f"HEEDFUL_BROWSER=required, but axe-core is not to be had: {missing}")
        if missing:
            pytest.skip(missing)
    return script.read_text()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with long tests come first, so that workers end together.

    What needs the real corpora is skipped, with the reason, when there is no data root.
    """
    long = Counter(
        item.path
        for item in items
        if item.get_closest_marker("slow") or item.get_closest_marker("browser")
    )
    items.sort(key=lambda item: (item.path not in LONGEST, -long[item.path]))
    if os.environ.get("HEEDFUL_DATA"):
        return
    skip = pytest.mark.skip(reason="HEEDFUL_DATA is not set: the real corpora are not here")
    for item in items:
        if item.get_closest_marker("corpora"):
            item.add_marker(skip)
