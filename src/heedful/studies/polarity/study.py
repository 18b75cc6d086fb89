"""Polarity and attention scores of words, and the gradient flow that makes them (Sun & Lu 2020).

    heedful reproduce polarity                               smoke: planted reviews, tiny synthetic
    heedful reproduce polarity --scale paper --device cuda   SST, IMDB, 20News I and II, synthetic

Every artifact is data here: what it shows, of which steps, and where the paper has it. The steps
are in `steps`, the pictures in `figures`, the claims in `claims`.
"""

from __future__ import annotations

from heedful.reproduction.study import Artifact, Plan, Study
from heedful.studies.polarity import appendix, corpora, figures, steps, synthetic
from heedful.studies.polarity.claims import CLAIMS, SST
from heedful.studies.polarity.figures import needs_grid, needs_path

BOTH = {"polarity": "polarity", "attention": "attention"}
LOCAL = {"local attention": "local attention", "attention": "global attention"}
POLARITY, ATTENTION = {"polarity": "polarity"}, {"attention": "attention"}
IMDB, NEWS = ("imdb", "planted"), ("20news-1", "planted")
OPPOSED = ("positive-positive", "negative-negative", "negative-positive")
"""The pairs of S-F1; below, those of S-F11."""
THREE = ("zero-zero", "zero-one", "zero-two", "one-one", "one-two", "two-two", "neutral-neutral")


def _deviations(plan: Plan) -> tuple[str, ...]:
    found = (
        "Accuracies are means over seeds; the paper has one run per cell.",
        "Seeds differ in start, dropout and order of batches; the λ of a seed share all three.",
        "L2 is 1e-3 on the affine map, LSTM or additive map alone; the paper does not give it. "
        "S-F13 and S-F16 are drawn at the strength that dev prefers.",
        "S-F7 is trained with SGD for longer and from a smaller W than the other synthetic runs; "
        "the paper does not say how.",
        "DP-L has 50 dimensions per direction, so that λ = 10 is √d there too.",
        "Synthetic runs take SGD steps of 0.1, with fewer epochs for the same integrated step; the "
        "axes show the paper's epochs. Data II has a tenth of its instances turned.",
        "M-F3, M-F2, S-F13 to S-F28 show the first seed; which class is on top is an accident of "
        "the start (sign of V·W).",
        "Neutral made-up words are those that the rule for texts finds, about a third of 1,000; "
        "S-F3 and S-F4 show them all.",
        "Of DP-L, DP-A and AD, POL-7 takes the λ best on dev among the others, not best on test.",
        "Words of several classes: share above 0.65, at least 30 occurrences, spread below 0.15.",
    )
    smoke = ("At smoke scale planted reviews stand for all texts; vectors have 20 dimensions.",)
    return found + (smoke if plan.scale == "smoke" else ())


def _scatter(
    id: str,
    title: str,
    where: str,
    corpora: tuple[str, ...],
    model: str,
    scales: tuple[str, ...],
    columns: dict[str, str],
    paper: str = "picture",
) -> Artifact:
    make = figures.scatter(model, scales, columns)
    return Artifact(id, title, where, "figure", make, needs_grid([model]), corpora, paper)


def _curves(
    id: str,
    title: str,
    corpus: str,
    model: str,
    prefixes: tuple[str, ...],
    settings: tuple[str, ...] = ("plain",),
    by: str = "kind",
    paper: str = "picture",
    where: str = "",
    only: tuple[str, ...] = (),
    rate: float = steps.SLOW,
) -> Artifact:
    make = synthetic.curves(model, prefixes, settings, by, only, rate)
    place = where or f"supplement, Fig. {id.removeprefix('S-F')}"
    return Artifact(id, title, place, "figure", make, needs_path(model), (corpus,), paper)


