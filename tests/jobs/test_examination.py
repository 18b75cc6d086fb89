"""Shards follow the clock, numbers do not: killed, resumed, slow and fast runs end alike."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from heedful.audits import exchanges, single_heads
from heedful.audits.asking import Asked
from heedful.audits.effort import Effort
from heedful.calibration.mechanisms import MECHANISMS
from heedful.corpora import encode, planted
from heedful.jobs import examination
from heedful.jobs.examination import IMPORTANCE, Examination
from heedful.models import build, parse
from heedful.runs.meter import metering, spent_on

CORPUS = encode(planted(2, "short", sizes={"train": 20, "dev": 2, "test": 40}))
AUDITS = ("erasure", "randomisation", "concentration")


class Small(Examination):
    """Few documents in a batch, so that there are many."""

    @property
    def portion(self) -> examination.Portion:
        return examination.Portion(6, None)


def examined() -> Small:
    recipe = parse("bilstm+additive", embedding_dim=6, width=6)
    model = build(recipe.model, CORPUS.vocabulary, CORPUS.classes).eval()
    chosen = np.arange(40)
    methods = ("random", "attention", "integrated")
    return Small(model, CORPUS, "test", chosen, AUDITS, methods, 0, torch.device("cpu"))


def batches_of(subject: Examination) -> list[Any]:
    return subject._batches(subject.chosen, (*AUDITS, IMPORTANCE))


def clock(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Every look at the clock is so much later than the one before."""
    ticks = count()
    monkeypatch.setattr(time, "monotonic", lambda: seconds * next(ticks))


def shards(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("shard-*") if path.is_dir())


def equal(one: dict[str, pd.DataFrame], other: dict[str, pd.DataFrame]) -> None:
    assert list(one) == list(other) == [*AUDITS, IMPORTANCE]
    for name, table in one.items():
        pd.testing.assert_frame_equal(table, other[name], check_exact=True)


def test_numbers_do_not_depend_on_how_fast_the_machine_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock(monkeypatch, 0.0)
    fast = examined().look(tmp_path / "fast", {}, show=False).rows
    assert shards(tmp_path / "fast") == ["shard-00000", "shard-00001"]  # the first is small
    clock(monkeypatch, 60.0)
    slow = examined().look(tmp_path / "slow", {}, show=False).rows
    assert len(shards(tmp_path / "slow")) == len(batches_of(examined())) > 6
    equal(fast, slow)


