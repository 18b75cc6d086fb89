"""The commands as a user meets them: files they write, errors they read, JSON they pipe."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from heedful.cli import app
from heedful.corpora import planted
from heedful.errors import InputError
from heedful.jobs.decider import load
from heedful.jobs.settings import settings_of
from heedful.jobs.train import train
from heedful.studies import STUDIES
from tests.forked import command
from tests.schemas import conforms

TINY = """
[model]
embedding_dim = 12
width = 12
[train]
epochs = 2
learning_rate = 0.02
"""


def reviews(documents: int = 240) -> pd.DataFrame:
    corpus = planted(length="short", seed=1, sizes={"train": documents})
    return pd.DataFrame(
        {
            "review": [d.text for d in corpus.splits["train"]],
            "sentiment": [corpus.classes[d.label] for d in corpus.splits["train"]],
        }
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    reviews().to_csv(folder / "reviews.csv", index=False)
    (folder / "tiny.toml").write_text(TINY)
    return folder


@pytest.fixture(scope="module")
def audited(place: Path) -> Path:
    """A run of the user's own CSV, trained and audited by one command."""
    out = place / "run"
    done = heedful("audit", "bilstm+additive", "--data", place / "reviews.csv",
                   "--config", place / "tiny.toml", "--out", out, "--json")  # fmt: skip
    assert conforms("audit", done)["verdict"]["word"] in ("yes", "partly", "no", "cannot tell")
    return out


def heedful(*words: object) -> str:
    """What the command prints to stdout; progress goes to stderr."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def refused(*words: object) -> str:
    """The one sentence that the command refuses with; nothing else is printed."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert isinstance(result.exception, InputError), result.exception
    assert result.stdout == ""
    sentence = str(result.exception)
    assert "\n" not in sentence
    return sentence


