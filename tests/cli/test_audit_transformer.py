"""A tiny BERT trained on planted reviews, audited by the command a person types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from heedful.cli import app
from heedful.corpora.documents import Corpus
from heedful.corpora.planted import planted
from heedful.runs.randomness import seeded

pytestmark = pytest.mark.slow
SIZES = {"train": 1500, "dev": 20, "test": 50}


def trained(folder: Path, corpus: Corpus) -> None:
    """Writes a BERT of two layers and its word-piece tokenizer, trained for a few seconds."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    texts = [document.text for document in corpus.splits["train"]]
    splitter = pre_tokenizers.BertPreTokenizer()
    words = {word for text in texts for word, _ in splitter.pre_tokenize_str(text.lower())}
    # Long words are cut in two, so that words of several pieces are audited as one.
    pieces = {w[:5] for w in words} | {f"##{w[5:]}" for w in words if len(w) > 5}
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(pieces)]
    made = Tokenizer(models.WordPiece({w: i for i, w in enumerate(vocabulary)}, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.Lowercase(), splitter
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair=None, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]", model_max_length=64,
        model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=48, max_position_embeddings=64, num_labels=len(corpus.classes),
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        id2label=dict(enumerate(corpus.classes)),
        label2id={name: place for place, name in enumerate(corpus.classes)},
    )  # fmt: skip
    labels = torch.tensor([document.label for document in corpus.splits["train"]])
    inputs = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
    with seeded(0):
        model = BertForSequenceClassification(config).train()
        optimiser = torch.optim.AdamW(model.parameters(), lr=1.5e-3)
        for _ in range(4):
            for rows in torch.randperm(len(texts)).split(25):
                batch = {name: given[rows] for name, given in inputs.items()}
                loss = model(**batch, labels=labels[rows]).loss
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("audit")
    corpus = planted(2, "short", 0, SIZES)
    trained(folder / "model", corpus)
    data = folder / "reviews.csv"
    rows = [{"text": d.text, "label": corpus.classes[d.label]} for d in corpus.splits["test"]]
    pd.DataFrame(rows).to_csv(data, index=False)
    out = folder / "run"
    call = ["audit", str(folder / "model"), "--data", str(data), "--out", str(out)]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    stored = json.loads((out / "findings" / "verdict.json").read_text())
    found = json.loads((out / "findings" / "substitution.json").read_text())["measures"]
    right = [m["value"] for m in found if (m["measure"], m["method"]) == ("accuracy", "trained")]
    assert right[0] > 0.7  # it has learnt to read the reviews
    return {"output": done.output, "verdict": stored, "page": (out / "report.html").read_text()}


def test_the_audit_ends_in_a_ranking_that_leave_one_out_does_not_lose_to_chance(
    audited: dict[str, Any],
) -> None:
    places = {place["method"]: place for place in audited["verdict"]["ranking"]["places"]}
    beyond = places["leave-one-out"]["beyond_random"]
    assert beyond["low"] > 0
    assert beyond["n"] >= 45
    assert places["random"]["place"] == 0
    asked = {
        "attention", "mean-attention", "max-attention", "last-attention", "received-attention",
        "rollout", "trace", "attention-gradient", "value-norm", "value-zeroing", "input-gradient",
        "gradient-input", "integrated", "occlusion", "leave-one-out",
    }  # fmt: skip
    assert asked <= set(places)
    assert sorted(p["place"] for p in places.values()) == list(range(len(places)))
    for place in places.values():
        assert place["faithfulness"]["low"] <= place["faithfulness"]["value"]
        assert place["beside"]["claims belied"]["n"] > 0
    # Scrambled weights are asked of the methods that the ranking speaks of, and of these alone.
    ties = {name for name, place in places.items() if place["is_best"]}
    spoken = {"random", "attention", audited["verdict"]["ranking"]["recommended"]}
    scrambled = {name for name, place in places.items() if "order kept" in place["beside"]}
    assert spoken <= scrambled <= spoken | ties
    assert scrambled < set(places)
    for said in (audited["verdict"]["ranking"]["sentence"], "leave-one-out", "received-attention"):
        assert said[:60] in audited["page"]
    assert "above random" in audited["output"]
