"""MPS is started for processes that share a card, and ended afterwards."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heedful.reproduction.sharing_card import CONTROL, LOGS, PIPES, sharing_card


@pytest.fixture(autouse=True)
def _nobody_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PIPES, raising=False)


def control(folder: Path, monkeypatch: pytest.MonkeyPatch, code: int = 0) -> Path:
    """A stand-in for NVIDIA's command, first on the path, and the file of what it was told."""
    told = folder / "told"
    script = folder / CONTROL
    script.write_text(
        f'#!/bin/sh\necho "$* ${PIPES} $([ "$1" = -d ] || cat)" >> {told}\n'
        f"echo no card of this kind >&2\nexit {code}\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return told


def test_it_is_started_for_the_workers_alone_and_ended_even_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = control(tmp_path, monkeypatch)

    def shared() -> None:
        with sharing_card("cuda", 4, show=True) as lent:
            assert lent[PIPES] == lent[LOGS]
            assert Path(lent[PIPES]).is_dir()
            assert PIPES not in os.environ
            assert told.read_text() == f"-d {lent[PIPES]} \n"
            seen.append(lent[PIPES])
            raise KeyboardInterrupt

    seen: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        shared()
    assert told.read_text().splitlines()[1:] == [f" {seen[0]} quit"]
    assert not Path(seen[0]).exists()
    assert capsys.readouterr().err.splitlines() == [
        "MPS started: processes share the card",
        "MPS ended",
    ]


def test_where_it_is_not_there_or_does_not_start_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with sharing_card("cuda:0", 2, show=True) as lent:
        assert lent == {}
    assert "MPS is not here" in capsys.readouterr().err
    monkeypatch.undo()
    told = control(tmp_path, monkeypatch, code=1)
    with sharing_card("cuda", 2, show=True) as lent:
        assert lent == {}
    assert "MPS did not start (no card of this kind): processes take" in capsys.readouterr().err
    assert len(told.read_text().splitlines()) == 1


@pytest.mark.parametrize(("device", "jobs"), [("cpu", 8), ("cuda", 1)])
def test_nothing_is_started_for_a_processor_or_a_single_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, jobs: int
) -> None:
    told = control(tmp_path, monkeypatch)
    with sharing_card(device, jobs) as lent:
        assert lent == {}
    assert not told.exists()


def test_what_somebody_else_started_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = control(tmp_path, monkeypatch)
    monkeypatch.setenv(PIPES, str(tmp_path))
    with sharing_card("cuda", 8) as lent:
        assert lent == {}
    assert not told.exists()
