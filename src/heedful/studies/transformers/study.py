"""A genuine encoder, fine-tuned: may its attention be shown, and does tying help?

Not a paper: what the other studies ask of small models, asked of all-MiniLM-L6-v2 (a BERT of six
layers) on sentences and on reviews. At smoke scale a tiny random BERT stands in its place.
"""

from __future__ import annotations

from typing import Any

from heedful.reproduction.ledger import above
from heedful.reproduction.results import Step
from heedful.reproduction.study import Artifact, Claim, Plan, Study
from heedful.studies.transformers import measures, steps
from heedful.studies.transformers.corpora import SOURCES


def _prepared(plan: Plan, corpus: str) -> list[Step[Any]]:
    return [steps.pieces(plan, corpus)]


def _sweep(plan: Plan, corpus: str) -> list[Step[Any]]:
    tested = [
        steps.swept(plan, corpus, one, seed) for one in steps.strengths(plan) for seed in plan.seeds
    ]
    return [*tested, steps.chosen(plan, corpus)]


def _audits(plan: Plan, corpus: str) -> list[Step[Any]]:
    found = [
        steps.audited(plan, corpus, model, seed) for model in steps.MODELS for seed in plan.seeds
    ]
    # The sweep first: the tied model's audits wait for all of it.
    return [*_sweep(plan, corpus), *found]


STUDY = Study(
    name="transformers",
    title="A fine-tuned Transformer: its attention, other explanations, and tying",
    reference="Not a paper: the studies' questions, asked of a pretrained encoder.",
    sources=SOURCES,
    seeds={"smoke": 2, "paper": 3},
    artifacts=(
        Artifact("T1", "The corpora in pieces of the encoder", "ours", "table",
                 measures.corpora, _prepared),
        Artifact("T2", "Accuracy and verdict, plain and tied", "ours", "table",
                 measures.verdicts, _audits),
        Artifact("T3", "All ways to explain the model, from the most to the least faithful", "ours",
                 "table", measures.ranking, _audits),
        Artifact("F1", "Faithfulness of every explanation, plain and tied", "ours", "figure",
                 measures.ranked, _audits),
        Artifact("F2", "What tying costs and buys", "ours", "figure",
                 measures.sweep, _sweep),
    ),
    claims=(
        Claim(
            "HF-1", "Leaving words out of attention finds needed words better than chance.",
            "issue of this project", "faithfulness of leave-one-out minus that of a random order",
            "not given", above(0.0), measures.beyond_random, _audits,
            over="all",
        ),
        Claim(
            "HF-2", "Some other explanation is more faithful than attention.",
            "issue of this project",
            "faithfulness of the best other explanation, chosen on half of the documents, minus "
            "that of attention, on the other half",
            "not given", above(0.0), measures.beyond_attention, _audits,
            over="all",
        ),
        Claim(
            "HF-3", "Tying makes decisions depend more on where attention lies.",
            "faithful study, 4", "decisions changed by shuffled attention, tied minus plain",
            "not given", above(0.0), measures.reliance_gained, _audits,
            over="all",
        ),
        Claim(
            "HF-4", "Tying makes attention itself a more faithful explanation.",
            "issue of this project", "faithfulness of attention, tied minus plain",
            "not given", above(0.0), measures.faithfulness_gained, _audits,
            over="all",
        ),
    ),
    deviations=lambda plan: ("No paper has these numbers; there is nothing to deviate from.",),
)  # fmt: skip
