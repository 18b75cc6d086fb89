"""The statistics behind the tables and claims of the dynamics study, from compared runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from heedful.dynamics.agreement import Contextualised, contextualised
from heedful.reproduction.ledger import NotMeasurable, Parts, each_unchanged
from heedful.reproduction.view import View, Views
from heedful.statistics import Estimate
from heedful.statistics.association import spearman
from heedful.statistics.draws import Draws, minus, over_pairs, smallest
from heedful.statistics.seeds import deviation
from heedful.studies.dynamics import steps
from heedful.studies.dynamics.agreement_curves import Curve, contextual, is_inside
from heedful.studies.dynamics.cells import span, written
from heedful.studies.dynamics.comparisons import MAIN, RANKED, CorpusAgreements, mean_of
from heedful.studies.dynamics.printed import COLUMNS

SECOND = {"attention~probe": "probe", "attention~saliency": "saliency"}
"""Whose chance a pair is compared with; the others' second vector is the uniform run's probe."""
NAMED = dict(zip(MAIN, COLUMNS, strict=True))
WORDS = 5_000
"""Most frequent words whose weights are correlated."""


def beyond(
    found: CorpusAgreements, pair: str, measure: str = "top", crossed: bool = False
) -> Draws:
    """Agreement minus chance at the checkpoint where agreement is highest.

    `crossed` chooses the checkpoint on the other half of the items.
    """
    curve = found.curve(f"{measure}:{pair}")
    second = SECOND.get(pair, "uniform")
    if measure == "split":  # broken at random, ties give nothing by chance either
        chance = found.curve("chance:without ties").repeated(curve.sums.shape[1])
    else:
        chance = found.curve(f"{'inner ' if measure == 'inner' else ''}chance:{second}")
    gained = curve - chance
    return gained.crossed(curve) if crossed else gained.highest(curve)


def highest(found: CorpusAgreements, pair: str, measure: str = "top") -> Draws:
    """The highest agreement over checkpoints."""
    return found.curve(f"{measure}:{pair}").highest()


def context(found: CorpusAgreements, measure: str = "top") -> Curve:
    """The comparison runs' mean agreement with the reference's attention."""
    prefix = f"{measure}:attention~attention/"
    return mean_of(found.curve(prefix + name) for name in found.runs(prefix))


def performed(found: CorpusAgreements) -> np.ndarray:
    """The comparison runs' mean performance at each checkpoint."""
    names = found.runs("top:attention~attention/")
    return np.asarray(np.mean([found.performance[name] for name in names], axis=0))


def xi(found: CorpusAgreements, pair: str, measure: str = "top") -> Contextualised:
    """ξ of a pair: how well the comparison runs do when they first agree more."""
    value = highest(found, pair, measure).value
    best = float(found.performance["reference"][found.best])
    return contextualised(value, context(found, measure).means, performed(found), best)


def _xi_draws(found: CorpusAgreements, pair: str) -> Draws:
    names = found.runs("top:attention~attention/")
    correct = mean_of(found.curve(f"correct:{name}") for name in names)
    reference = found.curve("correct:reference")
    passed = contextual(found.curve(f"top:{pair}"), context(found), correct, reference)
    return minus(passed, correct.at(0))


Measure = Callable[[View], Estimate | Parts]


def above_chance(*pairs: str) -> Measure:
    """DYN-1 to DYN-4: agreement beyond chance; several pairs are several parts."""

    def measure(view: View) -> Estimate | Parts:
        found = view.of(steps.compared)
        parts = Parts({pair: beyond(found, pair).estimate() for pair in pairs})
        return next(iter(parts.values())) if len(parts) == 1 else parts  # type: ignore[return-value]

    return measure


def all_columns(
    found: CorpusAgreements, measure: str = "top", crossed: bool = False
) -> dict[str, Estimate]:
    """DYN-1 to DYN-4 by name."""
    pairs = (*MAIN, "attention~saliency")
    return {
        NAMED.get(pair, "A(α,Δ)"): beyond(found, pair, measure, crossed).estimate()
        for pair in pairs
        if found.has(f"{measure}:{pair}")
    }


