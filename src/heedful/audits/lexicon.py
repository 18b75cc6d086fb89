"""Whether words that people feel strongly about get more importance: a U over their ratings.

A lexicon gives words a rating (valence from 1 to 9, or any scale). Word averages of an importance
are regressed on it by `lm(score ~ poly(rating, 2))`; a positive square term is a U. Something else
may have made it, so controls stand beside it: the length of the texts a word stands in, the way
texts are made comparable, an untrained model of the same shape, shuffled ratings, two lines.

Resampling draws entries of the lexicon: inflected forms of one entry share its rating.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from heedful.audits.finding import Finding, Measure
from heedful.corpora.lexicon import Match
from heedful.errors import InputError
from heedful.statistics import draws
from heedful.statistics.draws import Draws
from heedful.statistics.estimates import Estimate, per_cent
from heedful.statistics.intervals import central
from heedful.statistics.regression import (
    LINEAR,
    SQUARE,
    Fit,
    TwoLines,
    curvature,
    curve,
    permuted,
    quadratic,
    resampled,
    two_lines,
    vertex,
)

if TYPE_CHECKING:
    import pandas as pd

QUESTION = "Do words that people feel strongly about, bad or good, get more importance?"
LEAST_WORDS = 20
"""Rated words that a quadratic needs here; fewer say nothing either way."""
LEAST_COUNT = 2
"""Words seen less often in the texts are left out."""
LEVEL = 0.05
"""Of every test behind the sentence."""
LENGTH = "inverse length"
"""Column of word averages: mean 1/N over the texts of a word."""
POINTS, NAMED = 400, 24
"""Words drawn in the chart, and named in it."""


def rated(
    words: pd.DataFrame, matches: Mapping[str, Match], least: int = LEAST_COUNT
) -> pd.DataFrame:
    """The word averages of words with a rating, seen often enough: `rating`, `entry`, `how` added.

    Too few words, or ratings without spread, are errors that say what is needed.
    """
    known = words[words["word"].isin(set(matches)) & (words["count"] >= least)].copy()
    found = [matches[word] for word in known["word"]]
    known["rating"] = [one.rating for one in found]
    known["entry"] = [one.entry for one in found]
    known["how"] = [one.how for one in found]
    if len(known) < LEAST_WORDS:
        raise InputError(
            f"The lexicon rates {len(known)} of the words seen {least} times or more in these "
            f"texts; at least {LEAST_WORDS} are needed."
        )
    if known["rating"].nunique() < 3:
        raise InputError(
            f"The lexicon gives the {len(known)} shared words {known['rating'].nunique()} "
            "different ratings; a U needs at least 3."
        )
    return known.reset_index(drop=True)


def regressions(words: pd.DataFrame, score: str) -> dict[str, Fit]:
    """The quadratic fits of one score: as published, then with each control, by name."""
    rating, value = words["rating"], words[score]
    exact = words[words["how"] == "exact"]
    return {
        "as published": quadratic(rating, value),
        "with mean 1/N": quadratic(rating, value, {LENGTH: words[LENGTH]}),
        "HC3": quadratic(rating, value, is_robust=True),
        "weighted by count": quadratic(rating, value, weights=words["count"]),
        "exact matches only": quadratic(exact["rating"], exact[score]),
    }


def bend(
    words: pd.DataFrame, score: str, has_length: bool = False, is_standardised: bool = False
) -> Draws:
    """The square term with replicates over entries; with 1/N beside it, in residual s.d.s."""
    beside = {LENGTH: words[LENGTH]} if has_length else None
    statistic = curvature(words["rating"], words[score], beside, is_standardised)
    return draws.draws(statistic, entries(words))


def top_gap(words: pd.DataFrame, score: str, middle: float, top: int) -> Draws:
    """How much farther from the middle the ratings of the highest words lie than all words' do.

    `top` words, or a quarter of all where there are few; found anew in each replicate.
    """
    words = words.sort_values(score, ascending=False, kind="stable")
    distance = (words["rating"] - middle).abs().to_numpy()
    share = min(top, len(words) // 4) / len(words)

    def statistic(
        weights: Float64[np.ndarray, "replicate word"],
    ) -> Float64[np.ndarray, " replicate"]:
        before = np.cumsum(weights, axis=1) - weights
        highest = np.clip(share * weights.sum(1, keepdims=True) - before, 0, weights)
        with np.errstate(divide="ignore", invalid="ignore"):
            own = highest @ distance / highest.sum(1)
            return np.asarray(own - weights @ distance / weights.sum(1))

    return draws.draws(statistic, entries(words))


def arms(words: pd.DataFrame, score: str, split: float) -> tuple[Draws, Draws]:
    """Slopes of the separate lines up to a rating and above it, with replicates over entries."""
    is_left = words["rating"] <= split
    found = []
    for side in (words[is_left], words[~is_left]):
        if side["rating"].nunique() < 2:
            found.append(draws.undefined())
            continue
        statistic = resampled({LINEAR: side["rating"]}, side[score], LINEAR)
        found.append(draws.draws(statistic, entries(side)))
    return found[0], found[1]


def lines(words: pd.DataFrame, score: str, split: float | None = None) -> TwoLines:
    """The two-line test of one score, split at a rating or where the fitted parabola turns."""
    if split is None:
        split = vertex(quadratic(words["rating"], words[score]), words["rating"])
    return two_lines(words["rating"], words[score], split)


def entries(words: pd.DataFrame) -> list[str]:
    """What resampling draws: the lexicon's entry of every word."""
    return [str(entry) for entry in words["entry"]]


