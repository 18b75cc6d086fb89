"""The quick version of `make torture`: some kills and faults of each kind."""

import json
import os
import random
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
from tests.torture.kills import Outcome, Trial, kills_after, kills_at, main, spread
from tests.torture.load import MOST, apart, write
from tests.torture.pairs import PAIRS, pairs

THEN = "audit other documents, then the first again"
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
    assert clean(kills_after(training, 3, random.Random(0))) == 3


@pytest.mark.parametrize("command", ["audit", "train --from", THEN, "sweep"])
def test_a_killed_command_ends_as_if_it_had_not_been(command: str, tmp_path: Path) -> None:
    trial = Trial(KILLABLE[command], tmp_path)
    moments = trial.ended.moments
    assert clean(kills_at(trial, [moments // 3, moments - 30, moments - 3], times=3)) >= 2


def test_a_killed_page_leaves_the_run_as_it_was(tmp_path: Path) -> None:
    trial = Trial(KILLABLE["explore"], tmp_path)
    assert trial.ended.moments == 0  # it writes nothing
    assert clean(kills_after(trial, 2, random.Random(0))) == 2


def test_rounds_of_kills_are_resumed_and_added_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    words = ["--only", "explore", "--count", "1", "--log", str(log)]
    assert main(words) == 0
    first = log.read_text()
    assert main(words) == 0
    assert log.read_text() == first  # that round is done
    assert main([*words, "--from", "1"]) == 0
    assert log.read_text().startswith(first)
    rounds = [json.loads(line)["round"] for line in log.read_text().splitlines()]
    assert rounds == [0, 1]
    kills = sum(json.loads(line)["kills"] for line in log.read_text().splitlines())
    assert capsys.readouterr().out.endswith(f"| {kills} | {kills} |\n")


def test_two_processes_on_one_folder(tmp_path: Path) -> None:
    assert clean(pairs(*PAIRS["train, two recipes"], 2, tmp_path)) == 2


def test_memory_grows_by_less_than_three_times_the_file(tmp_path: Path) -> None:
    size = write(tmp_path / "rows.jsonl", 20_000)
    grown, _, documents, _ = apart(tmp_path / "rows.jsonl", large=1_000)
    assert documents == 20_000
    assert size < grown < MOST * size + 16e6  # libraries that are loaded then


def test_limits_of_the_system_are_one_sentence(training: Trial) -> None:
    assert clean(limited_files(training, [2048])) == 1
    assert clean(limited_memory(training, [500_000])) == 1


def test_memory_that_ends_while_tables_are_written_is_one_sentence(tmp_path: Path) -> None:
    # Arrow ended the process here, or waited for a thread that never came.
    assert clean(limited_memory(Trial(KILLABLE["sweep"], tmp_path), [6_000_000])) == 1


@pytest.mark.parametrize("command", ["sweep", "reproduce"])
def test_what_is_finished_opens_where_nothing_can_be_written(command: str, tmp_path: Path) -> None:
    if why := why_no_mount():
        pytest.skip(f"no file system can be mounted here: {why}")
    trial = Trial(KILLABLE[command], tmp_path)
    assert clean(read_only(trial, is_finished=True)[:1]) == 1


def test_paths_that_are_too_long_are_one_sentence(tmp_path: Path) -> None:
    furnish(tmp_path)
    assert clean(long_paths(tmp_path)[:3]) == 3


def test_disks_that_are_full_or_cannot_be_written(training: Trial) -> None:
    if why := why_no_mount():
        pytest.skip(f"no file system can be mounted here: {why}")
    assert clean(full_disk(training, 2)) == 2
    assert clean(read_only(training, is_finished=True)[:1]) == 1
