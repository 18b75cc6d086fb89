"""The classification corpora of the dynamics study (docs/studies/dynamics.md, "Corpora")."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from heedful.corpora import Corpus, EncodedCorpus, load_corpus, planted
from heedful.corpora.newsgroups import REMOVABLE
from heedful.corpora.recipes import with_marks
from heedful.corpora.zhang import SOURCE as ZHANG
from heedful.reproduction import stages
from heedful.reproduction.results import Step
from heedful.reproduction.study import Plan
from heedful.studies.dynamics import translation
from heedful.studies.dynamics.printed import PAPER

KEPT: dict[str, Any] = {"keep": REMOVABLE}
"""Of 20NG: whole posts have the median lengths of T9, 183 and 207 words."""
YELP = ("yelp_full/train.csv", "yelp_review_full_csv/train.csv")
"""Where its training reviews may lie."""
PLANTED = {"train": 640, "dev": 160, "test": 20}
TEXTS = (*PAPER.readers, "yelp", "planted")
"""Corpora of the classification tables."""
SIX = tuple(name for name in TEXTS if name != "sms")
"""Without SMS, which the authors left out."""


def _newsgroups(plan: Plan) -> Corpus:
    return load_corpus(PAPER.readers["20ng"], plan.data_root, **KEPT)


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


SOURCES = (
    PAPER.source("imdb"),
    PAPER.source("ag-news"),
    PAPER.source("20ng", _newsgroups, KEPT),
    *map(PAPER.source, ("sst", "amazon", "sms")),
    PAPER.source("yelp", _yelp),
    PAPER.source("planted", _planted, PLANTED),
)


def text(plan: Plan, corpus: str) -> Step[EncodedCorpus]:
    """The corpus as ids: words seen three times or with a vector, which DYN-A4 starts from."""
    if corpus == "planted":
        return stages.prepared(plan, corpus, min_count=1)
    vectors = stages.word_vectors(plan)
    found = stages.prepared(plan, corpus, vectors, min_count=3, knows_vectors=True)
    return (
        replace(found, absent=translation.lacking(plan, YELP, ZHANG)) if corpus == "yelp" else found
    )
