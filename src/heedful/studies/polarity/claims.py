"""The claims of the polarity study, with the sides that decide them.

See docs/studies/polarity.md, "Claims".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from heedful.reproduction.ledger import Parts, Side, above, at_least, at_most, below, within
from heedful.reproduction.results import Step
from heedful.reproduction.study import Claim, Plan
from heedful.reproduction.view import View
from heedful.studies.polarity import checks, corpora, measures, steps
from heedful.studies.polarity import flow_measures as flows
from heedful.studies.polarity.figures import needs_grid, needs_path
from heedful.studies.polarity.synthetic import needs_balance

SST = ("sst", "planted")
"""The paper's corpus, and what stands in for it at smoke scale."""
DP = needs_grid(["dp"])
PATH = needs_path("dp")


def _seeds_of(*models: str) -> Callable[[Plan, str], int]:
    """How many trainings of each kind a claim about these models rests on."""
    return lambda plan, corpus: min(len(steps.seeds_of(plan, corpus, model)) for model in models)


def _path_seeds(plan: Plan, corpus: str) -> int:
    return len(steps.path_seeds(plan, corpus))


def _fewer(plan: Plan, corpus: str) -> int:
    return len(steps.fewer(plan, corpus))


DP_SEEDS = _seeds_of("dp")


def _sides(*groups: tuple[tuple[str, ...], Side]) -> dict[str, Side]:
    return {name: side for names, side in groups for name in names}


_ROLES = ("positive", "negative")
_AUC = tuple(f"AUC of {role}" for role in _ROLES)
_SIGN = tuple(f"sign of {role}" for role in _ROLES)
_SAME = _sides((_SIGN, at_least(0.95)), (_AUC, above(0.5)))
_PENALTY = _sides(
    (tuple(f"mean of {role}" for role in _ROLES), above(0)),
    (_AUC, above(0.5)),
    (("gap, with minus without",), below(0)),
    (("accuracy change in s.e.",), within(2)),
)
_RULED = _SAME | {f"{name}, {rule}": side for name, side in _SAME.items() for rule in checks.RULES}


def _frequency_sides() -> Mapping[str, Side]:
    found: dict[str, Side] = {"neutral over class words": below(1 / 3)}
    for kind in ("score", "weight"):
        for role in _ROLES:
            found |= {
                f"{kind} of {role}, {end}": above(0.5) for end in ("frequent neutral", "pairs")
            }
    return found


def _penalty_needs(plan: Plan, corpus: str) -> list[Step[Any]]:
    if corpus == "data1":
        return list(PATH(plan, corpus))
    return list(needs_grid(["dp"], steps.penalised)(plan, corpus))


def _penalty(view: View) -> Any:
    measure = measures.penalty_closes_made if view.corpus == "data1" else measures.penalty_closes
    return measure(view)


def _alignment_needs(plan: Plan, corpus: str) -> list[Step[Any]]:
    grid = [] if corpus == "data1" else list(DP(plan, corpus))
    return grid + (list(PATH(plan, corpus)) if corpus in (*SST, "data1") else [])


def _alignment(view: View) -> Any:
    found = Parts()
    if view.corpus != "data1":
        found |= measures.follows_alignment(view)
    if view.corpus in (*SST, "data1"):
        found |= flows.alignment_term(view)
    return found


