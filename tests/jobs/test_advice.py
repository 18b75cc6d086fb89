"""What is advised for a run: a command that can be pasted, or why there is none."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful import explain, load
from heedful.audits.verdict import Verdict
from heedful.corpora import encode, planted
from heedful.jobs.advice import (
    RESULT,
    Situation,
    advice,
    advised,
    again,
    hindrance,
    next_objective,
    silence,
)  # fmt: skip
from heedful.models import read
from heedful.runs import write_json
from tests.tiny_transformers import save


def made(folder: Path, recipe: str = "bilstm+additive", **record: Any) -> Path:
    """A run folder that says only what advice depends on."""
    encoder = recipe.partition("+")[0]
    configuration = {"kind": "train", "recipe": recipe, "model": {"encoder": encoder}}
    configuration |= {"vectors": record.pop("started", None)}
    said = {"format": 1, "configuration": configuration, "steps": {}}
    write_json(folder / "run.json", said | {"source": {"corpus": "planted"}} | record)
    return folder


def swept(folder: Path, kept: float, is_within: bool, **asked: float) -> None:
    chosen = {"strength": kept, "is_within": is_within}
    tried = [{"strength": 1.0}, {"strength": 10.0}]
    found = {"asked": asked, "objective": "tying", "tried": tried, "chosen": chosen}
    write_json(folder / RESULT, found)


def test_a_run_that_a_sweep_kept_is_advised_a_strength_it_did_not_try(tmp_path: Path) -> None:
    for kept, is_within, objective in (
        (1.0, True, "tying:3.2"),
        (10.0, True, "tying:30"),
        (1.0, False, "tying:0.33"),
    ):
        swept(tmp_path, kept, is_within)
        assert next_objective(tmp_path) == objective


def test_one_strength_is_not_called_several(tmp_path: Path) -> None:
    run = made(tmp_path)
    assert "objective tying` tries several strengths on your dev documents, says" in advised(run)
    swept(run, 1.0, True, limit=2.5)
    said = advised(run)
    assert "objective tying:3.2 --limit 2.5` tries that strength on your dev documents" in said
    assert "several" not in said
    assert "keeps the best" not in said


def test_vectors_are_named_where_the_run_knows_them(tmp_path: Path) -> None:
    vectors = tmp_path / "my glove.txt"
    vectors.touch()
    started = "my glove.txt 0123456789ab"
    known = made(tmp_path / "known", started=started, vectors=str(vectors))
    assert again(known, "tying").text.endswith(f"--objective tying --vectors '{vectors}'")
    older = made(tmp_path / "older", started=started)  # from before paths were written down
    command = again(older, "tying")
    assert command.text.endswith("--objective tying --vectors FILE")
    assert command.said == "FILE: the vectors my glove.txt that it started from"
    oldest = made(tmp_path / "oldest", started="glove.txt")  # and from before digests were
    assert again(oldest, "tying").said == "FILE: the vectors glove.txt that it started from"
    vectors.unlink()
    assert again(known, "tying").text.endswith("--vectors FILE")
    assert again(made(tmp_path / "random"), "tying").text.endswith("--objective tying")


@pytest.mark.parametrize(
    ("recipe", "reason"),
    [("none+additive", "has no encoder"), ("transformer", "there is no tying; train a recipe")],
)
def test_what_would_be_refused_is_not_advised(recipe: str, reason: str, tmp_path: Path) -> None:
    run = made(tmp_path, recipe)
    assert reason in hindrance(run, "tying")
    assert advised(run) == f"`heedful train --from` is no way out here: {hindrance(run, 'tying')}"


def test_dev_documents_of_one_class_are_no_ground_for_advice(tmp_path: Path) -> None:
    whole = planted(2, "short", 1, {"train": 20, "dev": 20})
    one = [document for document in whole.splits["dev"] if document.label]
    few = encode(replace(whole, splits=whole.splits | {"dev": one}))
    assert "No dev document has the label 'negative'" in silence(few)
    assert silence(encode(whole)) == ""
    run = made(tmp_path, corpus=few.fingerprint)
    assert advised(run, few).endswith(silence(few))
    assert advised(run) == advised(run, encode(whole))  # which are not its own
    assert "tries several" in advised(run)


def test_places_that_are_gone_are_named(tmp_path: Path) -> None:
    gone, here = str(tmp_path / "gone"), str(tmp_path)
    run = made(tmp_path / "file", source={"data": gone})
    assert f"was trained on {gone}, which is no longer there" in advised(run)
    prepared = made(tmp_path / "prepared", source={"corpus": gone})
    assert f"was trained on {gone}, which is no longer there" in advised(prepared)
    assert "tries several" in advised(made(tmp_path / "known", source={"corpus": "sst:2"}))
    tuned = made(tmp_path / "tuned", "hf:tiny", start=gone)
    assert advised(tuned).endswith(f"{tuned} began from {gone}, which is no longer there.")
    for start in (here, "hf:tiny"):
        assert hindrance(made(tmp_path / "tuned", "hf:tiny", start=start), "tying") == ""


def test_a_run_from_python_is_trained_again_from_python(tmp_path: Path) -> None:
    run = made(tmp_path, source=None)
    command = again(run, "tying:3", 2.5)
    assert (
        command.text
        == f"heedful.remedy({str(run)!r}, corpus, '{run}-tying-3-limit-2.5', objective='tying', "
        "strengths=[3], limit=2.5)"
    )
    assert command.said == "in Python, where its documents are"


@pytest.mark.parametrize(("site", "heads"), [("pooled", "heads:1.1"), ("layer:0", "heads:0.1")])
def test_a_head_that_may_be_shown_is_named_as_the_option_names_it(
    site: str, heads: str, tmp_path: Path
) -> None:
    save(tmp_path / "bert", "bert", ("a", "b"))
    corpus = encode(planted(2, "short", 1, {"train": 4, "test": 4}))
    model = load(tmp_path / "bert", site=site)
    about = Situation(model, tmp_path / "bert", None, None, corpus, 4, 4)
    told = Verdict("no", ".", (), ("Show head 1 of the audited layer instead: it holds.",))
    said = advice(told, about)[1]
    command = shlex.split(said.split("`")[1])
    assert command[-2:] == ["--site", heads]
    assert command[3:5] == ["--model", str(tmp_path / "bert")]
    text = "Good food, bad service."
    alone = explain(load(tmp_path / "bert", site=heads), text, ["attention"])
    rows = read(model, model.batch([text]))
    assert rows.heads is not None
    shown, row = torch.tensor(alone.importance["attention"]), rows.heads[0, 1].double()
    assert torch.allclose(shown.double(), row / row.sum(), atol=1e-6)  # of words alone
    assert advice(replace(told, advice=("Show it.",)), about) == ("Show it.",)
    everywhere = replace(about, model=load(tmp_path / "bert", site="all"))
    assert len(advice(told, everywhere)) == 1  # no layer is the audited one
