"""The quick version of `make torture`: some kills and faults of each kind."""

import os
from pathlib import Path

import pytest

from tests.torture.commands import KILLABLE, furnish
from tests.torture.faults import (
    full_disk,
    limited_files,
    limited_memory,
    long_paths,
    read_only,
    why_no_mount,
)
from tests.torture.kills import Outcome, Trial, kills_after, kills_at, spread
from tests.torture.pairs import PAIRS, pairs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    folder = tmp_path_factory.mktemp("training")
    os.chmod(folder, 0o755)
    return Trial(KILLABLE["train"], folder)


def clean(found: list[Outcome]) -> int:
    """How often a fault struck; nothing was wrong afterwards."""
    assert [one for one in found if one.wrong] == []
    return sum(one.kills for one in found)


def test_a_killed_training_goes_on_and_ends_as_if_it_had_not_been(training: Trial) -> None:
    first = [2, 5, 9]  # before the first run.json stands
    assert clean(kills_at(training, first)) == 3
    assert clean(kills_at(training, spread(training.ended.moments, 6), times=3)) >= 4
    assert clean(kills_after(training, 3)) == 3


@pytest.mark.parametrize("command", ["audit", "train --from"])
def test_a_killed_command_ends_as_if_it_had_not_been(command: str, tmp_path: Path) -> None:
    trial = Trial(KILLABLE[command], tmp_path)
    moments = trial.ended.moments
    assert clean(kills_at(trial, [moments // 3, moments - 30, moments - 3], times=3)) >= 2


def test_two_processes_on_one_folder(tmp_path: Path) -> None:
    assert clean(pairs(*PAIRS["train, two recipes"], 2, tmp_path)) == 2


def test_limits_of_the_system_are_one_sentence(training: Trial) -> None:
    assert clean(limited_files(training, [2048])) == 1
    assert clean(limited_memory(training, [500_000])) == 1


def test_paths_that_are_too_long_are_one_sentence(tmp_path: Path) -> None:
    furnish(tmp_path)
    assert clean(long_paths(tmp_path)[:3]) == 3


def test_disks_that_are_full_or_cannot_be_written(training: Trial) -> None:
    if why := why_no_mount():
        pytest.skip(f"no file system can be mounted here: {why}")
    assert clean(full_disk(training, 2)) == 2
    assert clean(read_only(training, is_finished=True)[:1]) == 1
