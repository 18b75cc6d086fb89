"""The corpora of the polarity study: texts and made-up words.

See docs/studies/polarity.md, "Corpora".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from heedful.corpora import Corpus, EncodedCorpus, load_corpus, planted, synthetic
from heedful.reproduction import stages
from heedful.reproduction.results import Step
from heedful.reproduction.study import Plan, Source

NAMES = {
    "sst": "sst:2/polarity",
    "imdb": "imdb:2/polarity",
    "imdb-whole": "imdb:2/polarity-whole",
    "20news-1": "20newsgroups:rec.sport.baseball,rec.sport.hockey/polarity",
    "20news-2": "20newsgroups:rec.motorcycles,sci.med,talk.politics.guns/polarity-2",
}
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


def _real(name: str, plan: Plan) -> Corpus:
    return load_corpus(NAMES[name], plan.data_root)


def _planted(classes: int, plan: Plan) -> Corpus:
    return planted(classes, "short", sizes=PLANTED)


def _made(task: str, plan: Plan) -> Corpus:
    sizes: Mapping[str, Any] = TINY if plan.scale == "smoke" else {}
    return synthetic(task, 2, **sizes)  # the notebook's numpy seed


SOURCES = (
    Source("sst", "SST, two classes", partial(_real, "sst"), scales=("paper",)),
    Source(
        "imdb", "IMDB, fewer than 400 tokens", partial(_real, "imdb"), scales=("paper",),
        deviation="IMDB is cut into words from the raw reviews; the paper has an integer-coded "
        "release, and its random splits cannot be drawn again.",
    ),
    Source(
        "imdb-whole", "IMDB before its draws: all of train and of test (X-5)",
        partial(_real, "imdb-whole"), scales=("paper",),
    ),
    Source(
        "20news-1", "20News I: baseball and hockey", partial(_real, "20news-1"), scales=("paper",),
        deviation="20News I and II are rebuilt by the published recipe with draws of our own.",
    ),
    Source(
        "20news-2", "20News II: motorcycles, medicine, guns", partial(_real, "20news-2"),
        scales=("paper",),
    ),
    Source(
        "planted", "planted reviews, 2 classes", partial(_planted, 2), "SST, IMDB and 20News I",
        ("smoke",), PLANTED,
    ),
    Source(
        "planted-3", "planted reviews, 3 classes", partial(_planted, 3), "20News II", ("smoke",),
        PLANTED,
    ),
    Source("data1", "synthetic Data I", partial(_made, "data1"), inputs=TINY),
    Source("data2", "synthetic Data II, noisy", partial(_made, "data2"), inputs=TINY),
    Source("three", "synthetic, 3 classes", partial(_made, "three"), inputs=TINY),
    *(
        Source(name, f"synthetic, {ratio} positive to negative", partial(_made, name), inputs=TINY)
        for name, ratio in RATIOS.items()
    ),
)  # fmt: skip


def text(plan: Plan, corpus: str) -> Step[EncodedCorpus]:
    """The corpus with the vocabulary of all its splits, as published."""
    return stages.prepared(plan, corpus, words_of=("train", "dev", "test"))
