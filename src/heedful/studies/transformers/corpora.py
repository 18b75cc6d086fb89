"""The corpora of the study of fine-tuned encoders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from heedful.corpora import Corpus, load_corpus, planted
from heedful.reproduction.study import Plan, Source
from heedful.runs.randomness import key

PLANTED = {"train": 240, "dev": 60, "test": 120}
EVIDENT = {"train": 2_400, "dev": 400, "test": 800}
"""Planted reviews at paper scale, whose evidence is known."""
READ = ("planted", "sst", "sst-l3", "imdb")
"""Texts that people wrote; planted reviews stand in at smoke scale."""
KNOWN = ("planted", "evidence", "evidence-l3")
"""Texts whose evidence is known."""
RETRAINED = ("planted", "sst")
SMALL = "minilm-l3"
ENCODERS = {"sst-l3": SMALL, "evidence-l3": SMALL}
"""The encoder of a corpus, by the name of its folder; of the others all-MiniLM-L6-v2's."""
REVIEWS = {"train": 8_000, "dev": 1_000, "test": 2_000}


def _planted(sizes: Mapping[str, int], plan: Plan) -> Corpus:
    return planted(2, "short", sizes=sizes)


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


def _source(name: str, title: str, load: Callable[[Plan], Corpus], **about: Any) -> Source:
    about = {"scales": ("paper",)} | about
    return Source(name, title, load, **about)


_CUT = "Of IMDB 8,000 reviews are trained on, 2,000 tested, the first 256 pieces of each."
_SST = partial(_named, "sst:2", {})
SOURCES = (
    _source("planted", "planted reviews", partial(_planted, PLANTED), scales=("smoke",),
            inputs=PLANTED),
    _source("sst", "Stanford Sentiment Treebank, 2 classes", _SST),
    _source("sst-l3", "the same, an encoder of three layers", _SST),
    _source("evidence", "planted reviews", partial(_planted, EVIDENT), inputs=EVIDENT),
    _source("evidence-l3", "the same, an encoder of three layers", partial(_planted, EVIDENT),
            inputs=EVIDENT),
    _source("imdb", "Large Movie Review Dataset, a part", partial(_named, "imdb:2", REVIEWS),
            inputs=REVIEWS, deviation=_CUT),
)  # fmt: skip
