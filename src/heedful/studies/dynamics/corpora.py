"""The classification corpora of the dynamics study (docs/studies/dynamics.md, "Corpora")."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from heedful.corpora import Corpus, EncodedCorpus, load_corpus, planted
from heedful.corpora.recipes import with_marks
from heedful.corpora.root import root_of
from heedful.corpora.zhang import SOURCE as ZHANG
from heedful.errors import InputError
from heedful.reproduction import stages
from heedful.reproduction.results import Step
from heedful.reproduction.study import Plan, Source
from heedful.studies.dynamics import translation

NAMES = {
    "imdb": "imdb:2/dynamics",
    "ag-news": "ag_news:world-business/dynamics",
    "20ng": "20newsgroups:rec.sport.baseball,rec.sport.hockey/dynamics",
    "sst": "sst:2/dynamics",
    "amazon": "amazon:2/dynamics",
    "sms": "sms/dynamics",
}
OPTIONS: dict[str, Any] = {"20ng": {"keep": ("quotes",)}}
"""With quotes the median lengths are those of T9 (185 and 211 against 183 and 207), without not."""
YELP = ("yelp_full/train.csv", "yelp_review_full_csv/train.csv")
"""Where its training reviews may lie."""
PLANTED = {"train": 640, "dev": 160, "test": 20}
TEXTS = (*NAMES, "yelp", "planted")
"""Corpora of the classification tables."""
SIX = tuple(name for name in TEXTS if name != "sms")
"""Without SMS, which the authors left out."""
VECTORS = "glove/glove.6B.100d.subset.txt.gz"


def _real(name: str, plan: Plan) -> Corpus:
    return load_corpus(NAMES[name], plan.data_root, **OPTIONS.get(name, {}))


def _yelp(plan: Plan) -> Corpus:
    """Yelp by sign: at most two stars against at least four."""
    stars = load_corpus("yelp_full/dynamics", plan.data_root)
    splits = {
        split: [replace(d, label=int(d.label > 2)) for d in documents if d.label != 2]
        for split, documents in stars.splits.items()
    }
    return replace(stars, classes=("negative", "positive"), splits=splits)


def _planted(plan: Plan) -> Corpus:
    return with_marks(planted(2, "short", sizes=PLANTED))


_PAPER: Any = {"scales": ("paper",)}
SOURCES = (
    Source(
        "imdb", "IMDB", partial(_real, "imdb"),
        deviation="IMDB's texts are longer by our count of words than by the paper's (T9).",
        **_PAPER,
    ),
    Source(
        "ag-news", "AG News, world and business", partial(_real, "ag-news"),
        deviation="AG News has 14,161 training texts of the 60,000.", **_PAPER,
    ),
    Source(
        "20ng", "20 Newsgroups, baseball and hockey", partial(_real, "20ng"),
        inputs=OPTIONS["20ng"], **_PAPER,
    ),
    Source(
        "sst", "SST, two classes", partial(_real, "sst"),
        deviation="SST has its standard split (6,920 and 1,821); the paper's matches none.",
        **_PAPER,
    ),
    Source(
        "amazon", "Amazon multi-domain", partial(_real, "amazon"),
        deviation="Amazon has four domains of 8,000 reviews, of which those of fewer than 400 "
        "words are used, instead of 36,514.", **_PAPER,
    ),
    Source(
        "sms", "SMS spam", partial(_real, "sms"),
        deviation="SMS has more training texts and fewer known words than the paper's (T9).",
        **_PAPER,
    ),
    Source("yelp", "Yelp", _yelp, **_PAPER),
    Source(
        "planted", "planted reviews", _planted, "the six classification corpora", ("smoke",),
        PLANTED,
    ),
)  # fmt: skip


def text(plan: Plan, corpus: str) -> Step[EncodedCorpus]:
    """The corpus as ids: words seen three times; real ones with vectors for DYN-A4."""
    if corpus == "planted":
        return stages.prepared(plan, corpus, min_count=1)
    try:
        vectors = root_of(plan.data_root) / VECTORS
    except InputError:  # a machine that only has the prepared files: the name is what counts
        vectors = Path(VECTORS)
    found = stages.prepared(plan, corpus, vectors, min_count=3)
    return (
        replace(found, absent=translation.lacking(plan, YELP, ZHANG)) if corpus == "yelp" else found
    )
