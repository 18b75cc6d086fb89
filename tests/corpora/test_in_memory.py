"""Documents held in memory are the same as those of a file with the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from heedful.corpora import Corpus, read_file, read_texts
from heedful.corpora.in_memory import table_of
from heedful.errors import InputError

TEXTS = [f"a review, number {row}, of {('bad', 'good')[row % 2]} food" for row in range(40)]
LABELS = [("neg", "pos")[row % 2] for row in range(40)]
FRAME = pd.DataFrame({"text": TEXTS, "label": LABELS})


def content(corpus: Corpus) -> Any:
    """All that a corpus holds but its name."""
    documents = {s: [(d.id, d.text, d.label) for d in every] for s, every in corpus.splits.items()}
    return corpus.classes, documents, corpus.fingerprint


def held() -> dict[str, Any]:
    """The same documents in every form; a Dataset says the names of its classes."""
    found = {
        "DataFrame": FRAME.set_index(np.arange(40) * 3),
        "categories": FRAME.astype({"label": "category"}),
        "columns": {"text": TEXTS, "label": LABELS},
        "pair": (TEXTS, LABELS),
        "arrays": (np.array(TEXTS), np.array(LABELS)),
    }
    import datasets

    features = datasets.Features(
        text=datasets.Value("string"), label=datasets.ClassLabel(names=["neg", "pos"])
    )
    rows = {"text": TEXTS, "label": [row % 2 for row in range(40)]}
    return found | {"Dataset": datasets.Dataset.from_dict(rows, features=features)}


@pytest.mark.slow  # importing datasets takes a second
def test_every_form_reads_as_the_file_does(tmp_path: Path) -> None:
    file = tmp_path / "reviews.csv"
    FRAME.to_csv(file, index=False)
    split = content(read_file(file).corpus)
    whole = content(read_texts(file, ("neg", "pos")).corpus)
    for name, data in held().items():
        assert content(read_file(data).corpus) == split, name
        assert content(read_texts(data, ("neg", "pos")).corpus) == whole, name


@pytest.mark.slow
def test_a_dict_of_datasets_says_its_splits() -> None:
    import datasets

    every = held()["Dataset"]
    parts = datasets.DatasetDict(
        train=every.select(range(30)), test=every.select(range(30, 40)), extra=every
    )
    read = read_texts(parts, ("neg", "pos"))
    assert [d.text for d in read.corpus.splits["test"]] == TEXTS[30:]
    corpus = read_file(parts).corpus
    assert [d.text for d in corpus.splits["test"]] == TEXTS[30:]
    assert len(corpus.splits["train"]) + len(corpus.splits["dev"]) == 30
    secret = every.select(range(4)).map(lambda row: {"label": -1})
    assert [d.label for d in read_texts(secret, ("neg", "pos")).corpus.splits["test"]] == [-1] * 4


def test_labels_are_optional_for_a_trained_model_and_numbers_are_its_classes() -> None:
    assert [d.label for d in read_texts(TEXTS[:2], ("a", "b")).corpus.splits["test"]] == [-1, -1]
    for numbers in (np.array([0, 1]), torch.tensor([0, 1]), [0, 1.0]):
        found = read_texts((TEXTS[:2], numbers), ("a", "b")).corpus
        assert [d.label for d in found.splits["test"]] == [0, 1]
    missing = FRAME.assign(label=[None, *LABELS[1:]])
    assert read_texts(missing, ("neg", "pos")).corpus.notes["without a label"] == 1


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (3, "Got int for documents; expected a DataFrame"),
        ("reviews", "does not exist"),
        ([1, 2], "Got list for documents"),
        ((TEXTS, LABELS[1:]), "one length, got 40 of text, 39 of label"),
        ((TEXTS, "neg"), "Got str for labels"),
        ([], "has no rows"),
        (FRAME.iloc[:0], "The DataFrame has no rows"),
        (pd.DataFrame([["a", "b"]], columns=["text", "text"]), "more than one column named 'text'"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(data: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        table_of(data)