class Controls(NamedTuple):
    """What the sentence rests on; each is a number and whether the U passes."""

    bends: bool
    survives_length: bool
    survives_ratio: bool
    beats_shuffled: bool
    beats_untrained: bool | None
    """None where no untrained model was at hand."""
    has_arms: bool
    falls: bool
    """Whether the left line falls, p < .05."""


def summarise(
    words: pd.DataFrame,
    importance: str,
    untrained: pd.DataFrame | None = None,
    texts: int = 0,
    apart: float = 0.0,
) -> Finding:
    """The finding on rated words with the columns `softmax` and `ratio` of one importance.

    `untrained` has the same words and columns by a model that learnt nothing. A column `gradient`
    (in even shares, as `ratio`) is drawn and measured beside the importance where there is one.
    `apart` is the share of a trace that special tokens hold: importances are shares of the rest,
    and a column `held` has them as they are.
    """
    found = regressions(words, "softmax")
    ratio = quadratic(words["rating"], words["ratio"])
    shuffled = permuted(words["rating"], words["softmax"])
    middle = lines(words, "softmax")
    own = bend(words, "softmax")
    measures = [
        Measure("b2", own.estimate(), importance),
        Measure("b2", bend(words, "softmax", has_length=True).estimate(), "with mean 1/N"),
        Measure("b2", bend(words, "ratio").estimate(), "times an even share"),
        Measure("b2", central(shuffled.drawn), "shuffled ratings"),
    ]
    beats = None
    if untrained is not None:
        other = bend(untrained, "softmax")
        gain = draws.minus(own, other).estimate()
        beats = bool(gain.low > 0)
        measures += [
            Measure("b2", other.estimate(), "untrained model"),
            Measure("b2", gain, f"{importance} - untrained model"),
        ]
    if "gradient" in words:
        measures.append(Measure("b2", bend(words, "gradient").estimate(), "gradient"))
    for name, side in zip(("left", "right"), arms(words, "softmax", middle.split), strict=True):
        measures.append(Measure(f"slope of the {name} arm", side.estimate(), importance))
    left = middle.left.term(LINEAR)
    controls = Controls(
        bends=_is_up(found["as published"]),
        survives_length=_is_up(found["with mean 1/N"]),
        survives_ratio=_is_up(ratio),
        beats_shuffled=shuffled.p < LEVEL,
        beats_untrained=beats,
        has_arms=middle.is_u,
        falls=left.b < 0 and left.p < LEVEL,
    )
    how = words["how"].value_counts()
    notes = [
        f"{len(words):,} words seen {LEAST_COUNT} times or more have a rating: "
        f"{how.get('exact', 0):,} as they stand, {how.get('lemma', 0):,} by their lemma.",
        f"Shuffled ratings bend as far in a share of {shuffled.p:.4f} of permutations.",
        *(
            f"{name}: b2 {fit.term(SQUARE).b:.3f}, SE {fit.term(SQUARE).se:.3f}, "
            f"t {fit.term(SQUARE).t:.2f}, p {fit.term(SQUARE).p:.2g}, R² {fit.r2:.3f}, n {fit.n}."
            for name, fit in (found | {"times an even share": ratio}).items()
        ),
    ]
    if apart:
        measures.append(Measure("b2", bend(words, "held").estimate(), "special tokens counted"))
        plain = quadratic(words["rating"], words["held"]).term(SQUARE)
        notes.append(
            f"Special tokens hold {per_cent(apart)} of the traced attention and words share the "
            f"rest; with special tokens counted b2 is {plain.b:.3f}, t {plain.t:.2f}, "
            f"p {plain.p:.2g}."
        )
    if texts:
        notes.insert(0, f"Importance of every token of {texts:,} texts.")
    shares = thirds(words)
    measures += [
        Measure("even shares", share, f"{importance}, rated {name}")
        for name, share in shares.items()
    ]
    answer = _answer(importance, controls, shares, len(words))
    return Finding(
        "lexicon", QUESTION, answer, tuple(measures), "lexicon", _drawn(words, importance),
        tuple(notes),
    )  # fmt: skip


