"""A mean-pooled classifier with code of its own, from the encoder that `benchmarks.minilm` makes.

The head is a logistic regression on the mean states of SST's training sentences:

    python -m benchmarks.mean_pooled models/minilm models/minilm-mean DATA
    heedful audit models/minilm-mean --corpus sst --documents 320 --trust-remote-code --out RUN
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.tiny_transformers import OWN_CODE


def make(encoder: Path, out: Path, data: Path) -> float:
    """Writes the classifier; the share of SST's dev sentences that it decides rightly."""
    import numpy as np
    import torch
    from sklearn.linear_model import LogisticRegression
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from heedful.corpora import load_corpus

    corpus = load_corpus("sst", data)
    classes = list(corpus.classes)
    model = AutoModelForSequenceClassification.from_pretrained(
        encoder,
        dtype=torch.float32,
        num_labels=len(classes),
        id2label=dict(enumerate(classes)),
        label2id={name: number for number, name in enumerate(classes)},
    ).eval()
    tokenizer = AutoTokenizer.from_pretrained(encoder)

    def means(split: str) -> tuple[np.ndarray, np.ndarray]:
        documents = sorted(corpus.splits[split], key=lambda one: len(one.text))
        found = []
        for start in range(0, len(documents), 64):
            texts = [one.text for one in documents[start : start + 64]]
            batch = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
            with torch.no_grad():
                states = model.base_model(**batch).last_hidden_state
            mask = batch["attention_mask"][..., None]
            found.append(((states * mask).sum(1) / mask.sum(1)).numpy())
        return np.concatenate(found), np.array([one.label for one in documents])

    head = LogisticRegression(C=10, max_iter=2000).fit(*means("train"))
    with torch.no_grad():
        weight = torch.from_numpy(head.coef_[0]).float()
        model.classifier.weight.copy_(torch.stack([-weight, weight]) / 2)
        bias = float(head.intercept_[0])
        model.classifier.bias.copy_(torch.tensor([-bias, bias]) / 2)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    (out / "own.py").write_text(OWN_CODE)
    config = json.loads((out / "config.json").read_text())
    config["auto_map"] = {"AutoModelForSequenceClassification": "own.MeanPooledClassifier"}
    config["architectures"] = ["MeanPooledClassifier"]
    (out / "config.json").write_text(json.dumps(config))
    return float(head.score(*means("dev")))


if __name__ == "__main__":
    print(f"dev accuracy {make(*map(Path, sys.argv[1:4])):.3f}")