def test_a_refusal_is_one_sentence_on_stderr_with_exit_code_2(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "heedful", "report", str(tmp_path / "nowhere")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("heedful: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("words", [["adit"], ["audit", "--bogus"], ["reproduce"]])
def test_a_mistyped_command_shows_usage_without_a_traceback(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "heedful", *words], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "Usage" in done.stderr


def test_help_of_reproduce_names_every_study() -> None:
    said = " ".join(heedful("reproduce", "--help").split())
    assert f"{', '.join(STUDIES)}, or all" in said


def test_a_file_that_changed_since_training_is_not_taken_for_the_same(
    place: Path, tmp_path: Path
) -> None:
    data, out = tmp_path / "grows.csv", tmp_path / "run"
    reviews(120).to_csv(data, index=False)
    heedful("train", "none+dot", "--data", data, "--config", place / "tiny.toml", "--out", out)
    reviews(160).to_csv(data, index=False)
    assert "has changed since" in refused("audit", out, "--data", data)


def test_audit_takes_a_csv_and_leaves_everything_the_design_promises(audited: Path) -> None:
    for name in ("run.json", "metrics.jsonl", "model/model.safetensors", "report.html"):
        assert (audited / name).is_file(), name
    audits = {path.stem for path in (audited / "findings").glob("*.parquet")}
    assert {"erasure", "single-erasure", "substitution", "adversary", "input-erasure"} <= audits
    assert "evidence" not in audits  # the user's file has none
    for name in audits:
        assert (audited / "findings" / f"{name}.json").is_file()
        assert len(pd.read_parquet(audited / "findings" / f"{name}.parquet"))
    record = json.loads((audited / "run.json").read_text())
    assert record["configuration"]["recipe"] == "bilstm+additive"
    assert record["steps"]["audit"]["state"] == "done"
    assert not list(audited.glob("work*"))
    assert not list(audited.rglob("*.tmp*"))


def test_asking_again_computes_nothing(audited: Path) -> None:
    before = (audited / "findings" / "erasure.parquet").stat().st_mtime_ns
    at = json.loads((audited / "run.json").read_text())["steps"]["audit"]["at"]
    done = heedful("audit", audited)
    assert "reason?" in done
    assert "report.html" in done.replace("\n", "")
    assert (audited / "findings" / "erasure.parquet").stat().st_mtime_ns == before
    assert json.loads((audited / "run.json").read_text())["steps"]["audit"]["at"] == at


@pytest.mark.slow
def test_the_page_is_written_again_from_the_findings(audited: Path) -> None:
    page = audited / "report.html"
    first = page.read_bytes()
    page.unlink()
    assert conforms("report", heedful("report", audited, "--json")) == {"report": str(page)}
    assert page.read_bytes() == first


@pytest.mark.slow
def test_a_report_needs_no_torch(audited: Path) -> None:
    before = (audited / "report.html").read_bytes()
    code = (
        "import sys, heedful.__main__ as command\n"
        f"sys.argv[1:] = ['report', {str(audited)!r}]\n"
        "try: command.main()\n"
        "except SystemExit as done: assert not done.code\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "report.html" in done.stdout.replace("\n", "")
    assert (audited / "report.html").read_bytes() == before


def test_explain_colours_words_and_prints_json(audited: Path) -> None:
    shown = heedful("explain", "The soup was dreadful.", "--model", audited)
    assert "dreadful" in shown
    assert "leave-one-out" not in shown
    assert "leave-one-out" in heedful("explain", "The soup", "--model", audited, "--all")
    told = conforms(
        "explain", heedful("explain", "A <b>fine</b> bar", "--model", audited, "--json")
    )
    (found,) = told["explanations"]
    assert next(iter(found["importance"])) == told["recommended"]["method"]
    assert found["units"] == ["a", "<", "b", ">", "fine", "<", "/", "b", ">", "bar"]
    assert sum(found["probabilities"].values()) == pytest.approx(1)
    assert sum(found["importance"]["attention"]) == pytest.approx(1)


@pytest.mark.slow
@pytest.mark.usefixtures("sketched")
def test_an_existing_run_is_audited_on_new_data_without_training(
    audited: Path, place: Path
) -> None:
    new = reviews(150).iloc[100:]
    new.to_json(place / "new.jsonl", orient="records", lines=True)
    out = place / "on-new"
    done = heedful("audit", audited, "--data", place / "new.jsonl", "--out", out, "--json")
    assert json.loads(done)["documents"] == 50
    side_by_side = heedful("compare", audited, out, "--out", place / "both.html", "--json")
    assert [one["run"] for one in conforms("compare", side_by_side)["runs"]] == ["run", "on-new"]
    assert not (out / "model").exists()
    assert not (out / "metrics.jsonl").exists()
    assert (out / "report.html").is_file()


def test_labels_that_the_run_does_not_know_are_refused_by_name(audited: Path, place: Path) -> None:
    new = reviews(60)
    new.loc[3, "sentiment"] = "superb"
    new.to_csv(place / "strange.csv", index=False)
    out = place / "strange"
    said = refused("audit", audited, "--data", place / "strange.csv", "--out", out)
    assert "superb" in said
    assert "negative" in said
    assert not out.exists()


def test_other_settings_do_not_overwrite_a_run(audited: Path, place: Path) -> None:
    said = refused("train", "gru+dot", "--data", place / "reviews.csv",
                   "--config", place / "tiny.toml", "--out", audited)  # fmt: skip
    assert "other settings" in said


FAULTS = {
    "empty.csv": ("", "empty"),
    "no-such-column.csv": ("a,b\nx,y\n", "column"),
    "one-class.csv": ("text,label\n" + "\n".join(f"word {i},good" for i in range(30)), "class"),
    "twice.csv": ("text,text,label\na,b,c\n", "text"),
    "nan.csv": ("text,label\n" + "w,a\nw,b\n" * 15 + "x,", "label"),
    "binary.csv": (b"\x00\x01\x02\xff\xfe" * 50, "text"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_file_gets_one_sentence_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    content, word = FAULTS[name]
    data = content if isinstance(content, bytes) else content.encode()
    (tmp_path / name).write_bytes(data)
    out = tmp_path / "out"
    result = CliRunner().invoke(
        app, ["audit", "none+additive", "--data", str(tmp_path / name), "--out", str(out)]
    )
    assert isinstance(result.exception, InputError)
    assert word in str(result.exception)
    assert not out.exists()


def test_bad_arguments_get_one_sentence(place: Path, tmp_path: Path) -> None:
    assert "Did you mean 'bilstm'" in refused("train", "bilsm+additive", "--out", tmp_path / "a")
    assert "neither" in refused("audit", tmp_path / "nowhere")
    assert "Unknown corpus" in refused("train", "none+dot", "--corpus", "imbd")
    assert "not a heedful run" in refused("report", place)
    assert "does not exist" in refused("explain", "hello", "--model", tmp_path / "none")
    assert "nowhere.csv" in refused("audit", "none+dot", "--data", tmp_path / "nowhere.csv")
    (tmp_path / "bad.toml").write_text("[train]\nepoch = 3\n")
    assert "epochs" in refused("train", "none+dot", "--config", tmp_path / "bad.toml")
    assert "Device" in refused("train", "none+dot", "--device", "abacus")


def test_a_broken_run_folder_is_told_apart(audited: Path, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{not json")
    assert "run.json" in refused("report", tmp_path)
    (tmp_path / "run.json").write_text((audited / "run.json").read_text())
    assert "no trained model" in refused("explain", "hello", "--model", tmp_path)


def test_a_folder_that_cannot_be_written_is_named(place: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    said = refused("train", "none+dot", "--data", place / "reviews.csv",
                   "--config", place / "tiny.toml", "--out", tmp_path / "file" / "run")  # fmt: skip
    assert str(tmp_path / "file" / "run") in said


@pytest.mark.slow
@pytest.mark.usefixtures("sketched")
def test_odd_documents_are_kept_and_counted(place: Path, tmp_path: Path) -> None:
    odd = reviews(120)
    odd["split"] = ["train"] * 80 + ["dev"] * 20 + ["test"] * 20
    odd.loc[100, "review"] = ""
    odd.loc[101, "review"] = "good"
    odd.loc[102, "review"] = "bad " * 100_000
    data = odd.to_csv(index=False).encode().replace(b"bad bad", b"b\xffd bad", 1)
    (tmp_path / "odd.csv").write_bytes(data)
    out = tmp_path / "run"
    heedful("audit", "none+additive", "--data", tmp_path / "odd.csv", "--split", "split",
            "--config", place / "tiny.toml", "--out", out)  # fmt: skip
    page = (out / "report.html").read_text()
    notes = json.loads((out / "run.json").read_text())["audited"]["notes"]
    for said in ("cut to the token limit", "empty, read as one unknown word"):
        assert any(said in name for name in notes), notes
        assert said in page
    assert any("undecodable" in name for name in notes)


@pytest.mark.slow
def test_a_killed_command_started_again_ends_with_the_same_numbers(
    place: Path, tmp_path: Path
) -> None:
    few = place / "few.csv"
    reviews(120).to_csv(few, index=False)

    def started(out: Path) -> BaseProcess:
        return command("audit", "gru+additive", "--data", few,
                       "--config", place / "tiny.toml", "--out", out)  # fmt: skip

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    processes = [started(whole)]
    for sign in ("checkpoint.safetensors", "model/model.safetensors", "findings"):
        process = started(killed)
        deadline = time.monotonic() + 300
        while not (killed / sign).exists() and process.is_alive():
            assert time.monotonic() < deadline
            time.sleep(0.005)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    processes.append(started(killed))
    for process in processes:
        process.join(600)
        assert process.exitcode == 0
    assert (whole / "metrics.jsonl").read_text() == (killed / "metrics.jsonl").read_text()
    first, second = load(whole).state_dict(), load(killed).state_dict()
    assert all(bool((first[name] == second[name]).all()) for name in first)
    for path in (whole / "findings").glob("*.parquet"):
        again = pd.read_parquet(killed / "findings" / path.name)
        pd.testing.assert_frame_equal(pd.read_parquet(path), again, check_exact=True)
    assert not list(killed.rglob("*.tmp*"))


def test_two_runs_in_one_folder_at_once_are_refused(place: Path, tmp_path: Path) -> None:
    from heedful.runs import held

    heedful("train", "none+dot", "--data", place / "reviews.csv",
            "--config", place / "tiny.toml", "--out", tmp_path / "run")  # fmt: skip
    with held(tmp_path / "run"):
        said = refused("audit", tmp_path / "run")
    assert "in use by process" in said


@pytest.mark.slow
def test_prepare_makes_files_that_training_starts_from(tmp_path: Path, place: Path) -> None:
    conforms("prepare", heedful("prepare", "planted:2:short", "--out", tmp_path, "--json"))
    done = heedful("train", "none+additive", "--corpus", tmp_path / "planted-2-short",
                   "--config", place / "tiny.toml", "--out", tmp_path / "r", "--json")  # fmt: skip
    assert conforms("train", done)["test"]["accuracy"] > 0.6


@pytest.mark.slow
@pytest.mark.usefixtures("sketched")
def test_a_run_opens_its_own_documents_again_whatever_the_seed(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    heedful("train", "none+dot", "--data", place / "reviews.csv", "--seed", 3,
            "--config", place / "tiny.toml", "--out", out)  # fmt: skip
    first = json.loads(heedful("audit", out, "--json"))
    # The file it was trained on is not new data: its test documents are audited, not all.
    again = json.loads(heedful("audit", out, "--data", place / "reviews.csv", "--json"))
    assert first["documents"] == again["documents"] == 36
    assert again["folder"] == str(out)
    other = json.loads(
        heedful("audit", out, "--corpus", "planted:2:short", "--documents", 40, "--json")
    )
    assert other["folder"] == f"{out}-on-planted:2:short"


def test_the_recipes_of_the_readme_train_at_their_default_sizes(
    place: Path, tmp_path: Path
) -> None:
    few = tmp_path / "few.csv"
    reviews(60).to_csv(few, index=False)
    (tmp_path / "short.toml").write_text("[train]\nepochs = 1\n")
    for recipe in ("bilstm+additive+tying:10", "bilstm+additive+mlm:1", "bilstm+dot+residual"):
        out = tmp_path / recipe.replace(":", "")
        heedful("train", recipe, "--data", few, "--config", tmp_path / "short.toml", "--out", out)
        assert load(out).recipe == recipe


@pytest.mark.slow
def test_what_a_model_reads_by_survives_training_and_loading(tmp_path: Path) -> None:
    (tmp_path / "cut.toml").write_text(TINY + "[words]\nmax_tokens = 9\n")
    out = tmp_path / "run"
    heedful("train", "none+additive", "--corpus", "synthetic:data1",
            "--config", tmp_path / "cut.toml", "--out", out)  # fmt: skip
    model = load(out)
    assert (model.tokeniser, model.max_tokens) == ("whitespace", 9)
    assert model.batch(["a-b c " * 20]).ids.shape == (1, 9)


def test_settings_of_the_wrong_type_or_said_twice_are_refused(tmp_path: Path) -> None:
    for text, word in (
        ('[train]\nepochs = "8"\n', "epochs"),
        ("[model]\nwidth = 12.5\n", "width"),
        ('[model]\nencoder = "gru"\n', "already says encoder"),
    ):
        (tmp_path / "bad.toml").write_text(text)
        out = tmp_path / "run"
        said = refused("train", "none+dot", "--config", tmp_path / "bad.toml", "--out", out)
        assert word in said
        assert not out.exists()
    assert "either" in refused("train", "none+dot", "--corpus", "planted", "--data", "x.csv")
    both = refused("train", "none+dot", "--quick", "--config", tmp_path / "bad.toml")
    assert "either" in both


def test_a_run_that_cannot_open_its_documents_asks_for_others(tmp_path: Path) -> None:
    corpus = planted(length="short", sizes={"train": 60, "dev": 20, "test": 20})
    settings = settings_of({"train": {"epochs": 1}})
    train("none+additive", replace(corpus, name="letters"), tmp_path / "run", settings=settings)
    said = refused("audit", tmp_path / "run")
    assert "trained on letters from Python" in said
    assert "--data FILE" in said
