"""Claims of the erasure study about erasing one item: ERA-1 to ERA-7, 17, 18 and 20."""

from __future__ import annotations

from itertools import product

import numpy as np

from heedful.reproduction.ledger import Measured, NotMeasurable, Parts, below
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
from heedful.studies.erasure.printed import PAPER
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
            0.0,
            1.0,
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
    found["models with gradient below attention"] = share_of_models(gradient, below(0))
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

CLAIMS = (
    PAPER.claim("ERA-1", mostly_positive, ALL),
    PAPER.claim("ERA-2", small_where_negative, ALL),
    PAPER.claim("ERA-3", late_upswing, needs("HANrnn")),
    PAPER.claim("ERA-4", upswing_order, ALL),
    PAPER.claim("ERA-5", top_beats_random, ALL),
    PAPER.claim("ERA-6", top_rarely_flips, needs("HANrnn")),
    PAPER.claim("ERA-7", alone(mirrors), ALL, measure_all=mirrors),
    PAPER.claim("ERA-17", None, needs(*HANS), measure_all=fat_tails),
    PAPER.claim("ERA-18", alone(first_by_product), ALL, measure_all=first_by_product),
    PAPER.claim("ERA-20", single_flips_without_encoder, ALL, corpora=RATING),
)