CLAIMS = (
    Claim(
        "POL-1", "At λ = 10 positive words have positive and negative words negative polarity.",
        "5, Fig. 2a-c", "share of each class's words with the class's sign (DP)",
        "picture; SST about +2.5..+11 and -9.5..-3", at_least(0.95), measures.right_signs, DP,
        corpora.BINARY, "all",
        seeds=DP_SEEDS,
    ),
    Claim(
        "POL-2", "Neutral words keep polarity scores around zero.", "5, Fig. 2a-c",
        "median size of neutral polarities over that of class words (DP, λ = 10)",
        "picture; SST neutral about -3.5..+3", below(1 / 3), measures.neutral_small, DP,
        corpora.BINARY, "all",
        seeds=DP_SEEDS,
    ),
    Claim(
        "POL-3", "At λ = 10 both classes have larger attention scores than neutral words.",
        "5, Fig. 2d-f", "AUC of attention scores against neutral words, every seed (DP)",
        "picture; SST about -0.5..+2.0 and -0.4..+1.9 against -1.3..+0.5", above(0.5),
        measures.above_neutral, DP, corpora.BINARY, "all",
        seeds=DP_SEEDS,
    ),
    Claim(
        "POL-4", "Small λ (0.001, 1) hurts the accuracy of DP.", "5, Table 2",
        "mean accuracy over λ of 10 to 100 minus accuracy at small λ, points",
        "best minus 0.001: 26.9 to 63.1; best minus 1: 5.1 to 10.3", above(0),
        measures.small_scale_hurts, DP, corpora.TEXTS, "all",
        seeds=DP_SEEDS,
    ),
    Claim(
        "POL-5", "Very large λ costs (almost) no accuracy, in all four models.", "5, Table 2",
        "accuracy at λ = 10000 minus at 10, points", "all 16 cells between -2.6 and +2.9",
        above(-3), measures.large_scale_is_free, needs_grid(steps.MODELS), corpora.TEXTS, "all",
        seeds=_seeds_of(*steps.MODELS),
    ),
    Claim(
        "POL-6", "At very large λ attention is effectively mean pooling.", "5, eqs. 1-2",
        "total variation from uniform, and accuracy with uniform weights minus trained, equal "
        "within 0.5 points (λ = 10000)",
        "text only", {"total variation": below(0.01), "uniform minus trained": within(0.5)},
        measures.is_mean_pooling, DP, corpora.TEXTS, "all",
        seeds=DP_SEEDS,
    ),
    Claim(
        "POL-7", "A proper λ is crucial behind an LSTM or affine layer too (additive: ours).",
        "5, Table 2", "accuracy at the λ best on dev among the others minus at 0.001, points",
        "DP-A 13.6 to 28.7 and AD 18.4 to 43.9 support it; DP-L 0.7 to 4.4 speaks against",
        above(5), measures.scale_is_crucial, needs_grid(["dp-l", "dp-a", "ad"]), corpora.TEXTS,
        "all", seeds=_seeds_of("dp-l", "dp-a", "ad"),
    ),
    Claim(
        "POL-8", "At λ = 100 the classes separate in attention, one at or below neutral.",
        "5, Fig. 3b", "gap over pooled s.d., its sign against V·W, AUC of the lower class",
        "positive below neutral and negative in one run",
        {"gap over s.d.": above(1), "seeds with the sign of V·W": at_least(1),
         "AUC of the lower class": at_most(0.5)},
        measures.unreadable, DP, SST,
        seeds=DP_SEEDS,
    ),
    Claim(
        "POL-9", "Attention scores are much smaller at λ = 100 than at 10, polarities are not.",
        "5, Fig. 3a,b", "mean sizes at λ = 100 over those at 10", "picture",
        {"attention": below(0.5), "polarity of class words": at_least(0.8)},
        measures.scores_shrink, DP, SST,
        seeds=DP_SEEDS,
    ),
    Claim(
        "POL-10", "Penalising V·W puts both classes above neutral, without gain in accuracy.",
        "5; suppl. Fig. 5", "class means, AUC, gap and accuracy change with the penalty",
        "Data I: 0.56 / 0.41 / -0.05 without, 0.63 / 0.60 / -0.07 with", _PENALTY, _penalty,
        _penalty_needs, (*SST, "data1"),
        seeds=DP_SEEDS,
    ),
    Claim(
        "POL-11", "With three classes, words tied to a label still score above neutral ones.",
        "5, Fig. 3c", "AUC of attention scores of each class against neutral (DP, λ = 10)",
        "picture", above(0.5), measures.above_neutral, DP, corpora.SEVERAL,
        seeds=DP_SEEDS,
    ),
    Claim(
        "POL-12", "Additive attention shows the same patterns.",
        "5, Fig. 4; suppl. Figs. 10, 19, 20", "POL-1 to POL-3 for AD, λ = 10", "picture",
        _SAME | {"neutral over class words": below(1 / 3)},
        partial(measures.same_patterns, model="ad"), needs_grid(["ad"]), ("sst", "imdb", "planted"),
        "all",
        seeds=_seeds_of("ad"),
    ),
    Claim(
        "POL-13", "Class words get larger average attention weights than neutral words.",
        "5, Fig. 5", "AUC of mean weights in test texts against neutral words, every seed",
        "medians 0.10, 0.135 and 0.06", above(0.5), measures.weights_above, DP, SST,
        seeds=DP_SEEDS,
    ),
    Claim(
        "POL-14", "The order of the two classes in weights follows their order in scores.",
        "5, Figs. 2d, 5", "share of seeds with the same order", "agree in one run", above(0.5),
        measures.same_order, DP, SST,
        seeds=DP_SEEDS,
    ),
    Claim(
        "POL-15", "Large weights on neutral words come from short texts without a high score.",
        "5, Fig. 5", "outlying neutral words' texts minus those of all neutral words",
        "one case traced: 3 words, weight 0.69",
        {"median length": below(0), "share without a high score": above(0)},
        measures.short_texts, DP, SST,
        seeds=DP_SEEDS,
    ),
    Claim(
        "POL-16", "Terms B, C and E, F have the predicted sign in each class.", "4.1, 4.2",
        "share of words with the predicted sign over training (SGD; a checkpoint weighs the epochs "
        "it stands for); neutral sizes over others'",
        "derivation; never measured", flows.SIGN_SIDES, flows.signs, PATH, ("data1", *SST), "all",
        seeds=_path_seeds,
    ),
    Claim(
        "POL-17", "F is near zero at the start and grows positive for class words later.", "4.2",
        "mean F over mean E of class words; at the start 0 within 0.05 (ours)", "derivation",
        flows.LATER_SIDES, flows.query_term,
        PATH, ("data1", *SST), "all", seeds=_path_seeds,
    ),
    Claim(
        "POL-18", "V·W decides the gap between the classes, the more so the larger λ is.", "4.2",
        "rank correlation over seeds of V·W with the gap of attention scores, for each λ from 10 "
        "on (scores shrink as λ grows, so ranks over several λ mean little: X-4 has them); share "
        "of words whose term D has the sign of V·W (negative words: the opposite)",
        "derivation; gap 0.15 without, 0.03 with penalty",
        {f"λ = {scale}": above(0) for scale in steps.LARGE_SCALES} | flows.D_SIDES, _alignment,
        _alignment_needs, (*corpora.BINARY, "data1"), "all", seeds=DP_SEEDS,
    ),
    Claim(
        "POL-19", "A class's word vectors align, opposite classes oppose, neutral do neither.",
        "4.1; suppl. Figs. 1, 2, 6",
        "mean dot product by group; groups with neutral words over the positive pairs'",
        "Data I: 2.2, 2.3, -1.25, 0 ± 0.3", flows.PAIR_SIDES, flows.embeddings_align, PATH,
        ("data1",),
        seeds=DP_SEEDS,
    ),
    Claim(
        "POL-20", "The sign of V·W follows class imbalance.", "suppl. Fig. 7",
        "mean V·W after long SGD at each ratio, W starting as on texts; at 1:1 0 within 21, half "
        "of the smallest size published (ours)",
        "0, -44, -62, +42, +58 at 1:1, 1:2, 1:5, 2:1, 5:2", flows.RATIO_SIDES, None, needs_balance,
        tuple(corpora.RATIOS), measure_all=flows.imbalance_decides,
    ),
    Claim(
        "POL-21", "The patterns do not depend on the initialisation.", "footnote 11",
        "share of seeds in which POL-1 to POL-3 hold", "one run shown", at_least(1),
        measures.every_seed, DP, corpora.BINARY, "all",
        seeds=DP_SEEDS,
    ),
    Claim(
        "POL-A1", "The score gap is not only a frequency gap (neutral words need no frequency).",
        "ours", "POL-2, POL-3, POL-13 with neutral words seen more than 5 times, and in pairs",
        "not checked", _frequency_sides(), checks.not_frequency, DP, corpora.BINARY, "all",
        seeds=DP_SEEDS,
    ),
    Claim(
        "POL-A2", "Interval ends and counting unit do not change the verdicts.", "ours",
        "POL-1 and POL-3 without γ = ±1, and by documents",
        "412/265/1384 against 302/197 and 407/259/1385", _RULED, checks.classes_matter_not, DP,
        corpora.BINARY, "all",
        seeds=DP_SEEDS,
    ),
    Claim(
        "POL-A3", "Words seen only in dev or test, with random vectors, do not matter.", "ours",
        "accuracy with words unseen in training read as one unknown word minus published recipe, "
        "points (DP, λ = 10); equal within 1 point, one s.e. of SST's test set (ours)",
        "not checked", within(1), checks.unseen_words, needs_grid(["dp"], steps.train_only),
        corpora.TEXTS, "all", seeds=_fewer,
    ),
    Claim(
        "POL-A4", "The printed flow equations contain slips; the corrected ones are exact.",
        "ours", "largest relative distance from automatic differentiation",
        "printed forms fail (3.8)", flows.IDENTITY_SIDES, flows.formulas,
        lambda plan, corpus: [steps.words(plan, corpus), steps.identities(plan, corpus)],
        ("data1", "three"), "all",
    ),
)  # fmt: skip