def test_each_count_of_documents_says_what_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stage that begins again from 0 has another name than the one before."""
    labels, run = [], examination.ticking

    def told(label: str, *given: Any, **named: Any) -> Any:
        labels.append(label)
        return run(label, *given, **named)

    monkeypatch.setattr(examination, "ticking", told)
    replace(examined(), effort=Effort("normal")).look(tmp_path, {}, show=False)
    assert labels == ["concentration", "auditing", "weights drawn anew"]


def test_a_killed_run_goes_on_from_its_shards_at_any_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock(monkeypatch, 0.0)
    whole = examined().look(tmp_path / "whole", {}, show=False).rows
    clock(monkeypatch, 9.0)  # two looks at the clock between batches: every second one ends a shard
    run, calls = examination.examine, count()

    def dying(*given: Any, **named: Any) -> Any:
        if next(calls) == 5:
            raise KeyboardInterrupt
        return run(*given, **named)

    monkeypatch.setattr(examination, "examine", dying)
    with pytest.raises(KeyboardInterrupt):
        examined().look(tmp_path / "killed", {}, show=False)
    kept = shards(tmp_path / "killed")
    assert len(kept) >= 2
    asked: list[tuple[str, ...]] = []

    def counted(model: Any, documents: Any, *given: Any, **named: Any) -> Any:
        asked.append(documents.names)
        return run(model, documents, *given, **named)

    monkeypatch.setattr(examination, "examine", counted)
    clock(monkeypatch, 0.0)
    resumed = examined().look(tmp_path / "killed", {}, show=True).rows
    equal(whole, resumed)
    names = [name for some in asked for name in some]
    assert len(names) == len(set(names)) < 40  # what was kept is not computed again
    assert f"goes on from {40 - len(names)} of 40 documents" in capsys.readouterr().err


def test_heads_that_were_asked_before_a_kill_are_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    built = MECHANISMS["four heads, three on a decoy"].build(0, 30)
    rest = "test", np.arange(30), ("single-heads",), (), 0, torch.device("cpu")
    subject = Examination(built.model, built.corpus, *rest)
    whole, cost = subject.whole_rows("single-heads", tmp_path / "whole", {}, show=False)
    run, asked = single_heads.rows_of_head, list[int]()

    def dying(*given: Any) -> pd.DataFrame:
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(given[5])
        return run(*given)

    monkeypatch.setattr(single_heads, "rows_of_head", dying)
    with pytest.raises(KeyboardInterrupt):
        subject.whole_rows("single-heads", tmp_path / "killed", {}, show=True)
    again = list[int]()
    monkeypatch.setattr(
        single_heads, "rows_of_head", lambda *given: again.append(given[5]) or run(*given)
    )
    resumed, cost_again = subject.whole_rows("single-heads", tmp_path / "killed", {}, show=True)
    assert (asked, again) == ([0, 1], [2, 3])
    pd.testing.assert_frame_equal(whole, resumed, check_exact=True)
    pd.testing.assert_frame_equal(cost, cost_again, check_exact=True)
    assert cost["forward"].sum() > 0
    assert "single heads goes on from 2 of 4 heads." in capsys.readouterr().err


def test_exchanges_go_on_from_what_the_model_said_before_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    built = MECHANISMS["three of five vote"].build(0, 30)
    rest = "test", np.arange(30), ("exchange",), (), 0, torch.device("cpu")
    subject = Small(built.model, built.corpus, *rest)
    at_once = subject.portion
    with spent_on("exchange"), metering() as meter:
        in_one_step = exchanges.rows(built.model, built.corpus.splits["test"], at_once=at_once)
    monkeypatch.setattr(examination, "SHARD_SECONDS", 0.0)
    run, asked = Asked._said, list[int]()

    def dying(*given: Any) -> pd.DataFrame:
        if len(asked) == 40:
            raise KeyboardInterrupt
        asked.append(len(given[1]))
        return run(*given)

    monkeypatch.setattr(Asked, "_said", dying)
    with pytest.raises(KeyboardInterrupt):
        subject.whole_rows("exchange", tmp_path, {}, show=True)
    again = list[int]()
    monkeypatch.setattr(Asked, "_said", lambda *given: again.append(len(given[1])) or run(*given))
    resumed, cost = subject.whole_rows("exchange", tmp_path, {}, show=True)
    pd.testing.assert_frame_equal(in_one_step, resumed, check_exact=True)
    pd.testing.assert_frame_equal(meter.table(), cost, check_exact=True)
    assert cost["forward"].sum() > 0
    assert in_one_step["mattering"].nunique() > 1
    # The same batch may be asked twice, and what is kept answers it once.
    every = list[int]()
    monkeypatch.setattr(Asked, "_said", lambda *given: every.append(len(given[1])) or run(*given))
    exchanges.rows(built.model, built.corpus.splits["test"], at_once=at_once)
    assert len(every) >= len(asked) + len(again) > len(again) > 0
    said = capsys.readouterr().err
    assert f"exchanged words: {sum(asked):,} altered texts were read before." in said


def test_shards_of_other_batches_do_not_count(tmp_path: Path) -> None:
    examined().look(tmp_path, {}, show=False)
    wide = Examination(**vars(examined()))
    assert len(batches_of(wide)) < len(batches_of(examined()))
    found = wide.look(tmp_path, {}, show=False).rows
    assert sorted(found[IMPORTANCE]["instance"]) == sorted(CORPUS.splits["test"].names)


def test_what_the_page_shows_is_what_was_said_while_auditing(tmp_path: Path) -> None:
    subject = examined()
    rows = subject.look(tmp_path, {}, show=False).rows
    said = rows[IMPORTANCE].set_index("instance")
    shown = subject.instances(rows)["instances"]
    assert len(shown) == 40
    for entry in shown:
        for method in subject.methods:
            values = said.at[entry["id"], method]
            np.testing.assert_allclose(entry["importance"][method], values, rtol=1e-3)