def on_training_data(view: View) -> Parts:
    """DYN-7."""
    return Parts(all_columns(view.of(steps.compared, "train")))


def chosen_elsewhere(view: View) -> Parts:
    """DYN-A1."""
    return Parts(all_columns(view.of(steps.compared), crossed=True))


def well_into_training(view: View) -> Parts:
    """DYN-5: ξ minus the performance at step 0, in shares."""
    found = view.of(steps.compared)
    return {
        f"ξ({name[2:-1]}) minus step 0": _xi_draws(found, pair).estimate()
        for pair, name in NAMED.items()
        if pair in ("attention~uniform", "attention~probe")
    }


def ranks_agree(view: View) -> Parts:
    """DYN-6."""
    found = view.of(steps.compared)
    return {NAMED[pair]: highest(found, pair, "tau").estimate() for pair in RANKED}


def frozen_differs(view: View) -> Estimate:
    """DYN-8."""
    found = view.of(steps.compared)
    frozen = found.curve("top:attention~frozen").highest()
    return minus(frozen, highest(found, "attention~uniform")).estimate()


def rises_and_falls(view: View) -> Parts:
    """DYN-9."""
    curve = view.of(steps.compared).curve("top:attention~uniform")
    inside = is_inside(curve).estimate()
    return {"highest inside": inside, "last minus highest": curve.fall().estimate()}


def proxy_is_regression(view: View) -> Parts:
    """DYN-10."""
    found = view.of(steps.compared)
    difference = minus(highest(found, "logistic~uniform"), highest(found, "proxy~uniform"))
    words = view.of(steps.words)
    words = words[words["count"] > 0].nlargest(WORDS, "count")
    names = [str(number) for number in words["id"]]
    correlation = spearman(words["proxy"], words["logistic"], names)
    return {"difference": difference.estimate(), "word weights": correlation}


def final_agreements(found: CorpusAgreements) -> dict[str, Draws]:
    """By comparison run: how often its last attention agrees with that of run A."""
    prefix = "top:final attention~attention/"
    return {name: found.curve(prefix + name).at(0) for name in found.runs(prefix)}


def seeds_disagree(views: Views) -> Parts | NotMeasurable:
    """DYN-22: the lowest agreement of final attentions on other corpora minus that on SMS.

    Pairs of runs are resampled beside documents: on SMS some agree and others do not, and all of
    them share run A. The lowest of several corpora is that of each replicate, which lies below the
    lowest mean: against the claim.
    """
    if "sms" not in views.corpora or len(views.corpora) < 2:
        return NotMeasurable("data absent: needs SMS and another corpus")
    runs = {one: final_agreements(views.on(one).of(steps.compared)) for one in views.corpora}
    final = {corpus: over_pairs(list(found.values()), corpus) for corpus, found in runs.items()}
    sms = final.pop("sms")
    least = min(final, key=lambda corpus: final[corpus].value)
    values = ", ".join(f"{one.value:.2f}" for one in runs["sms"].values())
    told = f"{least} ({final[least].value:.2f}) minus SMS (run by run {values})"
    return {told: minus(smallest(final.values()), sms).estimate()}


def as_literally_written(view: View) -> Parts:
    """DYN-A2: the published order and runs, against the literal ones."""
    found = view.of(steps.compared)
    literal, own = found.curve("top:uniform~proxy"), found.curve("top:own attention~own probe")
    chance = found.curve("chance:proxy").repeated(literal.sums.shape[1])
    after = Parts(
        {
            COLUMNS[1]: (literal - chance).highest(literal).estimate(),
            COLUMNS[3]: (own - found.curve("chance:own probe")).at(found.best).estimate(),
        }
    )
    before = Parts({NAMED[p]: beyond(found, p).estimate() for p in (MAIN[1], MAIN[3])})
    return each_unchanged(before, after)


def without_ties_and_marks(view: View) -> Parts:
    """DYN-A3; beside the rest of the agreement stands how far splitting ties lowers the highest."""
    found = view.of(steps.compared)
    parts = Parts()
    for name, estimate in all_columns(found, "inner").items():
        parts[f"{name} without marks"] = estimate
    lowered = lowered_by_ties(found)
    for name, estimate in all_columns(found, "split").items():
        before, after = lowered[name]
        told = f"highest A {written(before, 2)} before, {written(after, 2)} after"
        parts[f"{name} ties split ({told})"] = estimate
    return parts


