"""The corpora of the tracing study: sentences with classes, narratives with ratings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from heedful.corpora import Corpus, EncodedCorpus, planted
from heedful.corpora.narrative_batches import (
    NarrativeCorpus,
    encode_narratives,
    load_narratives,
    save_narratives,
)
from heedful.corpora.narratives import planted_narratives, read_send
from heedful.corpora.root import root_of
from heedful.corpora.vectors import load_vectors
from heedful.errors import InputError
from heedful.reproduction import stages
from heedful.reproduction.results import Results, Step, named
from heedful.reproduction.study import Plan
from heedful.runs.steps import TABLE, Form
from heedful.studies.tracing.printed import PAPER
from heedful.studies.tracing.vectors import FIFTY, made_up

DIM = 100
"""Of the vectors at hand; the published ones have 300."""
SEND = "send"
TEXTS = ("sst", "planted")
"""Sentences with classes; planted reviews stand in at smoke scale."""
STORIES = (SEND, "narratives")
"""Narratives with ratings over time; planted ones stand in at both scales."""
MADE = ("planted", "narratives")
"""Generated corpora, which bring their own lexicon."""

PLANTED = {"train": 1_000, "dev": 150, "test": 300}
TALES = {
    "smoke": {"train": 30, "dev": 10, "test": 16},
    "paper": {"train": 114, "dev": 40, "test": 39},
}
MINUTES = {"smoke": 1.2, "paper": 2.0}
"""Mean length of planted narratives."""
NARRATIVES: Form[NarrativeCorpus] = Form("", save_narratives, load_narratives)


def _planted(plan: Plan) -> Corpus:
    return planted(5, "short", sizes=PLANTED)


SOURCES = (
    PAPER.source("sst"),
    PAPER.source("planted", _planted, PLANTED),
    PAPER.source(SEND),
    PAPER.source("narratives", inputs=TALES),
)


def vectors_of(plan: Plan) -> Path | None:
    """The word vectors; none at smoke scale."""
    return None if plan.scale == "smoke" else stages.word_vectors(plan)


def text(plan: Plan, corpus: str) -> Step[EncodedCorpus]:
    """The sentences as ids, with the words of all splits and their vectors."""
    every = ("train", "dev", "test")
    return stages.prepared(plan, corpus, vectors_of(plan), words_of=every)


def fifty(plan: Plan, corpus: str) -> Step[pd.DataFrame]:
    """The 50-dimensional vectors of the same words, a row for each; made up at smoke scale."""
    source, path = text(plan, corpus), vectors_of(plan)
    file = None if path is None else path.with_name(f"glove.6B.{FIFTY}d.txt.gz")

    def compute(results: Results) -> pd.DataFrame:
        words = results[source].vocabulary
        found = made_up(len(words), FIFTY) if file is None else load_vectors(file, words).matrix
        return pd.DataFrame(found.astype(np.float16), columns=[f"v{d}" for d in range(FIFTY)])

    inputs = {"vectors": None if file is None else file.name}
    return Step(named(corpus, f"vectors-{FIFTY}"), compute, inputs, TABLE, (source,))


def told(plan: Plan, corpus: str) -> Step[NarrativeCorpus]:
    """The narratives in windows."""

    vectors = vectors_of(plan)

    def compute(results: Results) -> NarrativeCorpus:
        if corpus == SEND:
            return encode_narratives(read_send(root_of(plan.data_root)), vectors)
        made = planted_narratives(0, TALES[plan.scale], MINUTES[plan.scale])
        return encode_narratives(made, vectors)

    inputs = {"scale": plan.scale, "sizes": TALES, "minutes": MINUTES}
    keyed = {**inputs, "vectors": None if vectors is None else vectors.name}
    absent = _without_send(plan) if corpus == SEND else ""
    return Step(named(corpus, "corpus"), compute, keyed, NARRATIVES, absent=absent)


def either(plan: Plan, corpus: str) -> Step[Any]:
    """The sentences or the narratives."""
    return told(plan, corpus) if corpus in STORIES else text(plan, corpus)


def _without_send(plan: Plan) -> str:
    """Why its steps are nowhere, told where the study is only drawn; nothing where SEND is."""
    try:
        if (root_of(plan.data_root) / SEND).is_dir():
            return ""
    except InputError:  # no data root at all
        pass
    return (
        "data absent: SEND is not in the data root; its authors give it out on request (planted "
        "narratives are followed at smoke scale and are no evidence about it)"
    )
