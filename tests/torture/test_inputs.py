"""The quick version of `make torture`: some inputs for every reader, and the harness itself."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.errors import InputError
from tests.torture import inputs
from tests.torture.inputs import attempt, input_of, tried
from tests.torture.opened import OPENED
from tests.torture.reader import Family, Reader
from tests.torture.readers import FAMILIES

SEED = 7
"""Other inputs than those of the long run."""


@pytest.mark.parametrize("name", FAMILIES)
def test_damaged_files_are_read_or_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    reader = FAMILIES[name].make(tmp_path)
    assert any(attempt(reader, seed) is None for seed in reader.seeds)  # sound before the damage
    for case in range(30):
        attempt(reader, input_of(name, reader, case, SEED))


@pytest.mark.slow
@pytest.mark.parametrize("name", OPENED)
def test_damaged_runs_and_models_are_opened_or_refused_in_a_sentence(
    name: str, tmp_path: Path
) -> None:
    reader = OPENED[name].make(tmp_path)
    for case in range(6):
        attempt(reader, input_of(name, reader, case, SEED))


def fails(data: bytes) -> None:
    raise KeyError("word")


def says_too_much(data: bytes) -> None:
    error = InputError("fine")
    error.args = ("two\nlines of words",)
    raise error


def never_ends(data: bytes) -> None:
    while True:
        pass


def takes_all(data: bytes) -> None:
    bytearray(4 * inputs.MEMORY)


def ends(data: bytes) -> None:
    os._exit(3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("read", "said"),
    [
        (fails, "KeyError"),
        (says_too_much, "no sentence"),
        (never_ends, "TooSlow"),
        (takes_all, "MemoryError"),
        (ends, "process ended (3)"),
    ],
)
def test_the_harness_sees_what_an_input_does(
    read: Callable[[bytes], object],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inputs, "SECONDS", 0.2)
    monkeypatch.setitem(inputs.ALL, "x", Family(lambda folder: Reader([b"seed"], read), 2))
    told: list[str] = []
    found = tried("x", tmp_path, 2, say=told.append)
    assert [one.case for one in found.failures] == [0, 1]
    assert all(said in one.said for one in found.failures)
    assert len(told) == 2


def test_an_input_is_the_same_for_the_same_number(tmp_path: Path) -> None:
    reader = FAMILIES["lexicon"].make(tmp_path)
    made = [input_of("lexicon", reader, case) for case in range(50)]
    assert made == [input_of("lexicon", reader, case) for case in range(50)]
    assert len(set(made)) > 40
