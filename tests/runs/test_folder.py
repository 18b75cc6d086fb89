import json
import subprocess
import sys

import pytest

from heedful.errors import InputError
from heedful.runs import RunFolder, commit, held, locked, versions

CONFIGURATION = {"recipe": "bilstm+additive", "seed": 0, "sizes": (100, 200)}


def create(path, **changes):
    options = {"seeds": {"training": 0}, "corpus": "ab12"} | changes
    return RunFolder.create(path, options.pop("configuration", CONFIGURATION), **options)


def test_a_run_says_what_made_it(tmp_path):
    run = create(tmp_path / "runs" / "first", device="cuda: some card")
    record = json.loads((tmp_path / "runs" / "first" / "run.json").read_text())
    assert record["format"] == 1
    assert record["configuration"] == run.configuration == CONFIGURATION | {"sizes": [100, 200]}
    assert (record["seeds"], record["corpus"]) == ({"training": 0}, "ab12")
    assert (record["device"], record["commit"]) == ("cuda: some card", commit())
    assert set(record["versions"]) == {"python", "heedful", "torch", "transformers", "numpy"}
    assert record["versions"]["torch"] == versions()["torch"] != "not installed"


def test_places_are_those_of_the_design(tmp_path):
    run = create(tmp_path / "run")
    places = (run.model, run.metrics, run.findings, run.figures, run.report)
    names = [str(place.relative_to(run.path)) for place in places]
    assert names == ["model", "metrics.jsonl", "findings", "figures", "report.html"]


def test_steps_are_remembered_and_forgotten(tmp_path):
    run = create(tmp_path / "run")
    assert not run.is_finished("train")
    run.finish("train", 12.3456, epochs=3)
    run.finish("audit", 1.0)
    again = RunFolder.open(tmp_path / "run")
    state = again.record["steps"]["train"]
    assert (state["state"], state["seconds"], state["epochs"]) == ("done", 12.346, 3)
    assert state["at"].endswith("+00:00")
    again.forget("audit")
    assert (run.is_finished("train"), run.is_finished("audit")) == (True, False)


def test_creating_again_with_equal_settings_resumes(tmp_path):
    create(tmp_path / "run").finish("train", 1.0)
    assert create(tmp_path / "run").is_finished("train")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"configuration": CONFIGURATION | {"seed": 1}}, r"seed: 0 there, 1 asked for"),
        ({"configuration": CONFIGURATION | {"new": True}}, r"new: None there, True asked for"),
        ({"corpus": "cd34"}, r"corpus fingerprint: 'ab12' there, 'cd34' asked for"),
    ],
)
def test_other_settings_are_refused_and_named(tmp_path, changes, said):
    before = create(tmp_path / "run").record
    with pytest.raises(InputError, match=said):
        create(tmp_path / "run", **changes)
    assert RunFolder.open(tmp_path / "run").record == before


def test_a_foreign_folder_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match=r"not a heedful run: it has no run\.json but other files"):
        create(tmp_path)
    with pytest.raises(InputError, match=r"not a heedful run: it has no run\.json"):
        create(tmp_path / "thesis.tex")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_with_only_our_lock_is_empty(tmp_path):
    with locked(tmp_path / "run"):
        create(tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["run.json"]


def test_opening_what_is_no_run_is_a_sentence(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        RunFolder.open(tmp_path / "gone")
    with pytest.raises(InputError, match=r"is not a heedful run: no run\.json"):
        RunFolder.open(tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not valid JSON"),
        ("[]", "lacks configuration, format, steps"),
        ('{"format": 1, "configuration": {}}', "lacks steps"),
        ('{"format": 1, "configuration": {}, "steps": []}', "lacks a readable"),
        ('{"format": 1, "configuration": {}, "steps": {"audit": 3}}', "configuration or steps"),
        ('{"format": 1, "configuration": {}, "steps": {}, "audited": []}', "or steps"),
        ('{"format": 9, "configuration": {}, "steps": {}}', "run format 9, this heedful reads 1"),
    ],
)
def test_a_broken_run_is_a_sentence(tmp_path, content, said):
    (tmp_path / "run.json").write_text(content)
    for attempt in (RunFolder.open, create):
        with pytest.raises(InputError, match=said):
            attempt(tmp_path)


def test_locking_a_run_clears_half_written_files(tmp_path):
    run = create(tmp_path / "run")
    (run.path / ".run.0123456789ab.tmp.json").write_text("{")
    mine = run.path / ".notes.tmp"
    mine.write_text("mine")
    with held(run.path):
        assert sorted(path.name for path in run.path.iterdir()) == [
            ".lock",
            ".notes.tmp",
            "run.json",
        ]


def test_what_is_left_of_a_run_killed_before_its_first_file_stood_is_cleared(tmp_path):
    (tmp_path / ".run.0123456789ab.tmp.json").mkdir()
    (tmp_path / ".run.0123456789ab.tmp.json" / "run.json").write_text("{")
    with held(tmp_path):
        create(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.parametrize("name", ["findings", "metrics.jsonl", "model", "findings/erasure.json"])
def test_a_run_with_links_is_refused_and_nothing_outside_changes(tmp_path, name):
    run = create(tmp_path / "run")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / ".x.0123456789ab.tmp").write_text("mine")
    (run.path / name).parent.mkdir(exist_ok=True)
    (run.path / name).symlink_to(outside)
    with pytest.raises(InputError, match=r"is a link, and heedful follows none"), held(run.path):
        pytest.fail("held")
    assert [path.name for path in outside.iterdir()] == [".x.0123456789ab.tmp"]


def test_holding_a_folder_of_somebody_else_changes_nothing(tmp_path):
    (tmp_path / ".x.0123456789ab.tmp").write_text("mine")
    (tmp_path / "link").symlink_to("/")
    with held(tmp_path), pytest.raises(InputError, match="not a heedful run"):
        create(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".x.0123456789ab.tmp", "link"]


def test_runs_import_without_torch_numpy_or_pandas():
    heavy = "print([m for m in ('torch', 'numpy', 'pandas') if m in sys.modules])"
    command = [sys.executable, "-c", f"import sys, heedful.runs; {heavy}"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
