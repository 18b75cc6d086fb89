"""A genuine encoder, fine-tuned: may its attention be shown, and does tying help?

Not a paper: what the other studies ask of small models, asked of all-MiniLM-L6-v2 (a BERT of six
layers) on sentences and on reviews. At smoke scale a tiny random BERT stands in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from heedful.corpora import EncodedCorpus, load_corpus, planted
from heedful.reproduction.ledger import above
from heedful.reproduction.results import Step
from heedful.reproduction.study import Artifact, Claim, Plan, Scale, Source, Study
from heedful.runs.randomness import key
from heedful.studies.transformers import measures, steps
from heedful.studies.transformers.measures import METHOD, TIED
from heedful.training import FINE_TUNING, TrainConfig

if TYPE_CHECKING:
    from heedful.corpora import Corpus
    from heedful.models.huggingface import PretrainedClassifier

PLANTED = {"train": 240, "dev": 60, "test": 120}
REVIEWS = {"train": 8_000, "dev": 1_000, "test": 2_000}
STRENGTHS: Mapping[Scale, tuple[float, ...]] = {
    "smoke": (1.0, 10.0),
    "paper": (0.1, 0.3, 1.0, 3.0),
}
TRAIN: Mapping[Scale, TrainConfig] = {
    "smoke": replace(FINE_TUNING, epochs=2, batch_size=16, learning_rate=3e-3),
    "paper": replace(FINE_TUNING, learning_rate=1e-4, precision="bfloat16"),
}
AUDITS = (
    "substitution", "read-alone", "deletion", "input-erasure", "violation", "randomisation"
)  # fmt: skip
AUDITED: Mapping[str, int] = {"planted": 100, "sst": 400, "imdb": 100}
"""Test documents that the audits look at; accuracy and the sweep look at all."""
SCRAMBLED: Mapping[str, int] = {"planted": 10, "sst": 40, "imdb": 16}
"""Documents that are explained again with the weights drawn anew, which takes longest."""
QUICK = ("random", "attention", "gradient", "leave-one-out", "rollout")
"""Methods of the smoke scale; at paper scale all that the model offers."""

Rows = Mapping[str, pd.DataFrame]


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


def _text(plan: Plan, corpus: str) -> Step[EncodedCorpus]:
    return steps.pieces(plan, corpus, plan.pick(64, 256))


def _model(plan: Plan, corpus: str, strength: float, seed: int) -> Step[PretrainedClassifier]:
    return steps.tuned(plan, corpus, strength, seed, TRAIN[plan.scale], plan.pick(64, 256))


def _strengths(plan: Plan) -> tuple[float, ...]:
    return (0.0, *STRENGTHS[plan.scale])


def _dev(plan: Plan, corpus: str, strength: float, seed: int) -> Step[dict[str, Any]]:
    return steps.weighed(_model(plan, corpus, strength, seed), strength, seed)


def chosen(plan: Plan, corpus: str) -> Step[dict[str, Any]]:
    """The strength kept by the remedy's rule."""
    found = [_dev(plan, corpus, one, seed) for one in _strengths(plan) for seed in plan.seeds]
    return steps.chosen(plan, corpus, found)


def swept(plan: Plan, corpus: str, strength: float, seed: int) -> Step[Rows]:
    """Decisions on test with trained, flat and shuffled attention."""
    return steps.substituted(_model(plan, corpus, strength, seed), seed, 0)


def audited(plan: Plan, corpus: str, model: str, seed: int) -> Step[Rows]:
    """The rows of all audits of the plain or the tied model."""
    methods = plan.pick(QUICK, None)
    sizes = AUDITED[corpus], {"randomisation": SCRAMBLED[corpus]}
    base = _model(plan, corpus, 0.0, seed)
    if model != TIED:
        return steps.examined(base, AUDITS, methods, *sizes, seed)
    among = [_model(plan, corpus, one, seed) for one in STRENGTHS[plan.scale]]
    rule = chosen(plan, corpus)
    return steps.examined(base, AUDITS, methods, *sizes, seed, "tied", among, rule)


def _prepared(plan: Plan, corpus: str) -> list[Step[Any]]:
    return [_text(plan, corpus)]


def _sweep(plan: Plan, corpus: str) -> list[Step[Any]]:
    tested = [swept(plan, corpus, one, seed) for one in _strengths(plan) for seed in plan.seeds]
    return [*tested, chosen(plan, corpus)]


def _audits(plan: Plan, corpus: str) -> list[Step[Any]]:
    found = [audited(plan, corpus, model, seed) for model in measures.MODELS for seed in plan.seeds]
    # The sweep first: the tied model's audits wait for all of it.
    return [*_sweep(plan, corpus), *found]


_STEPS = measures.Steps(_text, swept, chosen, audited, _strengths)

STUDY = Study(
    name="transformers",
    title="A fine-tuned Transformer: its attention, other explanations, and tying",
    reference="Not a paper: the studies' questions, asked of a pretrained encoder.",
    sources=(
        Source("planted", "planted reviews", _planted, scales=("smoke",), inputs=PLANTED),
        Source("sst", "Stanford Sentiment Treebank, 2 classes", partial(_named, "sst:2", {}),
               scales=("paper",)),
        Source(
            "imdb", "Large Movie Review Dataset, a part", partial(_named, "imdb:2", REVIEWS),
            scales=("paper",), inputs=REVIEWS,
            deviation="Of IMDB 8,000 reviews are trained on, 2,000 tested, the first 256 pieces "
            "of each.",
        ),
    ),
    seeds={"smoke": 2, "paper": 3},
    artifacts=(
        Artifact("T1", "The corpora in pieces of the encoder", "ours", "table",
                 partial(measures.corpora, _STEPS), _prepared),
        Artifact("T2", "Accuracy and verdict, plain and tied", "ours", "table",
                 partial(measures.verdicts, _STEPS), _audits),
        Artifact("T3", "All ways to explain the model, from the most to the least faithful", "ours",
                 "table", partial(measures.ranking, _STEPS), _audits),
        Artifact("F1", "Faithfulness of every explanation, plain and tied", "ours", "figure",
                 partial(measures.ranked, _STEPS), _audits),
        Artifact("F2", "What tying costs and buys", "ours", "figure",
                 partial(measures.sweep, _STEPS), _sweep),
    ),
    claims=(
        Claim(
            "HF-1", "Leaving words out of attention finds needed words better than chance.",
            "issue of this project", "faithfulness of leave-one-out minus that of a random order",
            "not given", above(0.0), partial(measures.beyond_random, _STEPS, METHOD), _audits,
            over="all",
        ),
        Claim(
            "HF-2", "Some other explanation is more faithful than attention.",
            "issue of this project",
            "faithfulness of the best other explanation, chosen on half of the documents, minus "
            "that of attention, on the other half",
            "not given", above(0.0), partial(measures.beyond_attention, _STEPS), _audits,
            over="all",
        ),
        Claim(
            "HF-3", "Tying makes decisions depend more on where attention lies.",
            "faithful study, 4", "decisions changed by shuffled attention, tied minus plain",
            "not given", above(0.0), partial(measures.reliance_gained, _STEPS), _audits,
            over="all",
        ),
        Claim(
            "HF-4", "Tying makes attention itself a more faithful explanation.",
            "issue of this project", "faithfulness of attention, tied minus plain",
            "not given", above(0.0), partial(measures.faithfulness_gained, _STEPS), _audits,
            over="all",
        ),
    ),
    deviations=lambda plan: ("No paper has these numbers; there is nothing to deviate from.",),
)  # fmt: skip
