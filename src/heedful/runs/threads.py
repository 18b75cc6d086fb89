"""How many threads this process may use, and that those which wait sleep."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_GROUPS = Path("/sys/fs/cgroup")
_TOPOLOGY = Path("/sys/devices/system/cpu")
_OWN_GROUP = Path("/proc/self/cgroup")


def share_cores() -> None:
    """Sets, where the user has not, how many threads torch starts and how they wait.

    To be called before torch is imported: OpenMP reads the environment once. By default it starts a
    thread per core whatever the quota of a container, and its threads spin while they wait for each
    other, which beside a busy process takes the time that the others need to arrive.
    """
    os.environ.setdefault("OMP_NUM_THREADS", str(usable_cores()))
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def usable_cores() -> int:
    """Cores this process may use: its affinity, and the quota of the control groups around it."""
    may_run_on = getattr(os, "sched_getaffinity", None)
    cores = len(set(map(_siblings, may_run_on(0)))) if may_run_on else os.cpu_count() or 1
    return max(1, min([cores, *map(int, _quotas())]))


def _siblings(cpu: int) -> str:
    """The logical processors that share a core with this one: they add threads, not arithmetic."""
    try:
        return (_TOPOLOGY / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text()
    except OSError:
        return str(cpu)


def _quotas() -> Iterator[float]:
    """What each control group that holds this process allows it, in cores; none outside Linux."""
    try:
        lines = _OWN_GROUP.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, own = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        base = _GROUPS / controllers if controllers else _GROUPS
        inside = PurePosixPath(own.lstrip("/"))
        for group in (inside, *inside.parents):
            yield from _quota(base / group)


def _quota(group: Path) -> Iterator[float]:
    """The quota of one control group, by either version's files; nothing where there is none."""
    try:
        if (group / "cpu.max").is_file():
            allowed, period = (group / "cpu.max").read_text().split()
        else:
            allowed = (group / "cpu.cfs_quota_us").read_text().strip()
            period = (group / "cpu.cfs_period_us").read_text().strip()
    except (OSError, ValueError):
        return
    if allowed.isdigit() and period.isdigit() and int(period) > 0:
        yield int(allowed) / int(period)
