"""Whether the importance methods tell the same story: Kendall's τ-b and overlap of the top."""

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import torch

from heedful.audits.finding import Audit, Finding, Measure, frame
from heedful.audits.tables import of_several_units
from heedful.importance import Importance
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel
from heedful.statistics.agreement import kendall_tau_b, top_units
from heedful.statistics.estimates import Estimate, per_cent
from heedful.statistics.intervals import means

MEASURES = {
    "tau": "Kendall τ",
    "top_1": "same top unit",
    "top_10th": f"overlap of the top {per_cent(0.1)}",
}


def rows(
    model: AttentiveModel, reading: Reading, importance: Importance, seed: int
) -> pd.DataFrame:
    """Agreement of every two methods on every document.

    `top_10th` is the overlap of the top max(1, n // 10) units of both. τ is nan where a method
    gives all units the same importance.
    """
    pairs = list(combinations(importance, 2))
    if not pairs:
        return pd.DataFrame()
    # All pairs go through one call: [pair × document, unit].
    first, second = (torch.cat([importance[pair[side]] for pair in pairs]) for side in (0, 1))
    mask, units = reading.mask.repeat(len(pairs), 1), reading.units.repeat(len(pairs))
    tenth = (units // 10).clamp_min(1)
    same_top = (top_units(first, mask, 1) & top_units(second, mask, 1)).any(-1)
    common = (top_units(first, mask, tenth) & top_units(second, mask, tenth)).sum(-1)
    named = np.repeat(np.array(pairs), len(reading.names), axis=0)
    return frame(
        reading.names * len(pairs),
        first=named[:, 0],
        second=named[:, 1],
        units=units.cpu().numpy(),
        tau=kendall_tau_b(first, second, mask).cpu().numpy(),
        top_1=same_top.cpu().numpy(),
        top_10th=(common.double() / tenth).cpu().numpy(),
    )


def summarise(rows: pd.DataFrame) -> Finding:
    """The finding over all rows: the mean of each measure for each pair of methods."""
    rows, notes = of_several_units(rows)
    if not len(rows):
        nothing = "Nothing could be measured: no document has more than one unit."
        return AUDIT.finding(nothing, notes=notes)
    found: dict[tuple[str, str], list[Estimate]] = {}
    for pair, part in rows.groupby(["first", "second"], sort=False):
        table = part[list(MEASURES)].to_numpy(dtype=np.float64)
        found[str(pair[0]), str(pair[1])] = means(
            table, list(part["instance"]), least=[-1, 0, 0], most=1
        )
    measures = [
        Measure(name, found[pair][column], f"{pair[0]} ~ {pair[1]}")
        for column, name in enumerate(MEASURES.values())
        for pair in found
    ]
    undefined = int(rows["tau"].isna().sum())
    if undefined:
        notes += (
            f"{undefined} of {len(rows)} rankings are undefined because a method gives every unit "
            "the same importance.",
        )
    return AUDIT.finding(
        measures=tuple(measures),
        drawn=_drawn(found),
        notes=notes,
    )


def tell(found: Finding) -> str:
    """Which methods rank most and least as attention does."""
    tau = {tuple(pair.split(" ~ ")): e for pair, e in found.by_method(MEASURES["tau"]).items()}
    with_attention = {
        (other if one == "attention" else one): estimate
        for (one, other), estimate in tau.items()
        if "attention" in (one, other) and not np.isnan(estimate.value)
    }
    noise = with_attention.pop("random", None)
    if not with_attention:
        return "No other method was compared with attention, or all of its weights are equal."
    nearest = max(with_attention, key=lambda name: with_attention[name].value)
    farthest = min(with_attention, key=lambda name: with_attention[name].value)
    answer = f"Attention agrees most with {nearest} (Kendall τ {with_attention[nearest]})"
    if farthest != nearest:
        answer += f" and least with {farthest} ({with_attention[farthest]})"
    return f"{answer}; with a random order {noise}." if noise else f"{answer}."


def _drawn(found: dict[tuple[str, str], list[Estimate]]) -> dict[str, Any]:
    """A symmetric matrix for each measure, 1 on the diagonal."""
    names = list(dict.fromkeys(name for pair in found for name in pair))
    drawn: dict[str, Any] = {"methods": names}
    for column, measure in enumerate(MEASURES.values()):
        matrix = np.eye(len(names))
        for (one, other), estimates in found.items():
            i, j = names.index(one), names.index(other)
            matrix[i, j] = matrix[j, i] = estimates[column].value
        drawn[measure] = [[None if np.isnan(x) else x for x in row] for row in matrix.tolist()]
    return drawn


AUDIT = Audit(
    rows,
    summarise,
    name="agreement",
    title="Agreement between methods",
    question="Do other measures of importance rank the units of a text as attention does?",
    place=12,
    chart="agreement",
    tell=tell,
)
