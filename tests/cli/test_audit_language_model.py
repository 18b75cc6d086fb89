"""A language model audited by the command a person types: prompt, labels, prior, page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from heedful.cli import app
from tests.models.huggingface.test_language_models import language_model
from tests.tiny_transformers import tokenizer

WORDS = ("good", "bad", "food", "service", "very", "slow", "staff", "friend")
PROMPT = "the service was {text} and the staff was"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Llama with its tokenizer, and reviews of which the label is the first word."""
    place = tmp_path_factory.mktemp("lm")
    language_model("llama").save_pretrained(place / "llama")
    tokenizer(is_causal=True).save_pretrained(place / "llama")
    texts = [f"{WORDS[n % 2]} {WORDS[2 + n % 6]} {WORDS[2 + n % 5]} was" for n in range(100)]
    labels = [("pos", "neg")[n % 2] for n in range(100)]
    pd.DataFrame({"text": texts, "label": labels}).to_csv(place / "reviews.csv", index=False)
    return place


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.slow
def test_a_language_model_is_audited_like_a_classifier(folder: Path) -> None:
    out = folder / "run"
    result = run(
        "audit", f"lm:{folder / 'llama'}", "--data", folder / "reviews.csv", "--prompt", PROMPT,
        "--labels", "pos=good,neg=bad", "--out", out, "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["documents"] == 75  # a quarter corrects the prior
    assert "not calibrated for this kind" in found["verdict"]["sentence"]
    assert found["verdict"]["provisional"]
    priors = {f"accuracy, prior {name}" for name in ("none", "empty", "dev")}
    assert priors <= set(found["quality"])
    assert all(found["quality"][name]["n"] == 75 for name in priors)
    measures = found["findings"]["concentration"]["measures"]
    assert "share on the first token" in {measure["measure"] for measure in measures}
    record = json.loads((out / "run.json").read_text())
    assert record["audited"]["asked"]["prompt"] == PROMPT
    assert record["audited"]["asked"]["corrected by"] == "dev"
    assert (out / "report.html").is_file()
    page = (out / "report.html").read_text()
    for said in (PROMPT, "good, bad", "the first token alone holds"):
        assert said in page
    told = run("explain", "good food was", "--model", out, "--method", "attention", "--json")
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout)["explanations"][0]["units"] == ["good", "food", "was"]


def test_what_lies_on_the_prompt_is_said_whatever_is_asked(folder: Path) -> None:
    result = run(
        "audit", f"lm:{folder / 'llama'}", "--data", folder / "reviews.csv", "--prompt", PROMPT,
        "--labels", "pos=good,neg=bad", "--only", "verdict", "--out", folder / "word", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["findings"]
    assert list(found) == ["exchange", "concentration"]
    assert "the first token alone holds" in found["concentration"]["answer"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "say what it is asked by --prompt"),
        (("--prompt", PROMPT), "needs both --prompt and --labels"),
        (("--prompt", "none", "--labels", "good,bad"), "Expected a prompt with {text} in it"),
        (("--prompt", PROMPT, "--labels", "pos=good,neg=bad", "--prior", "flat"), "flat"),
    ],
)
def test_what_is_missing_is_said(folder: Path, options: tuple[str, ...], said: str) -> None:
    arguments = ("audit", f"lm:{folder / 'llama'}", "--data", folder / "reviews.csv")
    labelled = ("--label", "label") if "--prior" not in options else ()
    result = run(*arguments, *options, *labelled, "--out", folder / "none")
    assert result.exit_code != 0
    assert said in str(result.exception) + result.output
