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
   A kill costs at most a minute: the same command goes on. To fill a GPU, let several processes
   work on the same folder, one cell each: `cell(OUT, CORPUS, MODEL)` below.
3. Bring `steps/*/*/*/erased.parquet` and `erased.step.json` back into `OUT/erasure/steps` (a few
   megabytes per model; the models themselves can stay) and draw: the command of step 1 with
   `--no-compute`, without `--only` and `--no-figures`.

**Limits.** Documents of more than 2,000 tokens are cut there, those without words dropped, both
counted in T1. A hierarchical model reads any number of sentences. Documents of one item (a sentence
in HANs, a word in FLANs) count for accuracy alone; N6 counts them, and what never flips.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heedful.errors import InputError, unknown
from heedful.reproduction.reproduce import STEPS
from heedful.reproduction.results import Results, Step
from heedful.reproduction.study import Artifact, Plan, Study
from heedful.studies.erasure import accuracy_claims, checks, several_claims, single_claims
from heedful.studies.erasure.corpora import PASSES, SOURCES, counts, text
from heedful.studies.erasure.figures import box_plots, contingencies, histograms, scatters
from heedful.studies.erasure.models import MODELS, WITHOUT
from heedful.studies.erasure.printed import REFERENCE
from heedful.studies.erasure.steps import erased, needs
from heedful.studies.erasure.tables import (
    accuracies,
    all_rankings,
    by_units,
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
    found = [
        "Sentences by our rule instead of spaCy's parser; words and marks by our token rule. HANs "
        "and FLANs read the same tokens.",
        "Random draws are keyed by (seed, instance); the random item is any other item, the "
        "published rule stands beside it; ties by position; recurrent biases start at 0.",
        "Erased decisions are computed in float64 from scores, by one function.",
        f"{len(plan.seeds)} training{'s' if len(plan.seeds) > 1 else ''} per cell; the paper has "
        "one. Intervals are over test documents, and over seeds where there are several.",
        "Extensions of ours: five random orders, the centred product and the exact greedy order "
        "(documents of at most 256 items), in X1, X2 and ERA-A5.",
    ]
    if plan.scale == "smoke":
        return (*found, "Width 20, random word vectors, no schedule of the paper.")
    passes = ", ".join(f"{corpus} {PASSES.get(corpus, 30)}" for corpus in plan.corpora)
    return (
        *found,
        f"Word vectors by gensim's CBOW on each corpus, one worker, passes: {passes}; carried as "
        "bytes (1 part in 254 of a word's largest entry).",
        "Dropout, rates, epochs, patience and schedules of the paper, whose corpora are 5 to 400 "
        "times larger: as many epochs are far fewer steps here.",
        "Batches are bounded by documents × longest document in HANs too (the release bounds them "
        "by the longest sentence).",
    )


def _artifact(
    id: str, title: str, where: str, kind: Any, make: Any, needed: Any, paper: str = ""
) -> Artifact:
    return Artifact(id, title, where, kind, make, needed, paper=paper)


_EVERY = needs(*MODELS)
ARTIFACTS = (
    _artifact("T1", "The corpora", "Table 1", "table", corpus_sizes, _sizes),
    _artifact(
        "T2", "Who flips the decision: the top item or a random other one", "Table 2", "table",
        single_flips, needs("HANrnn"), "HANrnn: only the top item flips 7.6 to 12.2 %.",
    ),
    _artifact("T3", "Test accuracy", "Table 3", "table", accuracies, _all, "45.4 to 75.5 %."),
    _artifact(
        "F3", "Difference in output against difference in attention, HANrnn", "Fig. 3", "figure",
        scatters("HANrnn", per_bin=10), needs("HANrnn"), "Near zero up to Δα of 0.4, then upwards.",
    ),
    _artifact(
        "F4", "Difference in attention where the random item matters more, HANrnn", "Fig. 4",
        "figure", histograms("HANrnn"), needs("HANrnn"), "Nearly all at small Δα.",
    ),
    _artifact(
        "F5", "Items removed at the first flip", "Fig. 5", "figure", box_plots(*FIG_5),
        needs(*FIG_5), "Late with recurrent encoders, earlier with convolutions.",
    ),
    _artifact(
        "F6", "Items removed at the first flip, no encoder", "Fig. 6", "figure",
        box_plots(*WITHOUT), needs(*WITHOUT), "Very early; attention as good as the gradient.",
    ),
    _artifact(
        "F7", "Difference in output against difference in attention", "Fig. 7", "figure",
        scatters(*MODELS, per_bin=4), _EVERY, "The upswing starts earlier without encoder.",
    ),
    _artifact(
        "F8", "Difference in attention where the random item matters more", "Fig. 8", "figure",
        histograms(*MODELS), _EVERY, "Fat tails in the HANs on Yahoo.",
    ),
    _artifact(
        "F9", "Single erasures by attention", "Fig. 9", "figure",
        contingencies(*MODELS, ranking="attention"), _EVERY, "The top item flips more often.",
    ),
    _artifact(
        "F10", "Items removed at the first flip, all models", "Fig. 10", "figure",
        box_plots(*MODELS), _EVERY, "Gradient and product before attention, but without encoder.",
    ),
    _artifact(
        "F11", "Attention mass removed at the first flip", "Fig. 11", "figure",
        box_plots(*MODELS, of="mass"), _EVERY, "About 0.25 less by gradient and product.",
    ),
    _artifact(
        "F12", "Single erasures by gradient", "Fig. 12", "figure",
        contingencies(*MODELS, ranking="gradient"), _EVERY, "Below attention in 14 of 24 models.",
    ),
    _artifact(
        "F13", "Single erasures by product", "Fig. 13", "figure",
        contingencies(*MODELS, ranking="product"), _EVERY, "Above attention in 24 of 24 models.",
    ),
    _artifact(
        "N1", "Which ranking flips with fewer items", "5.4", "table", who_is_earlier, _EVERY,
        "Gradient earlier on most instances of 10 of 16 encoder models.",
    ),
    _artifact(
        "N2", "Gradient earlier over attention earlier", "5.4", "table", how_often_earlier, _EVERY,
        "At least 1.6 in every encoder model.",
    ),
    _artifact(
        "N3", "FLANnoenc: more than half of the items removed", "5.6", "table", more_than_half,
        needs("FLANnoenc"), "Amazon: 12.4, 2.8, 0.9 and 0.5 %.",
    ),
    _artifact(
        "N4", "How often the single top item flips", "A.3", "table", top_item_flips, _EVERY,
        "Product above attention in 24 of 24 models, gradient below in 14 of 24.",
    ),
    _artifact(
        "N5", "Negative differences in output", "4.1", "table", negatives, _EVERY,
        "A small fraction.",
    ),
    _artifact("N6", "Instances left out", "ours", "table", exclusions, _all, "Not reported."),
    _artifact("X1", "Every ranking, ours among them", "ours", "table", all_rankings, _EVERY),
    _artifact("X2", "Items removed at equal numbers of items", "ours", "table", by_units, _EVERY),
)  # fmt: skip

CLAIM_ORDER = [*(f"ERA-{k}" for k in range(1, 22)), *(f"ERA-A{k}" for k in range(1, 7))]
_MODULES = (single_claims, several_claims, accuracy_claims, checks)
_CLAIMS = [claim for module in _MODULES for claim in module.CLAIMS]


def cell(
    out: Path | str,
    corpus: str,
    model: str,
    seed: int = 0,
    scale: str = "paper",
    device: str = "cuda",
) -> None:
    """Trains one model and erases its attention, in the folder that the study is drawn from.

    Cells share no file, so several processes may work on one folder, each on its own cells.
    """
    plan = STUDY.plan(scale, [corpus], seeds=seed + 1, device=device)
    if model not in MODELS:
        raise unknown("model of the erasure study", model, MODELS)
    wanted = erased(plan, corpus, model, seed)
    results = Results(Path(out) / STUDY.name / STEPS, device)
    results.finish([wanted])
    if wanted.name in results.skipped:
        raise InputError(results.skipped[wanted.name])


STUDY = Study(
    name="erasure",
    title="Is attention interpretable? Erasing attention weights",
    reference=REFERENCE,
    sources=SOURCES,
    artifacts=ARTIFACTS,
    claims=tuple(sorted(_CLAIMS, key=lambda claim: CLAIM_ORDER.index(claim.id))),
    seeds={"smoke": 1, "paper": 1},
    deviations=_deviations,
)
