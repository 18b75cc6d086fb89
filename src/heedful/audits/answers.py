"""Whether explanations name the sources that an answer came from, measured by removing these.

Removing a source costs the answer log p(answer | all) − log p(answer | without it). An explanation
is as good as what it puts first costs (drop at k), as its sums foresee random removals that it has
not seen (linear datamodeling score), as it puts the sources that matter before the others (average
precision), and as it lies on the evidence where that is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float64

from heedful.audits.answer_measures import (
    ATTENTION,
    BEYOND,
    DEPENDING,
    EVIDENCE,
    FIRST,
    FORESEEN,
    FOUND,
    HIT,
    NAME,
    ON_SOURCES,
    ORACLE,
    PRECISION,
    QUESTION,
)
from heedful.audits.finding import Finding, Measure
from heedful.audits.tables import counted, percent, wide
from heedful.importance.sources import CHOSEN, LEARNT, RANDOM, Scores
from heedful.statistics.agreement import average_precision
from heedful.statistics.estimates import per_cent
from heedful.statistics.intervals import bootstrap, constant, mean, proportion
from heedful.statistics.weighted import rank_correlation, ratio_of

KS = (1, 3, 5)
"""So many of the sources that an explanation puts first are removed."""
MATTERS = math.log(2)
"""A source matters whose removal makes the answer at most half as likely."""
HARDLY = 0.1
"""An answer depends on a source if its best drop is at least so much of the mean best drop."""


@dataclass(frozen=True)
class Removals:
    """How likely one answer is, as a whole, when sources are removed: natural logarithms."""

    whole: float
    without: Scores
    """Each source removed."""
    kept: Bool[np.ndarray, "removal source"]
    """What random removals kept."""
    said: Float64[np.ndarray, " removal"]
    evidence: Bool[np.ndarray, " source"] | None = None

    @property
    def effects(self) -> Scores:
        """What removing each source costs the answer."""
        return self.whole - self.without


def first_of(scores: Scores, k: int) -> Bool[np.ndarray, " source"]:
    """The k sources that an explanation puts first; of equal ones the earlier."""
    chosen = np.zeros(len(scores), dtype=bool)
    chosen[np.argsort(-np.asarray(scores), kind="stable")[:k]] = True
    return chosen


def random_removals(
    count: int, sources: int, drawn: np.random.Generator
) -> Bool[np.ndarray, "removal source"]:
    """Which sources are kept, each by a coin; none of them all or nothing, where that can be."""
    kept = drawn.random((count, sources)) < 0.5
    if sources > 1:
        for row in np.flatnonzero(kept.all(1) | ~kept.any(1)):
            kept[row, drawn.integers(sources)] ^= True
    return kept


def measures_of(
    scores: Mapping[str, Scores],
    removals: Removals,
    without_first: Mapping[str, Mapping[int, float]],
) -> list[dict[str, Any]]:
    """One row per explanation of one answer; nan where a measure has no meaning."""
    effects, found = removals.effects, []
    best, usual = float(effects.max()), float(effects.mean())
    for name, claimed in scores.items():
        top = first_of(claimed, 1)
        row: dict[str, Any] = {"ranking": name}
        for k in KS:
            said = without_first[name].get(k)
            row[f"drop at {k}"] = math.nan if said is None else removals.whole - said
        row["found"] = float(effects[top][0]) - usual
        if name == RANDOM:  # a draw of one source is noise, and its mean is known
            row["found"], row["drop at 1"] = 0.0, usual
        row["best"] = best - usual
        row[FORESEEN] = _correlation(removals.kept @ claimed, removals.said)
        row[PRECISION] = _precision(claimed, effects >= MATTERS)
        row[EVIDENCE] = _on(claimed, removals.evidence)
        known = removals.evidence is not None and bool(removals.evidence.any())
        row[HIT] = float((top & removals.evidence).any()) if known else math.nan
        found.append(row)
    return found


def summarise(rows: pd.DataFrame, notes: Sequence[str] = ()) -> Finding:
    """The finding of all answers' rows."""
    measures: list[Measure] = []
    for column, least, most in (
        *((f"drop at {k}", -np.inf, np.inf) for k in KS),
        (FORESEEN, -1.0, 1.0),
        (PRECISION, 0.0, 1.0),
        (EVIDENCE, 0.0, 1.0),
        (HIT, 0.0, 1.0),
    ):
        table = wide(rows, column, least, most)
        if not np.isfinite(table.table.to_numpy()).any():
            continue
        measures += [Measure(column, one, name) for name, one in table.means().items()]
        if column in ("drop at 1", FORESEEN):
            for other in (RANDOM, ATTENTION):
                measures += [Measure(column, e, n) for n, e in table.minus(other).items()]
    found, best = wide(rows, "found"), wide(rows, "best")
    for name in found.rankings:
        share = bootstrap(ratio_of(found[name], best[name]), found.names)
        if name in (RANDOM, ORACLE):  # by definition, whatever the answers
            share = constant(float(name == ORACLE), len(found.names))
        measures.append(Measure(FOUND, share, name))
        if name in (CHOSEN, LEARNT):
            more = ratio_of(found[name] - found[ATTENTION], best[name])
            measures.append(Measure(BEYOND, bootstrap(more, found.names), name))
    drops = best[best.rankings[0]]
    depending = (drops >= HARDLY * drops.mean()) & (drops > 0)
    measures.append(Measure(DEPENDING, proportion(int(depending.sum()), len(drops)), ORACLE))
    once = rows[rows["ranking"] == rows["ranking"].iloc[0]]
    for column in (FIRST, ON_SOURCES):
        values, names = once[column].to_numpy(np.float64), list(once["instance"])
        measures.append(Measure(column, mean(values, names, least=0.0, most=1.0), ATTENTION))
    without = int(np.isnan(once[PRECISION]).sum())
    told = counted(without, len(once), f"have no source that matters, and no {PRECISION}.")
    told = tuple(one.replace("documents", "answers") for one in told)
    finding = Finding(NAME, QUESTION, "", tuple(measures), "measures", {}, (*notes, *told))
    return Finding(**{**vars(finding), "answer": _answer(finding)})


