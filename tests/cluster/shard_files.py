"""Shards of generated documents, and a model that reads them."""

from pathlib import Path

import pandas as pd

from heedful.corpora import load_corpus
from heedful.models import example, save_model

AUDITS = ("erasure", "single-erasure", "substitution", "confidence", "concentration", "agreement")
METHODS = ("random", "attention")


def written_shards(folder: Path, shards: int = 3, each: int = 150) -> Path:
    """Files of planted documents, and all of them in one file `whole.parquet` beside."""
    (folder / "shards").mkdir()
    sizes = {"train": 2, "dev": 2, "test": shards * each}
    corpus = load_corpus("planted:2:short", seed=5, sizes=sizes)
    documents = corpus.splits["test"]
    table = pd.DataFrame(
        {
            "id": [one.id for one in documents],
            "text": [one.text for one in documents],
            "label": [corpus.classes[one.label] for one in documents],
        }
    )
    table.to_parquet(folder / "whole.parquet")
    for number in range(shards):
        part = table.iloc[number * each : (number + 1) * each]
        part.to_parquet(folder / "shards" / f"part-{number}.parquet")
    return folder / "shards"


def saved_model(folder: Path) -> Path:
    """The folder of a small model."""
    save_model(example(), folder / "model")
    return folder / "model"
