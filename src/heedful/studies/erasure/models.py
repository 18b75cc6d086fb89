"""The erasure study's corpora and models: which step prepares, trains and erases each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.corpora import load_corpus, planted
from heedful.reproduction.results import Results, Step
from heedful.reproduction.study import Plan, Source
from heedful.statistics import draws
from heedful.statistics.draws import Draws
from heedful.studies.erasure.examination import Erased
from heedful.studies.erasure.steps import corpus_step, counts_step, drawn, erased_step, preset_step
from heedful.training import TrainConfig
from heedful.training.presets import PRESETS, Preset

if TYPE_CHECKING:
    import pandas as pd

    from heedful.corpora import Corpus, EncodedCorpus

PerDocument = Callable[..., np.ndarray]
"""One number per document from a model's rows and what else it needs; nan leaves one out."""
FAMILIES = ("HAN", "FLAN")
ENCODERS = ("rnn", "conv", "noenc")
MODELS = tuple(family + encoder for family in FAMILIES for encoder in ENCODERS)
WITH_ENCODER = tuple(model for model in MODELS if not model.endswith("noenc"))
WITHOUT = tuple(model for model in MODELS if model.endswith("noenc"))

SMOKE_SIZES: dict[str, int] = {"train": 900, "dev": 100, "test": 240}
SMOKE_TRAIN = TrainConfig(epochs=8, batch_size=32, learning_rate=8e-3, patience=0)
SMOKE_MODEL: dict[str, Any] = {
    "embedding_dim": 20, "width": 20, "attention_dim": 20, "dropout": 0.1, "start": "orthogonal",
}  # fmt: skip
MIN_COUNT = 5
DIM = 200

_VALUES: Mapping[str, str] = {
    "imdb-stars": "imdb", "imdb-ratings": "imdb", "amazon-stars": "amazon",
    "amazon-full": "amazon", "yelp-full": "yelp",
}  # fmt: skip
"""The published corpus whose dropouts, rates and schedules a corpus takes; else those of Yahoo."""
PASSES: Mapping[str, int] = {"imdb-stars": 10, "imdb-ratings": 10}
"""Passes of word2vec over the sentences; 30 where nothing else is said, as on Amazon and Yelp."""
TOPIC = ("20newsgroups", "ag-news", "yahoo-answers")
"""Corpora labelled by topic; the others by rating."""


def _planted(classes: int, plan: Plan) -> Corpus:
    return planted(classes, "long", sizes=SMOKE_SIZES)


def _real(name: str, plan: Plan) -> Corpus:
    return load_corpus(f"{name}/erasure", plan.data_root)


def _source(
    name: str, reader: str, title: str, stands_for: str | None = None, deviation: str = ""
) -> Source:
    scales: tuple[Any, ...] = () if stands_for is None else ("paper",)
    inputs = {"reader": f"{reader}/erasure"}
    return Source(name, title, partial(_real, reader), stands_for, scales, inputs, deviation)


SOURCES = (
    *(
        Source(
            f"planted-{classes}",
            f"planted reviews, {classes} classes",
            partial(_planted, classes),
            scales=("smoke",),
            inputs={"classes": classes, "sizes": SMOKE_SIZES},
        )
        for classes in (2, 5)
    ),
    _source(
        "20newsgroups", "20newsgroups", "20 Newsgroups, 20 topics", "Yahoo Answers, 10 topics",
        "20 Newsgroups is the topic corpus: bydate split, headers, footers and quotes removed.",
    ),
    _source(
        "imdb-stars", "imdb:stars", "IMDB by stars, 8 classes", "IMDB, 10 ratings (Diao et al.)",
        "IMDB by stars has no 5 and 6, 22,500 training reviews instead of 108,552.",
    ),
    _source(
        "amazon-stars", "amazon:stars", "Amazon multi-domain by stars, 4 classes",
        "Amazon review full, 5 stars",
        "Amazon multi-domain has 8,000 reviews in 4 classes (no 3 stars) instead of 3.65 million.",
    ),
    _source(
        "ag-news", "ag_news", "AG News, 4 topics", "Yahoo Answers, 10 topics",
        "AG News is trained on the 28,264 articles at hand; its texts have about two sentences.",
    ),
    _source("yahoo-answers", "yahoo_answers", "Yahoo Answers, 10 topics"),
    _source("imdb-ratings", "imdb_diao", "IMDB, 10 ratings (Diao et al. 2014)"),
    _source("amazon-full", "amazon_full", "Amazon review full, 5 stars"),
    _source("yelp-full", "yelp_full", "Yelp review full, 5 stars"),
)  # fmt: skip
"""Planted reviews at smoke scale, the four stand-ins at paper scale; the four originals have no
scale of their own: ask for them by `--corpora` when their files are in the data root."""
RATING = tuple(source.name for source in SOURCES if source.name not in TOPIC)


