"""Claims of the erasure study about erasing one item: ERA-1 to ERA-7, 17, 18 and 20."""

from __future__ import annotations

from itertools import product

import numpy as np

from heedful.reproduction.ledger import Measured, NotMeasurable, Parts, above, at_least, below
from heedful.reproduction.study import Claim
from heedful.reproduction.view import View, Views, alone
from heedful.statistics import Estimate, draws
from heedful.statistics.draws import Draws
from heedful.statistics.shares import discordance
from heedful.studies.erasure.corpora import RATING, TOPIC
from heedful.studies.erasure.examination import Erased
from heedful.studies.erasure.measures import (
    drawn,
    estimates,
    mean,
    measured,
    median,
    quantile,
    rows_of,
    share_of_models,
)
from heedful.studies.erasure.models import ENCODERS, MODELS
from heedful.studies.erasure.printed import by_corpus
from heedful.studies.erasure.steps import needs

NEAR = (0.35, 0.45)
"""Δα “near 0.4” (ERA-3)."""
BINS = np.round(np.linspace(0, 1, 11), 1)
HANS = tuple(model for model in MODELS if model.startswith("HAN"))


def mostly_positive(view: View) -> Parts:
    """ERA-1: share of instances with ΔJS > 0, of each model."""

    def is_positive(one: Erased) -> np.ndarray:
        change = one.delta_js()
        return np.where(np.isnan(change), np.nan, change > 0)

    return estimates({model: mean(view, model, is_positive) for model in MODELS})


def negative_weight(one: Erased) -> np.ndarray:
    """Δα where ΔJS is negative; nan elsewhere."""
    return np.where(one.delta_js() < 0, one.delta_attention(), np.nan)


def small_where_negative(view: View) -> Measured:
    """ERA-2: size of negative ΔJS, and their Δα against that of the other instances."""
    found: dict[str, Draws] = {}
    for model in MODELS:
        size = quantile(
            view, model, 0.95, lambda one: np.where(one.delta_js() < 0, -one.delta_js(), np.nan)
        )
        if not size.n:  # nothing negative: nothing to contradict the claim
            continue
        others = median(
            view, model, lambda one: np.where(one.delta_js() >= 0, one.delta_attention(), np.nan)
        )
        found[f"{model}: size"] = size
        found[f"{model}: Δα"] = draws.minus(median(view, model, negative_weight), others)
    return estimates(found) if found else NotMeasurable("no ΔJS is negative in any model")


def late_upswing(view: View) -> Parts:
    """ERA-3: effects near Δα = 0.4, and their upswing beyond 0.8, in HANrnn."""

    def near(one: Erased) -> np.ndarray:
        weight = one.delta_attention()
        inside = (weight >= NEAR[0]) & (weight <= NEAR[1])
        return np.where(inside, one.delta_js(), np.nan)

    def is_small(one: Erased) -> np.ndarray:
        return np.where(np.isnan(near(one)), np.nan, near(one) < 0.05)

    def far(one: Erased) -> np.ndarray:
        return np.where(one.delta_attention() > 0.8, one.delta_js(), np.nan)

    ratio = draws.over(mean(view, "HANrnn", far), mean(view, "HANrnn", near))
    return estimates({"close to zero": mean(view, "HANrnn", is_small), "upswing": ratio})


def upswing_order(view: View) -> Parts:
    """ERA-4: where the mean ΔJS first passes 0.1, noenc ≤ conv ≤ rnn.

    A model that never passes it starts after all bins; but two such models have no order, nor has
    one whose Δα never grows as large as where the other starts.
    """
    start = {
        model: drawn(
            view,
            model,
            lambda one: draws.onset(one.delta_attention(), one.delta_js(), 0.1, BINS, one.names),
        )
        for model in MODELS
    }
    reach = {
        model: max(np.nanmax(one.delta_attention(), initial=0.0) for one in rows_of(view, model))
        for model in MODELS
    }
    found: dict[str, Estimate | NotMeasurable] = {}
    for family, (wide, narrow) in product(("HAN", "FLAN"), (("conv", "noenc"), ("rnn", "conv"))):
        pair = family + wide, family + narrow
        first, last = sorted(pair, key=lambda model: start[model].value)
        name = f"{family}: {wide} - {narrow}"
        if start[first].value == BINS[-1]:
            found[name] = NotMeasurable("no upswing: in neither model does the mean ΔJS pass 0.1")
        elif start[last].value == BINS[-1] and reach[last] < start[first].value:
            found[name] = NotMeasurable(
                f"{first} starts at Δα = {start[first].value:g}, {last} has none above "
                f"{reach[last]:.2f}"
            )
        else:
            found[name] = measured(draws.minus(*(start[model] for model in pair)).estimate())
    return Parts(found)


