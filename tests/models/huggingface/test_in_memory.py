"""A pipeline or a pair in memory is the model of its folder, and is given back as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    pipeline,
)

import heedful
from heedful.errors import InputError, UnsupportedModel
from heedful.importance import surrogates
from heedful.runs import plain as plain_data
from tests.tiny_transformers import WORDS, save

TEXT = "the food was good but the staff was bad"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("memory") / "bert", "bert", ("LABEL_0", "LABEL_1"))


@pytest.fixture
def pair(folder: Path) -> tuple[Any, Any]:
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    return model, AutoTokenizer.from_pretrained(folder)


@pytest.mark.slow
def test_all_forms_explain_alike(folder: Path, pair: tuple[Any, Any]) -> None:
    model, tokenizer = pair
    pipe = pipeline("text-classification", model=model, tokenizer=tokenizer)
    methods = ["attention", "occlusion", "integrated"]
    first = heedful.explain(folder, TEXT, methods)
    model.train()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    for given in (pipe, pair, heedful.load(pipe)):
        found = heedful.explain(given, TEXT, methods)
        assert found.to_json() == first.to_json()
    assert model.training  # as it was
    assert model.config._attn_implementation == "sdpa"
    assert all(torch.equal(before[name], one) for name, one in model.state_dict().items())
    model.eval()
    assert first.probabilities[first.decision] == pytest.approx(pipe(TEXT)[0]["score"], abs=1e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("sketched")
def test_a_pipeline_and_a_frame_are_audited_with_the_labels_that_were_suggested(
    pair: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surrogates, "SAMPLES", 30)
    words = [word for word in WORDS if word.isalpha()]
    texts = [" ".join(words[row % 7 : row % 7 + 5]) for row in range(6)]
    frame = pd.DataFrame({"text": texts, "label": ["neg", "pos"] * 3})
    pipe = pipeline("text-classification", model=pair[0], tokenizer=pair[1])
    with pytest.raises(InputError, match=r"labels='neg=LABEL_0,pos=LABEL_1' in Python"):
        heedful.audit(pipe, frame, tmp_path / "run")
    asked: dict[str, Any] = {
        "labels": "neg=LABEL_0,pos=LABEL_1", "audits": ["input-erasure", "concentration"],
        "methods": ["gradient", "lime", "kernel-shap"],
    }  # fmt: skip
    result = heedful.audit(pipe, frame, tmp_path / "run", **asked)
    assert result.documents == 6
    ranking = result.verdict.ranking
    assert ranking is not None
    ranked = {place.method for place in ranking.places}
    assert ranked == {"random", "attention", "gradient", "lime", "kernel-shap"}
    page = result.report.read_text()
    assert "kernel-shap" in page
    assert "bert" in page  # what the model is called; nothing to be opened by
    again = heedful.audit(pair, (texts, frame["label"].tolist()), tmp_path / "again", **asked)
    for name, finding in result.findings.items():
        assert plain_data(again.findings[name]) == plain_data(finding)


def test_what_is_no_classifier_is_refused_in_a_sentence(
    folder: Path, pair: tuple[Any, Any]
) -> None:
    model, tokenizer = pair
    with pytest.raises(InputError, match=r"without its tokenizer; give both as a pair"):
        heedful.load(model)
    with pytest.raises(InputError, match=r"got \(BertForSequenceClassification, int\)"):
        heedful.load((model, 3))
    filling = pipeline("feature-extraction", model=AutoModel.from_config(model.config),
                       tokenizer=tokenizer)  # fmt: skip
    with pytest.raises(UnsupportedModel, match="got one of feature-extraction"):
        heedful.explain(filling, TEXT)
    model.config.is_decoder = True
    speaking = AutoModelForCausalLM.from_config(model.config)
    with pytest.raises(UnsupportedModel, match="lm:FOLDER"):
        heedful.explain((speaking, tokenizer), TEXT)
    numbers = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=1,
        ignore_mismatched_sizes=True)  # fmt: skip
    with pytest.raises(UnsupportedModel, match="predicts a number"):
        heedful.explain((numbers, tokenizer), TEXT)
