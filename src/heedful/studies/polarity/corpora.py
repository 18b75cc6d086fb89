"""The corpora of the polarity study: texts and made-up words.

See docs/studies/polarity.md, "Corpora".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from heedful.corpora import Corpus, EncodedCorpus, planted, synthetic
from heedful.reproduction import stages
from heedful.reproduction.results import Step
from heedful.reproduction.study import Plan
from heedful.studies.polarity.printed import PAPER

BINARY = ("sst", "imdb", "20news-1", "planted")
"""Texts in two classes; planted reviews stand in for them at smoke scale."""
SEVERAL = ("20news-2", "planted-3")
TEXTS = ("sst", "20news-1", "imdb", "20news-2", "planted", "planted-3")
RATIOS = {"ratio-1-1": "1:1", "ratio-1-2": "1:2", "ratio-1-5": "1:5"}
RATIOS |= {"ratio-2-1": "2:1", "ratio-5-2": "5:2"}
MADE = ("data1", "data2", "three", *RATIOS)
PLANTED = {"train": 800, "dev": 100, "test": 240}
TINY: dict[str, int] = {"instances": 1_200, "neutral": 100, "polar": 10}
"""Synthetic sets at smoke scale."""


def _planted(classes: int, plan: Plan) -> Corpus:
    return planted(classes, "short", sizes=PLANTED)


def _made(task: str, plan: Plan) -> Corpus:
    sizes: Mapping[str, Any] = TINY if plan.scale == "smoke" else {}
    return synthetic(task, 2, **sizes)  # the notebook's numpy seed


SOURCES = (
    *map(PAPER.source, PAPER.readers),
    PAPER.source("planted", partial(_planted, 2), PLANTED),
    PAPER.source("planted-3", partial(_planted, 3), PLANTED),
    *(PAPER.source(name, partial(_made, name), TINY) for name in MADE),
)


def text(plan: Plan, corpus: str) -> Step[EncodedCorpus]:
    """The corpus with the vocabulary of all its splits, as published."""
    return stages.prepared(plan, corpus, words_of=("train", "dev", "test"))
