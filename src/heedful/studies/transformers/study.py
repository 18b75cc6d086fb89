"""A genuine encoder, fine-tuned: may its attention be shown, and does tying help?

Not a paper: what the other studies ask of small models, asked of all-MiniLM-L6-v2 (a BERT of six
layers) on sentences and on reviews. At smoke scale a tiny random BERT stands in its place.
"""

from __future__ import annotations

from typing import Any

from heedful.reproduction.paper import Paper
from heedful.reproduction.results import Step
from heedful.reproduction.study import Plan, Study
from heedful.studies.transformers import measures, steps
from heedful.studies.transformers.corpora import SOURCES

PAPER = Paper.beside(__file__)


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
    reference=PAPER.reference,
    sources=SOURCES,
    seeds={"smoke": 2, "paper": 3},
    artifacts=(
        PAPER.artifact("T1", measures.corpora, _prepared),
        PAPER.artifact("T2", measures.verdicts, _audits),
        PAPER.artifact("T3", measures.ranking, _audits),
        PAPER.artifact("F1", measures.ranked, _audits),
        PAPER.artifact("F2", measures.sweep, _sweep),
    ),
    claims=(
        PAPER.claim("HF-1", measures.beyond_random, _audits),
        PAPER.claim("HF-2", measures.beyond_attention, _audits),
        PAPER.claim("HF-3", measures.reliance_gained, _audits),
        PAPER.claim("HF-4", measures.faithfulness_gained, _audits),
    ),
    deviations=PAPER.deviations,
)