def preset_of(plan: Plan, corpus: str, model: str) -> Preset:
    """A model's recipe, sizes and training on a corpus: the paper's, or the smoke scale's."""
    family = "HAN" if model.startswith("HAN") else "FLAN"
    key = f"{family.lower()}-{model.removeprefix(family)}"
    found = PRESETS[f"erasure/{_VALUES.get(corpus, 'yahoo')}/{key}"]
    if plan.scale == "smoke":
        return replace(found, model=SMOKE_MODEL, train=SMOKE_TRAIN)
    return found


def text(plan: Plan, corpus: str) -> Step[EncodedCorpus]:
    """The prepared corpus; without pretrained vectors at smoke scale."""
    if plan.scale == "smoke":
        return corpus_step(plan, corpus, min_count=1)
    return corpus_step(plan, corpus, MIN_COUNT, PASSES.get(corpus, 30), DIM)


def counts(plan: Plan, corpus: str) -> Step[Any]:
    """Sizes of the prepared corpus."""
    return counts_step(text(plan, corpus), corpus)


def erased(plan: Plan, corpus: str, model: str, seed: int) -> Step[pd.DataFrame]:
    """The rows of one trained model over the corpus's test set."""
    read = text(plan, corpus)
    trained = preset_step(plan, read, preset_of(plan, corpus, model), seed)
    return erased_step(read, trained, seed)


def needs(*models: str) -> Callable[[Plan, str], list[Step[Any]]]:
    """The rows of the named models; what an artifact or claim asks for."""

    def of(plan: Plan, corpus: str) -> list[Step[Any]]:
        return [erased(plan, corpus, model, seed) for model in models for seed in plan.seeds]

    return of


@dataclass(frozen=True)
class View:
    """The finished models of one corpus, and statistics of them."""

    results: Results
    plan: Plan
    corpus: str

    def rows(self, model: str) -> list[Erased]:
        """One model's rows, for every seed."""
        seeds = self.plan.seeds
        return [Erased(self.results[erased(self.plan, self.corpus, model, s)]) for s in seeds]

    def mean(self, model: str, of: PerDocument, *arguments: Any) -> Draws:
        """The mean of one number per document, `of(rows, *arguments)`."""
        return drawn(self.rows(model), lambda one: draws.average(of(one, *arguments), one.names))

    def quantile(self, model: str, q: float, of: PerDocument, *arguments: Any) -> Draws:
        """A quantile of one number per document."""
        return drawn(
            self.rows(model), lambda one: draws.quantile(of(one, *arguments), q, one.names)
        )

    def median(self, model: str, of: PerDocument, *arguments: Any) -> Draws:
        """The median of one number per document."""
        return self.quantile(model, 0.5, of, *arguments)

    def odds(
        self,
        model: str,
        first: PerDocument,
        second: PerDocument,
    ) -> Draws:
        """How many times as often one thing holds as another."""
        return drawn(self.rows(model), lambda one: draws.odds(first(one), second(one), one.names))


def views(results: Results, plan: Plan, corpora: Sequence[str]) -> list[View]:
    """A view of each corpus."""
    return [View(results, plan, corpus) for corpus in corpora]
