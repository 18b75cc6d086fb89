import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from heedful.runs import TABLE, Form, fingerprint, is_done, read_json, step


class Counted:
    """A computation that knows how often it ran."""

    def __init__(self, value):
        self.value, self.calls = value, 0

    def __call__(self):
        self.calls += 1
        return self.value


def test_a_finished_step_is_not_computed_again(tmp_path):
    work = Counted({"mean": 0.5, "none": float("nan"), "pair": (1, 2)})
    first = step(tmp_path, "sst/table-1", work, inputs={"seed": 0, "corpus": "ab"})
    second = step(tmp_path, "sst/table-1", work, inputs={"corpus": "ab", "seed": 0})
    assert first == second == {"mean": 0.5, "none": None, "pair": [1, 2]}
    assert work.calls == 1
    names = sorted(path.name for path in (tmp_path / "sst").iterdir())
    assert names == ["table-1.json", "table-1.step.json"]
    record = read_json(tmp_path / "sst" / "table-1.step.json")
    assert record["inputs"] == {"seed": 0, "corpus": "ab"}
    assert record["seconds"] >= 0


def test_tables_come_back_as_they_went(tmp_path):
    table = pd.DataFrame({"name": ["a", "b"], "flips": [True, False], "js": [0.1, float("nan")]})
    work = Counted(table)
    for _ in range(2):
        found = step(tmp_path, "rows", work, inputs={}, form=TABLE)
        pd.testing.assert_frame_equal(found, table)
    assert work.calls == 1
    assert (tmp_path / "rows.parquet").exists()


def test_folders_can_be_results(tmp_path):
    def save(path: Path, words: list[str]) -> None:
        for word in words:
            (path / word).write_text(word)

    form = Form("", save, lambda path: sorted(file.read_text() for file in path.iterdir()))
    work = Counted(["a", "b"])
    for _ in range(2):
        assert step(tmp_path, "model", work, inputs={}, form=form) == ["a", "b"]
    assert work.calls == 1
    (tmp_path / "model" / "b").write_text("damaged")
    assert step(tmp_path, "model", work, inputs={}, form=form) == ["a", "b"]
    assert work.calls == 2


def test_changed_inputs_compute_again_and_going_back_does_too(tmp_path):
    for seed in (0, 1, 0):
        assert not is_done(tmp_path, "x", inputs={"seed": seed})
        assert step(tmp_path, "x", lambda s=seed: s, inputs={"seed": seed}) == seed
        assert is_done(tmp_path, "x", inputs={"seed": seed})


@pytest.mark.parametrize("damage", ["result", "record", "no result", "no record"])
def test_a_damaged_step_is_computed_again(tmp_path, damage):
    work = Counted(5)
    step(tmp_path, "x", work, inputs={})
    victim = tmp_path / ("x.json" if "result" in damage else "x.step.json")
    if damage.startswith("no"):
        victim.unlink()
    else:
        victim.write_text("[]")
    assert step(tmp_path, "x", work, inputs={}) == 5
    assert work.calls == 2


def test_an_error_while_saving_leaves_the_step_undone(tmp_path):
    def fail(path: Path, value: int) -> None:
        path.write_text("half")
        raise ZeroDivisionError

    broken = Form(".json", fail, read_json)
    step(tmp_path, "x", lambda: 1, inputs={"version": 1})
    with pytest.raises(ZeroDivisionError):
        step(tmp_path, "x", lambda: 2, inputs={"version": 2}, form=broken)
    for version in (1, 2):
        assert not is_done(tmp_path, "x", inputs={"version": version})
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    script = """
import os, signal, sys
from heedful.runs import step
def work(i):
    print(i, flush=True)
    if i == 2 and sys.argv[2] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return i * i
print([step(sys.argv[1], f"step-{i}", lambda: work(i), inputs={"i": i}) for i in range(4)])
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    killed = subprocess.run([*command, "die"], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL
    assert killed.stdout.split() == ["0", "1", "2"]
    resumed = subprocess.run([*command, "live"], capture_output=True, text=True, check=True)
    assert resumed.stdout.splitlines() == ["2", "3", "[0, 1, 4, 9]"]


@pytest.mark.parametrize("name", ["", "/etc/x", "../x", "a//b", "a/.hidden", "a/"])
def test_names_stay_inside_the_folder(tmp_path, name):
    with pytest.raises(ValueError, match="visible names"):
        step(tmp_path, name, lambda: 1, inputs={})
    assert os.listdir(tmp_path) == []


def test_fingerprints_change_with_values_and_refuse_what_has_no_fixed_form():
    assert fingerprint({"a": 1, "b": [1, 2]}) == fingerprint({"b": (1, 2), "a": 1})
    assert len({fingerprint({"a": value}) for value in (1, 1.5, "1", None, True, [1])}) == 6
    with pytest.raises(TypeError):
        fingerprint({"model": object()})
