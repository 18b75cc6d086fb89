"""What each audit can tell apart, and how many documents the verdict needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from heedful.audits.verdict import borders
from heedful.calibration.borders import Measured, Score

MISSED = 0.1
"""An audit cannot tell a construction from a reason if its border lets more than this pass."""


class Directed(Protocol):
    """A measure whose higher (or lower) values speak for attention."""

    @property
    def audit(self) -> str: ...  # noqa: D102
    @property
    def measure(self) -> str: ...  # noqa: D102
    @property
    def rises(self) -> bool: ...  # noqa: D102


def value_of(model: Measured, name: str, rises: bool) -> float:
    """A measure turned so that more speaks for attention; -inf where it is undefined.

    Most are undefined exactly where no attention changes any decision.
    """
    estimate = model.estimates.get(name)
    if estimate is None or np.isnan(estimate.value):
        return -np.inf
    return estimate.value if rises else -estimate.value


def ordered_rightly(higher: Sequence[float], lower: Sequence[float]) -> float:
    """How often one of the first lies above one of the second; ties count half (AUC)."""
    if not len(higher) or not len(lower):
        return float("nan")
    first, second = np.asarray(higher)[:, None], np.asarray(lower)
    return float(((first > second) + 0.5 * (first == second)).mean())


def telling(models: Sequence[Measured], measures: Mapping[str, Directed]) -> pd.DataFrame:
    """For each family and audit: does it order the constructions and follow the dials, how it errs.

    `false yes` and `false no` are the errors of the best single border between models that should
    be called yes and models that should be called no; `calls yes` lists the constructions that it
    lets pass, which the audit cannot tell from a reason: there the verdict leaves it to another
    test. `documents` is how many it needs.
    """
    families = {
        "flat and hierarchical": [m for m in models if not m.is_transformer],
        "Transformers": [m for m in models if m.is_transformer],
    }
    rows = [row for name, some in families.items() if some for row in _told(some, name, measures)]
    return pd.DataFrame(rows)


def _told(
    models: Sequence[Measured], family: str, measures: Mapping[str, Directed]
) -> list[dict[str, Any]]:
    """The rows of one family; an audit that measures none of its models refuses it."""
    reasons = [m for m in models if m.kind == "reason"]
    rows = []
    for name, measure in measures.items():

        def of(
            some: Sequence[Measured], name: str = name, rises: bool = measure.rises
        ) -> list[float]:
            return [value_of(m, name, rises) for m in some]

        row: dict[str, Any] = {"family": family, "audit": measure.audit}
        row |= {"measure": measure.measure, "key": name}
        if not any(name in m.estimates for m in models):
            rows.append(row | {"calls yes": "refuses"})
            continue
        for kind in ("irrelevant", "deceiving"):
            others = [m for m in models if m.kind == kind]
            row[f"reason above {kind}"] = ordered_rightly(of(reasons), of(others))
        for dial in ("leak", "crowd"):
            steps = [m for m in models if m.construction == dial]
            row[f"follows {dial}"] = _follows([m.reliance for m in steps], of(steps))
            row[f"rises on {dial}"] = _rises(steps, of(steps))
        should = [m for m in models if not m.apart and m.word == "yes"]
        should_not = [m for m in models if m.apart != "near a border" and m.word == "no"]
        apart = dict.fromkeys(m.construction for m in should_not)
        row |= _best_border(
            of(should),
            {c: of([m for m in should_not if m.construction == c]) for c in apart},
        )
        row["documents"] = _documents(should, should_not, name)
        rows.append(row)
    return rows


def _follows(reliance: Sequence[float], values: Sequence[float]) -> float:
    """Spearman's ρ with known reliance; undefined values are lowest."""
    finite = np.nan_to_num(np.asarray(values), neginf=-1e9)
    if len(set(reliance)) < 2 or len(set(finite.tolist())) < 2:
        return float("nan")
    return float(spearmanr(reliance, finite).statistic)


