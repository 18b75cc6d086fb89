import os
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.runs import threads


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up tree of control groups; this process may run on eight cores."""
    monkeypatch.setattr(threads, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(threads, "_OWN_GROUP", tmp_path / "own")
    monkeypatch.setattr(threads, "_TOPOLOGY", tmp_path / "topology")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    return tmp_path


def put(groups: Path, own: str, files: dict[str, str]) -> None:
    (groups / "own").write_text(own)
    for name, text in files.items():
        path = groups / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("own", "files", "cores"),
    [
        ("0::/\n", {}, 8),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 8),
        ("0::/\n", {"cpu.max": "250000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "50000 100000\n"}, 1),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000", "a/cpu.max": "300000 100000"}, 3),
        ("0::/gone\n", {"cpu.max": "400000 100000"}, 4),  # as seen from inside a container
        ("0::/\n", {"cpu.max": "nonsense"}, 8),
        (
            "2:cpu,cpuacct:/x\n1:memory:/y\n",
            {"cpu,cpuacct/x/cpu.cfs_quota_us": "200000", "cpu,cpuacct/x/cpu.cfs_period_us": "1000"},
            8,
        ),
        (
            "2:cpu,cpuacct:/x\n",
            {"cpu,cpuacct/x/cpu.cfs_quota_us": "-1", "cpu,cpuacct/x/cpu.cfs_period_us": "100000"},
            8,
        ),
        (
            "2:cpu,cpuacct:/x\n",
            {"cpu,cpuacct/cpu.cfs_quota_us": "200000", "cpu,cpuacct/cpu.cfs_period_us": "100000"},
            2,
        ),
    ],
)
def test_a_quota_bounds_the_cores(
    groups: Path, own: str, files: dict[str, str], cores: int
) -> None:
    put(groups, own, files)
    assert threads.usable_cores() == cores


def test_two_threads_of_a_core_count_once(groups: Path) -> None:
    for cpu in range(8):
        folder = groups / "topology" / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}\n")
    assert threads.usable_cores() == 4


def test_where_there_are_no_control_groups_the_affinity_counts(groups: Path) -> None:
    assert threads.usable_cores() == 8


@pytest.mark.slow
@pytest.mark.parametrize(("given", "expected"), [({}, 1), ({"OMP_NUM_THREADS": "3"}, 3)])
def test_torch_starts_as_many_threads_as_the_process_may_use(
    given: dict[str, str], expected: int
) -> None:
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from heedful.runs.threads import share_cores; share_cores()\n"
        "import torch; print(torch.get_num_threads(), os.environ['OMP_WAIT_POLICY'])"
    )
    others = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "MKL_"))}
    others["MKL_DYNAMIC"] = "FALSE"  # else MKL starts no more threads than there are cores
    done = subprocess.run(
        [sys.executable, "-c", code], env=others | given, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(expected), "PASSIVE"]