def top_beats_random(view: View, legacy: bool = False) -> Parts:
    """ERA-5: P(only top) - P(only random) of each model, by the exact paired test."""
    found: dict[str, Estimate | NotMeasurable] = {}
    for model in MODELS:
        seeds = rows_of(view, model)
        if len(seeds) == 1:
            table = seeds[0].contingency("attention", legacy)
            found[model] = discordance(table.only_top, table.only_random, table.n)
        else:
            found[model] = mean(
                view,
                model,
                lambda one: one.top_flips("attention") - one.other_flips("attention", legacy),
            ).estimate()
    return Parts(found)


def top_rarely_flips(view: View) -> Estimate:
    """ERA-6: share of instances where erasing the top item does not flip HANrnn."""
    return mean(view, "HANrnn", lambda one: 1 - one.top_flips("attention")).estimate()


def wrong_way(view: View, model: str, legacy: bool = False) -> Draws:
    """Share of only-random among the instances where exactly one of the two flips."""

    def is_wrong(one: Erased) -> np.ndarray:
        top, other = one.top_flips("attention"), one.other_flips("attention", legacy)
        return np.where(top == other, np.nan, other)

    return mean(view, model, is_wrong)


def negative_share(view: View, model: str, legacy: bool = False) -> Draws:
    """Share of instances with negative ΔJS."""

    def is_negative(one: Erased) -> np.ndarray:
        change = one.delta_js(legacy)
        return np.where(np.isnan(change), np.nan, change < 0)

    return mean(view, model, is_negative)


def mirrors(views: Views, legacy: bool = False) -> Parts:
    """ERA-7: wrong-way flips against negative ΔJS over models, and FLANs against HANs."""
    wrong = {(v.corpus, m): wrong_way(v, m, legacy) for v in views for m in MODELS}
    negative = {(v.corpus, m): negative_share(v, m, legacy) for v in views for m in MODELS}
    found = {"Spearman over models": draws.spearman(list(wrong.values()), list(negative.values()))}
    for encoder in ENCODERS:
        found[f"FLAN - HAN, {encoder}"] = draws.largest(
            draws.minus(wrong[c, f"FLAN{encoder}"], wrong[c, f"HAN{encoder}"])
            for c in views.corpora
        )
    return estimates(found)


def fat_tails(views: Views) -> Measured:
    """ERA-17: 90th percentile of Δα among negatives, topic minus rating corpora, in HANs."""
    topic = [view for view in views if view.corpus in TOPIC]
    rating = [view for view in views if view.corpus not in TOPIC]
    if not topic or not rating:
        return NotMeasurable("needs a topic corpus and a rating corpus side by side")

    def tail(found: list[View], model: str) -> Draws:
        return draws.middle(quantile(view, model, 0.9, negative_weight) for view in found)

    return estimates({m: draws.minus(tail(topic, m), tail(rating, m)) for m in HANS})


def first_by_product(views: Views) -> Parts:
    """ERA-18: how often the top item flips, product and gradient against attention."""

    def against(view: View, model: str, ranking: str) -> Draws:
        return mean(view, model, lambda one: one.top_flips(ranking) - one.top_flips("attention"))

    found = estimates(
        {
            f"product - attention, {model}": draws.smallest(
                against(view, model, "product") for view in views
            )
            for model in MODELS
        }
    )
    gradient = [against(view, model, "gradient") for view in views for model in MODELS]
    found["models with gradient below attention"] = share_of_models(gradient, lambda d: d < 0)
    return found


def single_flips_without_encoder(view: View) -> Parts:
    """ERA-20: share of instances that either single erasure flips, noenc against the others."""

    def either(one: Erased) -> np.ndarray:
        flips = one.top_flips("attention"), one.other_flips("attention")
        return np.asarray(np.maximum(*flips))

    found = {}
    for family, encoder in product(("HAN", "FLAN"), ("rnn", "conv")):
        without, with_one = (mean(view, family + e, either) for e in ("noenc", encoder))
        found[f"{family}: noenc - {encoder}"] = draws.minus(without, with_one)
    return estimates(found)


ALL = needs(*MODELS)
MIRRORS = {"Spearman over models": above(0)} | {f"FLAN - HAN, {e}": below(0) for e in ENCODERS}