ARTIFACTS = (
    PAPER.artifact("M-T1", figures.datasets, figures.needs_sizes),
    PAPER.artifact("M-T2", figures.accuracy_grid, needs_grid(steps.MODELS), corpora.TEXTS),
    _scatter("M-F2", "Polarity and attention scores, DP, λ = 10", "Fig. 2", corpora.BINARY, "dp",
             ("10",), BOTH, "SST: polarity +2.5..+11, -9.5..-3, -3.5..+3"),
    _scatter("M-F3", "The same at λ = 100", "Fig. 3a,b", SST, "dp", ("100",), BOTH,
             "positive attention below neutral and negative"),
    _scatter("M-F3c", "Attention scores with three classes, DP, λ = 10", "Fig. 3c", corpora.SEVERAL,
             "dp", ("10",), ATTENTION),
    _scatter("M-F4", "Additive attention, λ = 10", "Fig. 4", SST, "ad", ("10",), BOTH),
    PAPER.artifact("M-F5", figures.weights, needs_grid(["dp"]), SST),
    PAPER.artifact("M-X", figures.penalty, needs_grid(["dp"], steps.penalised), SST),
    PAPER.artifact("S-T1", figures.token_counts, figures.needs_sizes, corpora.TEXTS),
    _curves("S-F1", "Dot products of fixed pairs, Data I, two starts", "data1", "dp", ("pair",),
            ("plain", "wide start"), "setting", only=OPPOSED),
    PAPER.artifact("S-F2", synthetic.pair_boxes, needs_path("dp"), ("data1",)),
    PAPER.artifact("S-F3", synthetic.final_words("polarity"), needs_path("dp"), ("data1", "data2")),
    PAPER.artifact("S-F4", synthetic.final_words("attention"), needs_path("dp"), ("data1", "data2")),
    _curves("S-F5", "Class means of attention scores without and with penalty, Data I", "data1",
            "dp", ("attention",), ("plain", "penalty"), "setting",
            "at the end 0.56/0.41/-0.05 without, 0.63/0.60/-0.07 with", rate=steps.FAST),
    _curves("S-F6", "Dot products of six pairs, Data II", "data2", "dp", ("pair",),
            rate=steps.FAST),
    PAPER.artifact("S-F7", synthetic.imbalance, synthetic.needs_balance, tuple(corpora.RATIOS)),
    _curves("S-F8", "Affine model: dot products of vectors and of values, Data I", "data1", "dp-a",
            ("dot", "value dot")),
    _curves("S-F9", "Affine model with penalty: class means of scores, Data I", "data1", "dp-a",
            ("polarity", "attention"), ("penalty",), paper="+27/-28/0 and 0.39/0.42/-0.06"),
    _curves("S-F10", "Additive model: class means of scores, Data I", "data1", "ad",
            ("polarity", "attention"), paper="+9.5/-9.8/0 and 2.8/2.9/-0.9"),
    _curves("S-F11", "Three classes: mean dot products of pairs", "three", "dp", ("dot",),
            only=THREE),
    _curves("S-F12", "Three classes: class means of attention scores", "three", "dp",
            ("attention",), paper="0.98, 0.61, 0.93 and -0.14"),
    PAPER.artifact("S-F13", appendix.at_preferred("dp-l", LOCAL), appendix.needs_preferred("dp-l"), SST),
    _scatter("S-F14", "DP-A, λ = 20: polarity", "supplement, Fig. 14", SST, "dp-a", ("20",),
             POLARITY),
    _scatter("S-F15", "DP-A, λ = 20: attention", "supplement, Fig. 15", SST, "dp-a", ("20",),
             ATTENTION, "-0.55..+0.2, +0.1..+1.1, -0.5..+0.3"),
    PAPER.artifact("S-F16", appendix.at_preferred("dp-l", POLARITY), appendix.needs_preferred("dp-l"), SST),
    _scatter("S-F17", "IMDB, DP-A, λ = 10: polarity", "supplement, Fig. 17", IMDB, "dp-a", ("10",),
             POLARITY),
    _scatter("S-F18", "IMDB, DP-A, λ = 10: attention", "supplement, Fig. 18", IMDB, "dp-a",
             ("10",), ATTENTION),
    _scatter("S-F19", "IMDB, AD, λ = 10: polarity", "supplement, Fig. 19", IMDB, "ad", ("10",),
             POLARITY),
    _scatter("S-F20", "IMDB, AD, λ = 10: attention", "supplement, Fig. 20", IMDB, "ad", ("10",),
             ATTENTION),
    *(
        _scatter(f"S-F{number}", f"20News I, DP-A, λ = {scale}: attention",
                 f"supplement, Fig. {number}", NEWS, "dp-a", (scale,), ATTENTION,
                 "-0.6..-0.1, +0.15..+1.2, -0.35..+0.4" if scale == "50" else "picture")
        for number, scale in ((21, "1"), (22, "10"), (23, "20"), (24, "50"))
    ),
    PAPER.artifact("S-F25", figures.components, needs_grid(["dp-a"]), corpora.SEVERAL),
    _scatter("S-F28", "20News II, DP-A, λ = 10: attention", "supplement, Fig. 28", corpora.SEVERAL,
             "dp-a", ("10",), ATTENTION),
    _curves("N-1", "Mean β, |W|² and W(0)·W, Data I", "data1", "dp", ("β", "|W|²", "W·W(0)"),
            paper="0.50 to 0.02; 27 to 158; 27 to 66", where="notebook"),
    PAPER.artifact("X-1", synthetic.terms, needs_path("dp"), ("data1", *SST)),
    PAPER.artifact("X-2", appendix.strengths, appendix.needs_strengths, SST),
    PAPER.artifact("X-3", appendix.optimisers, appendix.needs_adam, SST),
    PAPER.artifact("X-4", appendix.gaps, needs_grid(["dp"]), corpora.BINARY),
    PAPER.artifact("X-5", appendix.splits, appendix.needs_redrawn, appendix.REDRAWN),
    PAPER.artifact("X-6", appendix.starts, appendix.needs_starts, corpora.TEXTS),
)  # fmt: skip

STUDY = Study(
    name="polarity",
    title="Polarity and attention scores: what drives attention during training",
    reference="Sun and Lu, Understanding Attention for Text Classification, ACL 2020.",
    sources=corpora.SOURCES,
    artifacts=ARTIFACTS,
    claims=CLAIMS,
    seeds={"smoke": 3, "paper": 10},
    deviations=_deviations,
)
