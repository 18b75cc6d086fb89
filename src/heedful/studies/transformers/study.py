"""A genuine encoder, fine-tuned: may its attention be shown, and does tying help?

Not a paper: what the other studies ask of small models, asked of all-MiniLM-L6-v2 (a BERT of six
layers) and of paraphrase-MiniLM-L3-v2 (three) on sentences and on reviews. At smoke scale a tiny
random BERT stands in their place.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from heedful.reproduction.paper import Paper
from heedful.reproduction.results import Step
from heedful.reproduction.study import Plan, Study
from heedful.studies.transformers import evidence, measures, steps
from heedful.studies.transformers.corpora import KNOWN, READ, RETRAINED, SOURCES
from heedful.studies.transformers.steps import PLAIN, TIED

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
    fills_card=True,
    artifacts=(
        PAPER.artifact("T1", measures.corpora, _prepared),
        PAPER.artifact("T2", measures.verdicts, _audits, READ),
        PAPER.artifact("T3", measures.ranking, _audits, READ),
        PAPER.artifact("T4", evidence.found_evidence, evidence.needs_evidence, KNOWN),
        PAPER.artifact("T5", evidence.retraining, evidence.needs_retrained, RETRAINED),
        PAPER.artifact("F1", measures.ranked, _audits, READ),
        PAPER.artifact("F2", measures.sweep, _sweep, READ),
        PAPER.artifact("F3", measures.by_layer, measures.needs_layers, READ),
    ),
    claims=(
        PAPER.claim("HF-5", partial(measures.shuffled, strength=0.0, site=measures.POOLED),
                    measures.needs_layers, READ),
        PAPER.claim("HF-6", partial(measures.shuffled, strength=0.0, site=measures.ALL),
                    measures.needs_layers, READ),
        PAPER.claim("HF-7", partial(measures.half_as_good, model=PLAIN), _audits, READ),
        PAPER.claim("HF-8", partial(measures.half_as_good, model=TIED), _audits, READ),
        PAPER.claim("HF-9", measures.tied_reliance, _sweep, READ),
        PAPER.claim("HF-10", measures.accuracy_kept, _sweep, READ),
        PAPER.claim("HF-11", measures.faithfulness_gained, _audits, READ),
        PAPER.claim("HF-12", evidence.occlusion_points_best, evidence.needs_evidence, KNOWN),
        PAPER.claim("HF-13", evidence.attention_points, evidence.needs_evidence, KNOWN),
        PAPER.claim("HF-14", evidence.occlusion_takes_most, evidence.needs_retrained, RETRAINED),
        PAPER.claim("HF-15", evidence.attention_takes_more_than_luck, evidence.needs_retrained,
                    RETRAINED),
    ),
    deviations=PAPER.deviations,
)  # fmt: skip
