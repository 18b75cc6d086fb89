"""From a bad verdict to a model whose attention can be believed, as a user meets it."""

import html
import json
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from heedful.cli import app
from heedful.corpora import planted
from heedful.errors import InputError
from heedful.jobs.advice import advised as advised_for
from heedful.runs import RunFolder
from tests.schemas import conforms

TINY = """
[model]
embedding_dim = 8
width = 8
[train]
epochs = 4
learning_rate = 0.03
"""


def ran(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def refused(*words: object) -> str:
    """The sentence that the command refuses with."""
    result = ran(*words)
    assert isinstance(result.exception, InputError), result.exception
    return str(result.exception)


def table(documents: int = 280) -> pd.DataFrame:
    corpus = planted(2, "short", 3, {"train": documents})
    rows = corpus.splits["train"]
    splits = ["test" if i % 5 > 2 else "dev" if i % 5 == 2 else "train" for i in range(documents)]
    labels = [corpus.classes[row.label] for row in rows]
    texts = [" ".join(row.tokens[:10]) for row in rows]
    return pd.DataFrame({"text": texts, "label": labels, "split": splits})


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("a place")  # with what a shell would split at
    folder = folder.rename(folder.with_name("a place"))
    (folder / "tiny.toml").write_text(TINY)
    table().to_csv(folder / "data.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def run(place: Path) -> Path:
    done = ran("train", "bilstm+additive", "--data", place / "data.csv", "--config",
               place / "tiny.toml", "--out", place / "run")  # fmt: skip
    assert done.exception is None, done.exception
    return place / "run"


def advised(text: str) -> list[str]:
    """The words of the command between backticks, as a shell would read them."""
    return shlex.split(next(part for part in text.split("`") if part.startswith("heedful train")))


@pytest.mark.slow
@pytest.mark.usefixtures("sketched")
def test_the_advice_of_an_audit_can_be_pasted(run: Path, place: Path) -> None:
    wanted = ["heedful", "train", "--from", str(run), "--objective", "tying"]
    shown = ran("audit", run)
    assert shown.exception is None, shown.exception
    assert advised(shown.stdout) == wanted
    told = json.loads(ran("audit", run, "--json").stdout)["verdict"]["advice"]
    assert advised(told[-1]) == wanted
    stored = json.loads((run / "findings" / "verdict.json").read_text())["advice"]
    assert advised(stored[-1]) == wanted
    page = html.unescape((run / "report.html").read_text())
    words = re.sub(r"</?span[^>]*>", "", page)
    assert f"heedful train --from '{run.name}' --objective tying" in words  # without folders above
    assert str(run.parent) not in page
    other = place / "other.csv"
    table(300).drop(columns="split").to_csv(other, index=False)
    elsewhere = json.loads(ran("audit", run, "--data", other, "--json").stdout)
    assert advised(elsewhere["verdict"]["advice"][-1]) == wanted
    said = refused("train", "--from", elsewhere["folder"])
    assert f"give {run.resolve()}, the run that was audited" in said


@pytest.mark.slow
@pytest.mark.usefixtures("sketched")
def test_the_advice_works_when_pasted_for_a_run_that_started_from_vectors(
    place: Path, tmp_path: Path
) -> None:
    vectors, run = tmp_path / "my vectors.txt", tmp_path / "run"
    vectors.write_text("".join(f"{word} {'0.1 ' * 7}0.2\n" for word in ("good", "the")))
    done = ran("audit", "bilstm+additive", "--data", place / "data.csv", "--config",
               place / "tiny.toml", "--vectors", vectors, "--out", run)  # fmt: skip
    assert done.exception is None, done.exception
    command = advised(advised_for(run))
    assert command[-2:] == ["--vectors", str(vectors)]
    pasted = ran(*command[1:-4], "--objective", "tying:1", *command[-2:])
    assert pasted.exception is None, pasted.exception
    kept = RunFolder.open(tmp_path / "run-tying-1")
    assert kept.record["vectors"] == str(vectors)
    assert advised(advised_for(kept.path))[-2:] == ["--vectors", str(vectors)]
    vectors.rename(tmp_path / "moved.txt")
    moved = advised_for(run)
    assert "--vectors FILE` (FILE: the vectors my vectors.txt that it started from) tries" in moved


@pytest.mark.slow
def test_a_folder_of_corpora_in_the_environment_is_not_held_against_the_run(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
    done = ran("train", "--from", run, "--objective", "tying:2")
    assert done.exception is None, done.exception
    said = refused("train", "--from", run, "--objective", "tying:2", "--data-root", run)
    assert "leave --data-root out" in said
    monkeypatch.delenv("HEEDFUL_DATA")
    said = refused("train", "--from", run, "--objective", "tying:2", "--data-root", ".")
    assert "leave --data-root out" in said


@pytest.mark.slow
@pytest.mark.parametrize("command", ["train", "audit"])
def test_a_mistyped_preset_is_answered_with_the_near_ones(command: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    said = refused(command, "faithful/tying", "--quick", "--out", out)
    assert "The nearest presets: faithful/tying+, faithful/tying-dot, " in said
    assert "Presets begin with dynamics/, " in refused(command, "no/thing", "--quick", "--out", out)
    assert not out.exists()


@pytest.mark.slow
def test_strengths_and_reductions_are_chosen_by_the_user(run: Path, tmp_path: Path) -> None:
    config = tmp_path / "sum.toml"
    config.write_text('[penalties]\ntying_over = "sum"\n')
    done = ran("train", "--from", run, "--objective", "tying:0.3,0.1", "--config", config, "--json")
    assert done.exception is None, done.exception
    found = conforms("train", done.stdout)
    assert [one["strength"] for one in found["tried"]] == [0.1, 0.3]
    kept = RunFolder.open(run.with_name("run-tying-0.3-0.1"))
    assert kept.configuration["penalties"] == {"tying_over": "sum"}
    config.write_text("[train]\nepochs = 3\n")
    assert "all but [penalties]" in refused("train", "--from", run, "--config", config)


@pytest.mark.slow
def test_the_limit_of_what_a_strength_may_cost_is_the_users(run: Path) -> None:
    words = ("train", "--from", run, "--objective", "tying:1", "--limit")
    done = ran(*words, "30")
    assert done.exception is None, done.exception
    assert "at most 30 points" in done.stdout
    assert "cost [95\xa0%]" in done.stdout
    found = json.loads(ran(*words, "30", "--json").stdout)
    assert found["limit"] == 30
    assert found["folder"] == str(run.with_name("run-tying-1-limit-30"))
    assert found["tried"][0]["cost"]["n"] == 56
    for wrong in ("-1", "nan"):
        assert f"from 0 to 100; got {wrong}." in refused(*words, wrong)
    said = refused("train", "bilstm+additive", "--limit", "3")
    assert said == "--limit is for --from RUN: it bounds what a strength may cost there."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('tying_over = "median"', "known: mean, sum"),
        ('masked_over = "tokens"', "known: documents, words"),
        ("tying_over = 3", "tying_over must be str"),
        ("tying = 3", "known: masked_over, tying_over"),
    ],
)
def test_wrong_reductions_are_answered_with_the_known_ones(
    line: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "bad.toml").write_text(f"[penalties]\n{line}\n")
    out = tmp_path / "run"
    assert said in refused("train", "none+dot", "--config", tmp_path / "bad.toml", "--out", out)
    assert not out.exists()


def test_a_run_to_start_from_must_be_one(place: Path, run: Path) -> None:
    assert "does not exist" in refused("train", "--from", place / "nosuch")
    assert "is not a heedful run" in refused("train", "--from", place)
    assert "leave the recipe out" in refused("train", "none+dot", "--from", run)
    said = refused("train", "--from", run, "--corpus", "planted", "--seed", "3")
    assert "leave --corpus, --seed out" in said


@pytest.mark.parametrize(
    ("objective", "written"),
    [
        ("tying", "+tying:10,"),
        ("mlm", "+mlm:1,"),
        ("tying:5", "+tying:5,"),
        ("tying:3,9", "+tying:3,"),
    ],
)
def test_an_objective_beside_a_recipe_is_answered_with_a_recipe_that_can_be_read(
    objective: str, written: str
) -> None:
    said = refused("train", "bilstm+additive", "--objective", objective)
    assert f"write bilstm+additive{written}" in said


def test_training_warns_of_a_class_that_dev_lacks(place: Path, tmp_path: Path) -> None:
    data, config = table(), place / "tiny.toml"
    data = data[(data["split"] != "dev") | (data["label"] == "negative")]
    data.to_csv(tmp_path / "data.csv", index=False)
    words = ("train", "none+dot", "--config", config, "--out")
    done = ran(*words, tmp_path / "run", "--data", tmp_path / "data.csv")
    assert done.exception is None, done.exception
    assert done.stderr.count("no dev document is labelled 'positive'") == 1
    whole = ran(*words, tmp_path / "whole", "--data", place / "data.csv")
    assert "no dev document" not in whole.stderr
    assert "No dev document" in refused("train", "--from", tmp_path / "run")
    assert not (tmp_path / "run-tying").exists()
