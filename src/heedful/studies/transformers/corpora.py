"""The corpora of the study of fine-tuned encoders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from heedful.corpora import Corpus, load_corpus, planted
from heedful.reproduction.study import Plan, Source
from heedful.runs.randomness import key

PLANTED = {"train": 240, "dev": 60, "test": 120}
REVIEWS = {"train": 8_000, "dev": 1_000, "test": 2_000}


def _planted(plan: Plan) -> Corpus:
    return planted(2, "short", sizes=PLANTED)


def _named(name: str, sizes: Mapping[str, int], plan: Plan) -> Corpus:
    """A corpus of the data root; of larger splits the first documents by (seed, id)."""
    corpus = load_corpus(name, plan.data_root)
    splits = {
        split: sorted(documents, key=lambda document: key(0, "study", document.id))[: sizes[split]]
        if split in sizes
        else documents
        for split, documents in corpus.splits.items()
    }
    return replace(corpus, splits=splits)


SOURCES = (
    Source("planted", "planted reviews", _planted, scales=("smoke",), inputs=PLANTED),
    Source("sst", "Stanford Sentiment Treebank, 2 classes", partial(_named, "sst:2", {}),
           scales=("paper",)),
    Source(
        "imdb", "Large Movie Review Dataset, a part", partial(_named, "imdb:2", REVIEWS),
        scales=("paper",), inputs=REVIEWS,
        deviation="Of IMDB 8,000 reviews are trained on, 2,000 tested, the first 256 pieces "
        "of each.",
    ),
)  # fmt: skip