CLAIMS = (
    Claim(
        "ERA-1",
        "Erasing the item with most attention moves the output more than erasing a random other "
        "one in the vast majority of instances.",
        "4.1, Figs. 3, 7",
        "share of instances with ΔJS > 0, every model; ≥ 0.75 (ours)",
        "picture; negatives are called a small fraction",
        at_least(0.75),
        mostly_positive,
        ALL,
        over="all",
    ),
    Claim(
        "ERA-2",
        "Where it moves it less, the difference is tiny and the two weights are almost tied.",
        "4.1, Figs. 3, 4, 8",
        "negative ΔJS: 95th percentile of its size < 0.05 nats (ours); median Δα minus that of the "
        "other instances < 0",
        "picture; exception named: the HANs on Yahoo",
        {f"{m}: size": below(0.05) for m in MODELS} | {f"{m}: Δα": below(0) for m in MODELS},
        small_where_negative,
        ALL,
        over="all",
    ),
    Claim(
        "ERA-3",
        "Even at a weight difference near 0.4 many effects are close to zero; the upswing comes at "
        "larger differences.",
        "4.1, Fig. 3",
        "HANrnn: share with ΔJS < 0.05 among Δα in [0.35, 0.45] > 0.3 (ours); mean ΔJS beyond "
        "Δα = 0.8 over that mean > 2 (ours)",
        "picture",
        {"close to zero": above(0.3), "upswing": above(2)},
        late_upswing,
        needs("HANrnn"),
        over="all",
    ),
    Claim(
        "ERA-4",
        "The upswing starts earlier with less contextualisation.",
        "A.2, Fig. 7",
        "left edge of the first Δα bin (width 0.1) with mean ΔJS > 0.1: noenc ≤ conv ≤ rnn (where "
        "one of the two passes it, and the other has such Δα)",
        "picture, slightly earlier",
        at_least(0),
        upswing_order,
        ALL,
        over="all",
    ),
    Claim(
        "ERA-5",
        "When exactly one of the two erasures flips the decision, it is far more often the top "
        "item's.",
        "4.2, Table 2, Fig. 9",
        "P(only top) - P(only random), exact paired test, every model; > 0",
        by_corpus(
            {"Yahoo": "HANrnn 8.7/1.3 %", "IMDB": "HANrnn 12.2/1.4 %",
             "Amazon": "HANrnn 7.6/2.7 %", "Yelp": "HANrnn 8.9/1.9 %"}
        ),
        above(0),
        top_beats_random,
        ALL,
        over="all",
    ),
    Claim(
        "ERA-6",
        "Yet erasing the top item usually does not flip the decision.",
        "4.2, Table 2",
        "HANrnn: share of instances where erasing the top item does not flip; > 0.5",
        by_corpus({"Yahoo": "90.9 %", "IMDB": "85.6 %", "Amazon": "89.8 %", "Yelp": "89.6 %"}),
        above(0.5),
        top_rarely_flips,
        needs("HANrnn"),
        over="all",
    ),
    Claim(
        "ERA-7",
        "The share of wrong-way flips mirrors the share of negative ΔJS, and is smallest in FLANs.",
        "4.2, footnote 5",
        "only-random / (only-random + only-top) against the share of negative ΔJS: Spearman over "
        "models > 0; FLAN minus HAN of the same encoder < 0 (over all corpora: the largest)",
        by_corpus({"Yahoo": "13 %", "IMDB": "10 %", "Amazon": "26 %", "Yelp": "18 %"}),
        MIRRORS,
        alone(mirrors),
        ALL,
        measure_all=mirrors,
    ),
    Claim(
        "ERA-17",
        "On the topic corpus the HANs have fat tails of negative ΔJS.",
        "A.2, Figs. 8, 10",
        "90th percentile of Δα among negative ΔJS, topic minus rating corpora, each HAN; > 0 "
        "(needs Yahoo; other topic corpora stand in)",
        "picture, all three HANs on Yahoo",
        above(0),
        None,
        needs(*HANS),
        measure_all=fat_tails,
    ),
    Claim(
        "ERA-18",
        "The single top item flips more often by product than by attention everywhere, by gradient "
        "less often in most models.",
        "A.3, Figs. 9, 12, 13",
        "share flipped by the top item: product minus attention > 0, every model (over all "
        "corpora: the smallest); share of models with gradient below attention > 0.5",
        "24 of 24; lower in 14 of 24",
        {f"product - attention, {m}": above(0) for m in MODELS}
        | {"models with gradient below attention": above(0.5)},
        alone(first_by_product),
        ALL,
        measure_all=first_by_product,
    ),
    Claim(
        "ERA-20",
        "Encoder-free models flip on a single erasure more often than any other architecture.",
        "A.2, Fig. 9",
        "1 - neither, noenc minus rnn and minus conv; > 0 on rating corpora (the exception, the "
        "FLAN on Yahoo, needs Yahoo)",
        "text",
        above(0),
        single_flips_without_encoder,
        ALL,
        corpora=RATING,
        over="all",
    ),
)  # fmt: skip
