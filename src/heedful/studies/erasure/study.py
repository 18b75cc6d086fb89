"""Is attention interpretable? Erasing attention weights in six architectures.

See docs/studies/erasure.md.

    heedful reproduce erasure                         # planted reviews, about 3 minutes
    heedful reproduce erasure --scale paper --data-root DATA --device cuda

**In two places.** Everything travels as finished steps, so that a machine with the texts and one
with a GPU can share the work. Steps are known by their names and inputs, not by where they lie.

1. Where the data and gensim are, `heedful reproduce erasure --scale paper --only T1 --no-figures
   --out OUT` prepares the corpora: ids, vocabularies and word vectors under `OUT/erasure/steps/
   CORPUS/corpus/`, no raw text.
2. Carry `OUT/erasure/steps` to the GPU machine and run the whole study there with `--no-figures`.
   A kill costs at most a minute: the same command goes on. `--jobs` fills a GPU.
3. Bring `steps/*/*/*/erased.parquet` and `erased.step.json` back into `OUT/erasure/steps` (a few
   megabytes per model; the models themselves can stay) and draw: the command of step 1 with
   `--no-compute`, without `--only` and `--no-figures`.

**Limits.** Documents of more than 2,000 tokens are cut there, those without words dropped, both
counted in T1. A hierarchical model reads any number of sentences. Documents of one item (a sentence
in HANs, a word in FLANs) count for accuracy alone; N6 counts them, and what never flips.
"""

from __future__ import annotations

from typing import Any

from heedful.reproduction.results import Step
from heedful.reproduction.study import Plan, Study
from heedful.studies.erasure import checks, several_claims, single_claims
from heedful.studies.erasure.corpora import PASSES, SOURCES, counts, text
from heedful.studies.erasure.figures import box_plots, contingencies, histograms, scatters
from heedful.studies.erasure.models import MODELS, WITHOUT
from heedful.studies.erasure.our_tables import all_rankings, by_units, how_they_learnt, what_is_left
from heedful.studies.erasure.printed import PAPER
from heedful.studies.erasure.steps import needs
from heedful.studies.erasure.tables import (
    accuracies,
    corpus_sizes,
    exclusions,
    how_often_earlier,
    more_than_half,
    negatives,
    single_flips,
    top_item_flips,
    who_is_earlier,
)

FIG_5 = ("HANrnn", "FLANrnn", "FLANconv")


def _sizes(plan: Plan, corpus: str) -> list[Step[Any]]:
    # The corpus itself too: asking for T1 prepares all that training elsewhere starts from.
    return [text(plan, corpus), counts(plan, corpus)]


def _all(plan: Plan, corpus: str) -> list[Step[Any]]:
    return [counts(plan, corpus), *needs(*MODELS)(plan, corpus)]


def _deviations(plan: Plan) -> tuple[str, ...]:
    count = len(plan.seeds)
    passes = ", ".join(f"{corpus} {PASSES.get(corpus, 30)}" for corpus in plan.corpora)
    return PAPER.deviations(
        plan, trainings=f"{count} training{'s' if count > 1 else ''}", passes=passes
    )


_EVERY = needs(*MODELS)
ARTIFACTS = (
    PAPER.artifact("T1", corpus_sizes, _sizes),
    PAPER.artifact("T2", single_flips, needs("HANrnn")),
    PAPER.artifact("T3", accuracies, _all),
    PAPER.artifact("F3", scatters("HANrnn", per_bin=10), needs("HANrnn")),
    PAPER.artifact("F4", histograms("HANrnn"), needs("HANrnn")),
    PAPER.artifact("F5", box_plots(*FIG_5), needs(*FIG_5)),
    PAPER.artifact("F6", box_plots(*WITHOUT), needs(*WITHOUT)),
    PAPER.artifact("F7", scatters(*MODELS, per_bin=4), _EVERY),
    PAPER.artifact("F8", histograms(*MODELS), _EVERY),
    PAPER.artifact("F9", contingencies(*MODELS, ranking="attention"), _EVERY),
    PAPER.artifact("F10", box_plots(*MODELS), _EVERY),
    PAPER.artifact("F11", box_plots(*MODELS, of="mass"), _EVERY),
    PAPER.artifact("F12", contingencies(*MODELS, ranking="gradient"), _EVERY),
    PAPER.artifact("F13", contingencies(*MODELS, ranking="product"), _EVERY),
    PAPER.artifact("N1", who_is_earlier, _EVERY),
    PAPER.artifact("N2", how_often_earlier, _EVERY),
    PAPER.artifact("N3", more_than_half, needs("FLANnoenc")),
    PAPER.artifact("N4", top_item_flips, _EVERY),
    PAPER.artifact("N5", negatives, _EVERY),
    PAPER.artifact("N6", exclusions, _all),
    PAPER.artifact("X1", all_rankings, _EVERY),
    PAPER.artifact("X2", by_units, _EVERY),
    PAPER.artifact("X3", what_is_left, _EVERY),
    PAPER.artifact("X4", how_they_learnt, _EVERY),
)

CLAIM_ORDER = [*(f"ERA-{k}" for k in range(1, 22)), *(f"ERA-A{k}" for k in range(1, 8))]
_MODULES = (single_claims, several_claims, checks)
_CLAIMS = [claim for module in _MODULES for claim in module.CLAIMS]


STUDY = Study(
    name="erasure",
    title="Is attention interpretable? Erasing attention weights",
    reference=PAPER.reference,
    sources=SOURCES,
    artifacts=ARTIFACTS,
    claims=tuple(sorted(_CLAIMS, key=lambda claim: CLAIM_ORDER.index(claim.id))),
    seeds={"smoke": 1, "paper": 5},
    deviations=_deviations,
)