def lowered_by_ties(found: CorpusAgreements) -> dict[str, tuple[float, float]]:
    """The highest agreement of each column as published, and with ties split."""
    pairs = [pair for pair in (*MAIN, "attention~saliency") if found.has(f"split:{pair}")]
    return {
        NAMED.get(pair, "A(α,Δ)"): (highest(found, pair).value, highest(found, pair, "split").value)
        for pair in pairs
    }


def vectors_and_sign(view: View) -> Parts:
    """DYN-A4."""
    found = view.of(steps.compared)
    right, wrong = (found.curve(f"top:{sign}saliency~uniform") for sign in ("", "-"))
    parts = Parts(
        {
            "Δ, right sign": beyond(found, "saliency~uniform").estimate(),
            "right minus wrong sign": minus(right.highest(), wrong.highest()).estimate(),
        }
    )
    step = steps.with_vectors(view.plan, view.corpus)
    if step is not None:
        pretrained = view[step]
        parts["A(α,βuf), GloVe 100-d"] = beyond(pretrained, "attention~uniform").estimate()
        parts["A(Δ,βuf), GloVe 100-d"] = beyond(pretrained, "saliency~uniform").estimate()
    return parts


def spread_of_seeds(found: CorpusAgreements) -> dict[str, list[float]]:
    """DYN-A7: each agreement, in points, over the runs of one kind while the others stay.

    Over reference runs the attention changes, over comparison runs the probe of run B.
    """

    def best(key: str) -> float:
        return 100 * float(np.nanmax(found.curve(key).means))

    runs, others = found.runs("top:attention/"), found.runs("top:attention~uniform/")
    references = [name for name in runs if name.endswith("~uniform")]
    spread = {
        "A(α,βuf) over reference runs": [best("top:attention~uniform")]
        + [best(f"top:attention/{name}") for name in references],
        "A(α,β) over comparison runs": [
            best(f"top:attention~probe/{name}") for name in found.runs("top:attention~probe/")
        ],
    }
    for pair, name in NAMED.items():
        if pair.endswith("~uniform") and found.has(f"top:{pair}"):
            values = [best(f"top:{pair}"), *(best(f"top:{pair}/{other}") for other in others)]
            spread[f"{name} over uniform runs"] = values
    return spread


def largest_spread(spread: Mapping[str, Sequence[float]]) -> tuple[str, Estimate] | None:
    """The column whose s.d. over seeds is largest, with the interval of the largest of them all.

    Columns with a single run are left out; none is left where seeds were not repeated. The largest
    is found by looking at all: their intervals hold together (Bonferroni), and the largest s.d.
    lies between the largest of the lower ends and the largest of the upper ones.
    """
    repeated = {name: values for name, values in spread.items() if len(values) > 1}
    if not repeated:
        return None
    found = {name: deviation(values, len(repeated)) for name, values in repeated.items()}
    name = max(found, key=lambda one: found[one].value)
    low, high = (max(getattr(one, end) for one in found.values()) for end in ("low", "high"))
    return name, replace(found[name], low=low, high=high)


def seeds_move(view: View) -> Parts | NotMeasurable:
    """DYN-A7 on one corpus: the largest s.d. over seeds of any agreement, in points."""
    return _moved(spread_of_seeds(view.of(steps.compared)))


def seeds_move_anywhere(views: Views) -> Parts | NotMeasurable:
    """DYN-A7 over all corpora: the largest of any agreement on any of them."""
    return _moved(
        {
            f"{view.corpus}, {name}": values
            for view in views
            for name, values in spread_of_seeds(view.of(steps.compared)).items()
        }
    )


def _moved(spread: Mapping[str, Sequence[float]]) -> Parts | NotMeasurable:
    found = largest_spread(spread)
    if found is None:
        return NotMeasurable("needs two runs of a kind")
    name, estimate = found
    return {f"{name} ({span(spread[name], 1)})": estimate}
