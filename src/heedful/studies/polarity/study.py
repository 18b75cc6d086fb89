"""Polarity and attention scores of words, and the gradient flow that makes them (Sun & Lu 2020).

    heedful reproduce polarity                               smoke: planted reviews, tiny synthetic
    heedful reproduce polarity --scale paper --device cuda   SST, IMDB, 20News I and II, synthetic

Every artifact is data here: what it shows, of which steps, and where the paper has it. The steps
are in `steps`, the pictures in `figures`, the claims in `claims`.
"""

from __future__ import annotations

from typing import Any

from heedful.reproduction.study import Artifact, Study
from heedful.studies.polarity import appendix, corpora, figures, steps, synthetic
from heedful.studies.polarity.claims import CLAIMS, SST
from heedful.studies.polarity.figures import needs_grid, needs_path
from heedful.studies.polarity.printed import PAPER

BOTH = {"polarity": "polarity", "attention": "attention"}
LOCAL = {"local attention": "local attention", "attention": "global attention"}
POLARITY, ATTENTION = {"polarity": "polarity"}, {"attention": "attention"}
PATH, PREFERRED = needs_path("dp"), appendix.needs_preferred("dp-l")
IMDB, NEWS = ("imdb", "planted"), ("20news-1", "planted")
OPPOSED = ("positive-positive", "negative-negative", "negative-positive")
"""The pairs of S-F1; below, those of S-F11."""
THREE = ("zero-zero", "zero-one", "zero-two", "one-one", "one-two", "two-two", "neutral-neutral")


def _scatter(
    id: str,
    corpora: tuple[str, ...],
    model: str,
    scale: str,
    columns: dict[str, str],
) -> Artifact:
    make = figures.scatter(model, (scale,), columns)
    return PAPER.artifact(id, make, needs_grid([model]), corpora)


def _curves(id: str, corpus: str, model: str, prefixes: tuple[str, ...], **shown: Any) -> Artifact:
    make = synthetic.curves(model, prefixes, **shown)
    return PAPER.artifact(id, make, needs_path(model), (corpus,))


ARTIFACTS = (
    PAPER.artifact("M-T1", figures.datasets, figures.needs_sizes),
    PAPER.artifact("M-T2", figures.accuracy_grid, needs_grid(steps.MODELS), corpora.TEXTS),
    _scatter("M-F2", corpora.BINARY, "dp", "10", BOTH),
    _scatter("M-F3", SST, "dp", "100", BOTH),
    _scatter("M-F3c", corpora.SEVERAL, "dp", "10", ATTENTION),
    _scatter("M-F4", SST, "ad", "10", BOTH),
    PAPER.artifact("M-F5", figures.weights, needs_grid(["dp"]), SST),
    PAPER.artifact("M-X", figures.penalty, needs_grid(["dp"], steps.penalised), SST),
    PAPER.artifact("S-T1", figures.token_counts, figures.needs_sizes, corpora.TEXTS),
    _curves(
        "S-F1", "data1", "dp", ("pair",), settings=("plain", "wide start"), by="setting",
        only=OPPOSED,
    ),
    PAPER.artifact("S-F2", synthetic.pair_boxes, PATH, ("data1",)),
    PAPER.artifact("S-F3", synthetic.final_words("polarity"), PATH, ("data1", "data2")),
    PAPER.artifact("S-F4", synthetic.final_words("attention"), PATH, ("data1", "data2")),
    _curves(
        "S-F5", "data1", "dp", ("attention",), settings=("plain", "penalty"), by="setting",
        rate=steps.FAST,
    ),
    _curves("S-F6", "data2", "dp", ("pair",), rate=steps.FAST),
    PAPER.artifact("S-F7", synthetic.imbalance, synthetic.needs_balance, tuple(corpora.RATIOS)),
    _curves("S-F8", "data1", "dp-a", ("dot", "value dot")),
    _curves("S-F9", "data1", "dp-a", ("polarity", "attention"), settings=("penalty",)),
    _curves("S-F10", "data1", "ad", ("polarity", "attention")),
    _curves("S-F11", "three", "dp", ("dot",), only=THREE),
    _curves("S-F12", "three", "dp", ("attention",)),
    PAPER.artifact("S-F13", appendix.at_preferred("dp-l", LOCAL), PREFERRED, SST),
    _scatter("S-F14", SST, "dp-a", "20", POLARITY),
    _scatter("S-F15", SST, "dp-a", "20", ATTENTION),
    PAPER.artifact("S-F16", appendix.at_preferred("dp-l", POLARITY), PREFERRED, SST),
    _scatter("S-F17", IMDB, "dp-a", "10", POLARITY),
    _scatter("S-F18", IMDB, "dp-a", "10", ATTENTION),
    _scatter("S-F19", IMDB, "ad", "10", POLARITY),
    _scatter("S-F20", IMDB, "ad", "10", ATTENTION),
    _scatter("S-F21", NEWS, "dp-a", "1", ATTENTION),
    _scatter("S-F22", NEWS, "dp-a", "10", ATTENTION),
    _scatter("S-F23", NEWS, "dp-a", "20", ATTENTION),
    _scatter("S-F24", NEWS, "dp-a", "50", ATTENTION),
    PAPER.artifact("S-F25", figures.components, needs_grid(["dp-a"]), corpora.SEVERAL),
    _scatter("S-F28", corpora.SEVERAL, "dp-a", "10", ATTENTION),
    _curves("N-1", "data1", "dp", ("β", "|W|²", "W·W(0)")),
    PAPER.artifact("X-1", synthetic.terms, PATH, ("data1", *SST)),
    PAPER.artifact("X-2", appendix.strengths, appendix.needs_strengths, SST),
    PAPER.artifact("X-3", appendix.optimisers, appendix.needs_adam, SST),
    PAPER.artifact("X-4", appendix.gaps, needs_grid(["dp"]), corpora.BINARY),
    PAPER.artifact("X-5", appendix.splits, appendix.needs_redrawn, appendix.REDRAWN),
    PAPER.artifact("X-6", appendix.starts, appendix.needs_starts, corpora.TEXTS),
)  # fmt: skip

STUDY = Study(
    name="polarity",
    title="Polarity and attention scores: what drives attention during training",
    reference=PAPER.reference,
    sources=corpora.SOURCES,
    artifacts=ARTIFACTS,
    claims=CLAIMS,
    seeds={"smoke": 3, "paper": 10},
    deviations=PAPER.deviations,
)
