"""Whether a person who reads attention foresees what the model does when words are exchanged.

What is measured of each text stands in `exchanges`; here it becomes shares of texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float64

from heedful.audits.exchanges import HALF, SURE, rows
from heedful.audits.finding import Audit, Finding, Measure
from heedful.audits.tables import histogram, percent
from heedful.audits.text_groups import best_group
from heedful.importance import Importance
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel
from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import bootstraps, mean, proportion

SHARE = "texts in which all three hold"
GOES = "the decision goes with the words shown"
MATTER = "most of the attention lies on words that matter"
PASSES = "their effect passes through attention"
READ = "forward passes"
MOST = 200
"""Texts that are exchanged at most: shares of texts are then known to about 7 points."""


FEWEST = 10
"""Where fewer texts were decided for a class, it is said."""


class Outcomes(NamedTuple):
    """What the exchanges say of each text."""

    kept: Bool[np.ndarray, "text"]
    """Whether the shown units keep the decision among the partner's others."""
    followed: Float64[np.ndarray, "text"]
    """How far the decision goes with the shown units, of the text and of its partner."""
    luck: Float64[np.ndarray, "text"]
    """How far it goes with them in one pair and against them in another; nan in one pair."""
    is_few: Bool[np.ndarray, "text"]
    mattering: Float64[np.ndarray, "text"]
    passing: Bool[np.ndarray, "text"]
    """Whether most of the effect passes through attention."""

    @property
    def holds(self) -> Bool[np.ndarray, "text"]:
        """Whether all three hold, of each text by itself."""
        return np.asarray(self.kept & (self.mattering >= HALF) & self.passing)


def outcomes(rows: pd.DataFrame) -> Outcomes:
    """Per text: does the decision go with what is shown, does that matter, does it pass."""
    partner = rows.set_index("instance")["partner"]
    is_mutual = partner.reindex(rows["partner"]).to_numpy() == rows["instance"].to_numpy()
    again = rows[~is_mutual].groupby("partner")["goes"].mean()
    met = again.reindex(rows["instance"]).to_numpy(dtype=np.float64)
    goes, stays = (rows[name].to_numpy(dtype=np.float64) for name in ("goes", "stays"))
    return Outcomes(
        stays >= SURE,
        (goes + stays) / 2,
        2 * (np.abs(stays - met) - HALF).clip(0),
        rows["is_few"].to_numpy(dtype=bool),
        rows["mattering"].to_numpy(dtype=np.float64),
        rows["around"].to_numpy(dtype=np.float64) < HALF,
    )


def shares(
    found: Outcomes, weights: Float64[np.ndarray, "replicate text"]
) -> Float64[np.ndarray, "replicate 4"]:
    """The share of texts in which all three hold; then of each.

    The decision goes with what is shown in as many texts as it does on average, less those in which
    that depends on the pair: there it is luck. Attention lies on what matters if the units that
    matter have half of it; where many units are shown this is estimated, and judged on the mean of
    such texts. All three: the product, the latter two among texts whose decision is kept.
    """

    def average(
        values: np.ndarray, among: Bool[np.ndarray, "text"]
    ) -> Float64[np.ndarray, "replicate"]:
        total = weights @ among.astype(np.float64)
        summed = weights @ np.where(among, values, 0.0)
        found = np.full(len(weights), np.nan)
        return np.asarray(np.divide(summed, total, out=found, where=total > 0))

    every, kept = np.ones_like(found.kept), found.kept
    luck = np.nan_to_num(average(np.nan_to_num(found.luck), ~np.isnan(found.luck)))
    goes = (average(found.followed, every) - luck).clip(0)
    many = kept & ~found.is_few
    enough = np.nan_to_num(average(found.mattering, many)) >= HALF
    of_few = average(found.mattering >= HALF, kept & found.is_few)
    of_many = average(many, kept)
    matter = np.nan_to_num(of_few) * (1 - of_many) + enough * of_many
    both = goes * np.nan_to_num(matter) * np.nan_to_num(average(found.passing, kept))
    return np.stack([both, goes, matter, average(found.passing, every)], 1)


def summarise(rows: pd.DataFrame) -> Finding:
    """The finding over all rows; texts without a partner or of one unit have none."""
    if not len(rows):
        return AUDIT.finding(
            "Nothing could be exchanged: all texts are decided alike, or have a single unit."
        )
    names = [str(name) for name in rows["instance"]]
    found = outcomes(rows)
    estimated = share_of_texts(found, names)
    measures = [
        Measure(name, one)
        for name, one in zip((SHARE, GOES, MATTER, PASSES), estimated, strict=True)
    ]
    cost = mean(rows["passes"].to_numpy(dtype=np.float64), names)
    around = rows["around"].to_numpy(dtype=np.float64)
    group = best_group(rows, found.holds)
    return AUDIT.finding(
        answer=f"The decision goes with the words shown in {percent(estimated[1])} of the texts, "
        f"most of the attention lies on words that matter in {percent(estimated[2])} of these, and "
        f"their effect passes through attention in {percent(estimated[3])}.",
        measures=(*measures, Measure(READ, cost)),
        drawn={
            "mattering": histogram(found.mattering[found.kept]),
            "around": histogram(around[~np.isnan(around)].clip(0, 1)),
            "group": None if group is None else group.to_json(),
        },
        notes=_notes(rows, cost.value),
    )


def _notes(rows: pd.DataFrame, cost: float) -> tuple[str, ...]:
    """How much was read, and where few texts had to do for many."""
    notes = [
        f"{len(rows)} texts with a partner each; a text was read {cost:.1f} times, its exchanges "
        "with others included."
    ]
    decided = rows["decided"].value_counts()
    if len(decided) and int(decided.min()) < FEWEST:
        notes.append(
            f"Only {int(decided.min())} texts were decided as {decided.idxmin()}: few partners "
            "stand for that class."
        )
    return tuple(notes)


def share_of_texts(found: Outcomes, names: Sequence[str]) -> list[Estimate]:
    """What `shares` has, with intervals over texts."""
    estimated = bootstraps(lambda weights: shares(found, weights), names)
    return [_as_share(one, len(names)) for one in estimated]


def _as_share(estimate: Estimate, n: int) -> Estimate:
    """A resampled share, with an interval no narrower than that of as many yes and no."""
    if np.isnan(estimate.value):
        return estimate
    value = min(max(estimate.value, 0.0), 1.0)
    counted = proportion(round(value * n), n)
    low, high = (np.nan_to_num(end, nan=value) for end in (estimate.low, estimate.high))
    low, high = min(low, counted.low, value), max(high, counted.high, value)
    return Estimate(value, float(low), float(high), n, "percentile", estimate.undefined)


def of_a_batch(
    model: AttentiveModel, reading: Reading, importance: Importance, seed: int
) -> pd.DataFrame:
    """No rows: texts are set against each other, so that all are read together."""
    return pd.DataFrame({"instance": []})


AUDIT = Audit(
    of_a_batch,
    summarise,
    name="exchange",
    title="Exchanged words",
    question="When words change places between texts, does the decision go with those that "
    "attention shows?",
    place=1,
    most=MOST,
    whole=rows,
)