def _rises(steps: Sequence[Measured], values: Sequence[float]) -> float:
    """Share of neighbouring steps of the same model at which the measure rises (not ties)."""
    series: dict[str, list[tuple[float, float]]] = {}
    for step, value in zip(steps, values, strict=True):
        series.setdefault(step.name.partition("/")[2], []).append((step.reliance, value))
    rises = [
        after > before
        for points in series.values()
        for (_, before), (_, after) in zip(sorted(points), sorted(points)[1:], strict=False)
    ]
    return float(np.mean(rises)) if rises else float("nan")


def _best_border(
    should: Sequence[float], should_not: Mapping[str, Sequence[float]]
) -> dict[str, float | str]:
    """Errors of both directions at the single border with the fewest, and who is missed by it.

    Every construction weighs the same, however many models it has.
    """
    if not len(should) or not should_not:
        return {"false yes": float("nan"), "false no": float("nan"), "calls yes": ""}
    good = np.asarray(should)
    places = np.unique(np.concatenate([good, *should_not.values()]))
    passed = {c: (np.asarray(v)[:, None] >= places).mean(0) for c, v in should_not.items()}
    false_yes = np.mean(list(passed.values()), axis=0)
    false_no = (good[:, None] < places).mean(0)
    best = int((false_yes + false_no).argmin())
    missed = [construction for construction, share in passed.items() if share[best] > MISSED]
    return {
        "false yes": float(false_yes[best]),
        "false no": float(false_no[best]),
        "calls yes": ", ".join(missed) or "none",
    }


def _documents(should: Sequence[Measured], should_not: Sequence[Measured], name: str) -> float:
    """Documents after which a typical interval is narrower than the typical yes is from the no.

    Infinite where both are typically the same.
    """
    found = [
        [m.estimates[name] for m in some if name in m.estimates] for some in (should, should_not)
    ]
    known = [[e for e in some if np.isfinite([e.value, e.low, e.high]).all()] for some in found]
    if not all(known):
        return float("nan")
    yes, no = (float(np.median([e.value for e in some])) for some in known)
    if yes == no:
        return float("inf")
    needed = [e.n * ((e.high - e.low) / (yes - no)) ** 2 for some in known for e in some]
    return float(max(np.ceil(np.median(needed)), 2))


def documents_needed(
    models: Sequence[Measured], fitted: Mapping[str, Any], by_size: Mapping[int, Score]
) -> pd.DataFrame:
    """How many documents each test needs, and how often the verdict is right with so many.

    An interval shrinks with the square root of the number of documents: so many are needed until
    its nearer end leaves the border. Half and 95 % of the models are served with these.
    """
    rows: list[dict[str, Any]] = []
    for border in borders({"borders": fitted}):
        needed = []
        for model in models:
            estimate = model.estimates.get(border.key)
            if model.apart or estimate is None or np.isnan(estimate.low):
                continue
            ends = (border.contradicts, border.supports)
            place = min(ends, key=lambda end: abs(end - estimate.value))
            half = (
                estimate.value - estimate.low
                if place < estimate.value
                else (estimate.high - estimate.value)
            )
            distance = abs(estimate.value - place)
            needed.append(estimate.n * (half / distance) ** 2 if distance else np.inf)
        # Some need no end of documents: "higher" never interpolates between two infinities.
        needed = needed or [np.nan]
        half_of, most = np.quantile(needed, [0.5, 0.95], method="higher")
        rows.append(
            {
                "what": border.name,
                "half of the models": np.ceil(half_of),
                "95 % of the models": np.ceil(most),
            }
        )
    rows += [
        {
            "what": f"verdict with {size} documents",
            "models": found.of,
            "right": found.share,
            "deceiving ones called yes": found.false_yes,
        }
        for size, found in by_size.items()
    ]
    return pd.DataFrame(rows)