def _answer(finding: Finding) -> str:
    """How attention and the best explanation did, in a sentence."""
    shares = finding.by_method(FOUND)
    named = {n: e for n, e in shares.items() if n not in (ORACLE, RANDOM)}
    best = max(named, key=lambda name: named[name].value)
    said = f"The first source of attention finds {percent(named[ATTENTION])} of the best drop"
    if best != ATTENTION:
        said += f"; the best explanation is {best} ({percent(named[best])})"
    first, sources = (percent(finding.by_method(name)[ATTENTION]) for name in (FIRST, ON_SOURCES))
    return (
        f"{said}; {per_cent(0)} is a random source, {per_cent(1)} the one whose removal costs "
        f"most. While it answers, the first token holds {first} of the attention and the sources "
        f"{sources}; the rest lies on the other words of the prompt and of the answer."
    )


def _correlation(first: Scores, second: Scores) -> float:
    return float(rank_correlation(first, second)(np.ones((1, len(first))))[0])


def _precision(scores: Scores, matters: Bool[np.ndarray, " source"]) -> float:
    claimed, known = torch.from_numpy(np.array(scores))[None], torch.from_numpy(matters)[None]
    return float(average_precision(claimed, known, torch.ones_like(known))[0])


def _on(scores: Scores, evidence: Bool[np.ndarray, " source"] | None) -> float:
    """The share of what it claims for any source that it claims for the evidence."""
    claimed = np.clip(scores, 0, None)
    if evidence is None or not evidence.any() or claimed.sum() <= 0:
        return math.nan
    return float(claimed[evidence].sum() / claimed.sum())