def _is_up(fit: Fit) -> bool:
    term = fit.term(SQUARE)
    return term.b > 0 and term.p < LEVEL


def thirds(words: pd.DataFrame) -> dict[str, Estimate]:
    """Mean importance, in even shares, of the words rated low, between and high: a third each."""
    low, high = words["rating"].quantile([1 / 3, 2 / 3])
    groups = {
        "low": words[words["rating"] <= low],
        "between": words[(words["rating"] > low) & (words["rating"] < high)],
        "high": words[words["rating"] >= max(high, np.nextafter(low, np.inf))],
    }
    return {
        name: draws.average(group["ratio"], entries(group)).estimate()
        if len(group)
        else draws.undefined().estimate()
        for name, group in groups.items()
    }


def _answer(importance: str, controls: Controls, shares: Mapping[str, Estimate], words: int) -> str:
    """The verdict in a sentence: yes, partly or no, with numbers and what speaks against it."""
    low, between, high = shares.values()
    told = (
        f"words rated low get {low} times an even share of {importance}, those between {between}, "
        f"those rated high {high} ({words:,} words, a third each)"
    )
    if not controls.bends:
        return f"No: {importance} does not rise towards both ends of the ratings: {told}."
    against = [
        name
        for name, is_passed in {
            "given the length of texts the rise goes away": controls.survives_length,
            "counted in even shares the rise goes away": controls.survives_ratio,
            "shuffled ratings do the same": controls.beats_shuffled,
            "an untrained model shows it too": controls.beats_untrained is not False,
        }.items()
        if not is_passed
    ]
    if not controls.has_arms:
        side, other = ("low", "high") if controls.falls else ("high", "low")
        against.append(
            f"it rises towards one end only: words with {side} ratings get more, and towards "
            f"{other} ones the rise is not clear"
        )
    if against:
        doubts = "; ".join(against)
        return (
            f"Partly: {importance} follows the ratings at first sight, but {doubts}. "
            f"As to its size, {told}."
        )
    checked = "the length of texts, the way shares are counted and shuffled ratings"
    checked += "; an untrained model does not show it" if controls.beats_untrained else ""
    return (
        f"Yes: words rated low and words rated high get more {importance} than those between: "
        f"{told}. It survives {checked}."
    )


def _drawn(words: pd.DataFrame, importance: str) -> Mapping[str, Any]:
    """Words to draw, the highest named, and the fitted curves with their bands: even shares."""
    step = max(len(words) // POINTS, 1)
    by_rating = words.sort_values("rating", kind="stable")
    points = by_rating.iloc[::step]
    top = words.nlargest(NAMED, "ratio")
    kinds = {importance: "ratio"} | ({"gradient": "gradient"} if "gradient" in words else {})
    grid = np.linspace(words["rating"].min(), words["rating"].max(), 60)
    curves = {}
    for name, column in kinds.items():
        fitted = curve(quadratic(words["rating"], words[column]), words["rating"], grid)
        curves[name] = dict(
            zip(("middle", "low", "high"), map(np.ndarray.tolist, fitted), strict=True)
        )
    columns = ["word", "rating", *kinds.values()]
    return {
        "kinds": dict(kinds),
        "points": points[columns].to_dict("list"),
        "named": top[["word", "rating", "ratio"]].to_dict("list"),
        "grid": grid.tolist(),
        "curves": curves,
    }
