"""The statistics behind the tables and claims of the dynamics study, from compared runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from heedful.dynamics.agreement import Contextualised, contextualised
from heedful.reproduction.ledger import NotMeasurable, Parts, each_unchanged
from heedful.reproduction.results import Skipped
from heedful.reproduction.view import View, Views
from heedful.statistics import Estimate
from heedful.statistics.association import spearman
from heedful.statistics.draws import Draws, middle, minus, over_pairs, smallest, undefined
from heedful.statistics.seeds import deviation, widened
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
) -> list[Draws]:
    """Agreement minus chance where agreement is highest over checkpoints, training by training.

    `crossed` chooses the checkpoint on the other half of the items.
    """
    second, gains = SECOND.get(pair, "uniform"), []
    for number, curve in paired(found, pair, measure).items():
        if measure == "split":  # broken at random, ties give nothing by chance either
            chance = found.curve("chance:without ties").repeated(curve.sums.shape[1])
        else:
            kind = "inner " if measure == "inner" else ""
            chance = found.curve(f"paired {kind}chance:{second}/{number}")
        gained = curve - chance
        gains.append(gained.crossed(curve) if crossed else gained.highest(curve))
    return gains


def paired(found: CorpusAgreements, pair: str, measure: str = "top") -> dict[str, Curve]:
    """The curves of a pair over its trainings, by their number (`comparisons._paired`)."""
    prefix = f"paired {measure}:{pair}/"
    return {number: found.curve(prefix + number) for number in found.runs(prefix)}


def highests(found: CorpusAgreements, pair: str, measure: str = "top") -> list[Draws]:
    """The highest agreement over checkpoints, training by training."""
    return [curve.highest() for curve in paired(found, pair, measure).values()]


def over_runs(trained: Sequence[Draws], pair: str = "", least: float = -1.0) -> Estimate:
    """The mean over trainings, with an interval over trainings and documents.

    `least` is what it can be at all (an agreement is no less than 0), at most 1. The interval of
    the documents is widened by Student's of the trainings. Where each run is in two of the pairs
    (that of A's attention and B's probe), two pairs share at most half of their variance, and their
    mean has at most twice that of as many unrelated ones. Its n are the trainings, where there are
    several: it is with more of them that the interval narrows.
    """
    if not trained:
        return undefined().estimate()
    mean = middle(trained)._replace(n=min(one.n for one in trained))
    values = np.array([one.value for one in trained])
    if pair == "attention~probe":
        values = values.mean() + np.sqrt(2) * (values - values.mean())
    found = widened(mean.estimate(), values, least, 1)
    return replace(found, n=len(trained)) if len(trained) > 1 else found


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


def _xi_draws(found: CorpusAgreements, pair: str) -> list[Draws]:
    """ξ minus the performance at step 0, every run with attention being run A in turn."""
    everyone, gains = found.runs("context correct:"), []
    for number, curve in paired(found, pair).items():
        others = [one for one in everyone if one != number]
        agreed = mean_of(found.curve(f"context:{number}/{one}") for one in others)
        correct = mean_of(found.curve(f"context correct:{one}") for one in others)
        reference = found.curve(f"context correct:{number}")
        gains.append(minus(contextual(curve, agreed, correct, reference), correct.at(0)))
    return gains


Measure = Callable[[View], Estimate | Parts]


def above_chance(*pairs: str) -> Measure:
    """DYN-1 to DYN-4: agreement beyond chance; several pairs are several parts."""

    def measure(view: View) -> Estimate | Parts:
        found = view.of(steps.compared)
        parts = Parts({pair: over_runs(beyond(found, pair), pair) for pair in pairs})
        return next(iter(parts.values())) if len(parts) == 1 else parts  # type: ignore[return-value]

    return measure


def all_columns(
    found: CorpusAgreements, measure: str = "top", crossed: bool = False
) -> dict[str, Estimate]:
    """DYN-1 to DYN-4 by name."""
    pairs = (*MAIN, "attention~saliency")
    return {
        NAMED.get(pair, "A(α,Δ)"): over_runs(beyond(found, pair, measure, crossed), pair)
        for pair in pairs
        if found.has(f"paired {measure}:{pair}/0")
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
        f"ξ({name[2:-1]}) minus step 0": over_runs(_xi_draws(found, pair), pair)
        for pair, name in NAMED.items()
        if pair in ("attention~uniform", "attention~probe")
    }


def ranks_agree(view: View) -> Parts:
    """DYN-6."""
    found = view.of(steps.compared)
    return {NAMED[pair]: over_runs(highests(found, pair, "tau")) for pair in RANKED}


def frozen_differs(view: View) -> Estimate:
    """DYN-8."""
    found = view.of(steps.compared)
    both = (highests(found, f"attention~{kind}") for kind in ("frozen", "uniform"))
    return over_runs([minus(*each) for each in zip(*both, strict=True)])


def rises_and_falls(view: View) -> Parts:
    """DYN-9."""
    curves = list(paired(view.of(steps.compared), "attention~uniform").values())
    inside, fall = map(over_runs, ([is_inside(c) for c in curves], [c.fall() for c in curves]))
    return {
        "highest inside": replace(inside, high=min(inside.high, 1.0)),
        "last minus highest": fall,
    }


def proxy_is_regression(view: View) -> Parts:
    """DYN-10."""
    found = view.of(steps.compared)
    both = (highests(found, f"{kind}~uniform") for kind in ("logistic", "proxy"))
    difference = over_runs([minus(*each) for each in zip(*both, strict=True)])
    words = view.of(steps.words)
    words = words[words["count"] > 0].nlargest(WORDS, "count")
    names = [str(number) for number in words["id"]]
    correlation = spearman(words["proxy"], words["logistic"], names)
    return {"difference": difference, "word weights": correlation}


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
    chance, literal, own = found.curve("chance:proxy"), [], []
    for curve in paired(found, "uniform~proxy").values():
        literal.append((curve - chance.repeated(curve.sums.shape[1])).highest(curve))
    for number, curve in paired(found, "own attention~own probe").items():
        own.append((curve - found.curve(f"paired chance:own probe/{number}")).at(0))
    after = Parts({COLUMNS[1]: over_runs(literal), COLUMNS[3]: over_runs(own)})
    before = Parts({NAMED[p]: over_runs(beyond(found, p), p) for p in (MAIN[1], MAIN[3])})
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
    """DYN-A4; without a pair of runs from pre-trained vectors the sign alone."""
    found = view.of(steps.compared)
    both = (highests(found, f"{sign}saliency~uniform") for sign in ("", "-"))
    parts = Parts(
        {
            "Δ, right sign": over_runs(beyond(found, "saliency~uniform")),
            "right minus wrong sign": over_runs([minus(*each) for each in zip(*both, strict=True)]),
        }
    )
    if (step := steps.with_vectors(view.plan, view.corpus)) is None:
        return parts
    with suppress(Skipped):
        pretrained = view[step]
        parts["A(α,βuf), GloVe 100-d"] = over_runs(beyond(pretrained, "attention~uniform"))
        parts["A(Δ,βuf), GloVe 100-d"] = over_runs(beyond(pretrained, "saliency~uniform"))
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
