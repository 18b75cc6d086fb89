"""Whether quite different attention would have given the same output.

See docs/studies/faithful.md, "Exact adversary".

If it would, attention is one of many stories that fit the decision.
"""

from math import log
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from heedful.audits.exact_adversary import MOST_UNITS, TOLERANCE, farthest, largest_jsd
from heedful.audits.finding import Audit, Finding, Measure, frame
from heedful.audits.searched_adversary import search
from heedful.audits.tables import counted, histogram, percent
from heedful.importance import Importance
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel, alone
from heedful.runs.randomness import keys, uniform_noise
from heedful.statistics.estimates import per_cent
from heedful.statistics.intervals import mean, paired, proportion

SEARCHED = 0.03
"""Share of the documents that the gradient search runs on, chosen by key: it is slow and weaker."""
ALMOST = 0.9
"""Attention has moved almost completely at this share of the largest divergence there is."""
MOST_POINTS = 400
MOVED = "attention can be moved almost completely"


def rows(
    model: AttentiveModel,
    reading: Reading,
    importance: Importance,
    seed: int,
    tolerance: float = TOLERANCE,
    searched: float = SEARCHED,
) -> pd.DataFrame:
    """How far attention can go from the trained one with the output within the tolerance.

    `exact_jsd` is a lower bound where `is_exact` is false; it and `exact_tvd` are nan unless the
    head is linear. `searched_jsd` and `searched_tvd` come from the published gradient search on a
    share of the documents, nan elsewhere.
    """
    nothing = torch.full_like(reading.attention[:, 0], torch.nan)
    columns = {
        "units": reading.units,
        "exact_jsd": nothing,
        "exact_tvd": nothing,
        "is_exact": torch.zeros_like(reading.mask[:, 0]),
        "searched_jsd": nothing.clone(),
        "searched_tvd": nothing.clone(),
        "is_searched": torch.zeros_like(reading.mask[:, 0]),
        "largest_jsd": largest_jsd(reading.attention, reading.mask),
    }
    if reading.unit_logits is not None:
        said = alone(model, reading).masked_fill(~reading.mask[..., None], 0)
        found = farthest(reading.attention, said, reading.mask, tolerance)
        columns |= {"exact_jsd": found.jsd, "exact_tvd": found.tvd, "is_exact": found.is_exact}
        chosen = _chosen(reading, seed, searched)
        columns["is_searched"] = chosen
        if bool(chosen.any()):
            units = int(reading.units[chosen].max())
            names = [
                name for name, is_in in zip(reading.names, chosen.tolist(), strict=True) if is_in
            ]
            start = torch.from_numpy(keys(seed, names, "adversary search"))
            met = search(
                reading.attention[chosen, :units],
                said[chosen, :units],
                reading.mask[chosen, :units],
                start,
                tolerance,
            )
            columns["searched_jsd"][chosen], columns["searched_tvd"][chosen] = met.jsd, met.tvd
    arrays = {name: column.cpu().numpy() for name, column in columns.items()}
    return frame(reading.names, **arrays, tolerance=np.full(len(reading.names), tolerance))


def _chosen(reading: Reading, seed: int, share: float) -> Bool[Tensor, " batch"]:
    noise = uniform_noise(keys(seed, reading.names, "adversary searched"))
    return (noise < share).to(reading.mask.device) & (reading.units > 1)


def summarise(rows: pd.DataFrame) -> Finding:
    """The finding over all rows; documents with one unit have no other attention."""
    every = len(rows)
    rows = rows[(rows["units"] > 1) & rows["exact_jsd"].notna()] if every else rows
    if not len(rows):
        nothing = "Nothing could be measured: it takes a linear head and more than one unit."
        return AUDIT.finding(nothing)
    names = [str(name) for name in rows["instance"]]
    exact, most = _column(rows, "exact_jsd"), _column(rows, "largest_jsd")
    moved = proportion(int((exact >= ALMOST * most).sum()), len(rows))
    measures = [
        Measure(MOVED, moved),
        Measure("JSD", mean(exact, names, least=0, most=log(2)), "exact"),
        Measure("JSD", mean(most, names, least=0, most=log(2)), "largest possible"),
        Measure("share of the largest JSD", mean(exact / most, names, least=0, most=1), "exact"),
        Measure("TVD", mean(_column(rows, "exact_tvd"), names, least=0, most=1), "exact"),
    ]
    measures += _searched(rows[rows["is_searched"]])
    return AUDIT.finding(
        measures=tuple(measures),
        drawn=_drawn(rows, exact),
        notes=_notes(rows, every),
    )


def _column(rows: pd.DataFrame, name: str) -> Float64[np.ndarray, " instance"]:
    return rows[name].to_numpy(dtype=np.float64)


def _searched(rows: pd.DataFrame) -> list[Measure]:
    if not len(rows):
        return []
    names = [str(name) for name in rows["instance"]]
    exact, found = _column(rows, "exact_jsd"), _column(rows, "searched_jsd")
    return [
        Measure("JSD", mean(found, names, least=0, most=log(2)), "searched"),
        Measure("TVD", mean(_column(rows, "searched_tvd"), names, least=0, most=1), "searched"),
        Measure("JSD", paired(exact, found, names, most=log(2)), "exact - searched"),
    ]


def tell(found: Finding) -> str:
    """How far attention could have gone, in how many documents."""
    moved, distance = found.by_method(MOVED)[""], found.by_method("JSD")["exact"]
    tolerance, bound = found.drawn["tolerance"], "" if found.drawn["is_exact"] else "at least "
    return (
        f"In {bound}{percent(moved)} of the documents attention could be moved almost completely "
        f"and the output would change by at most {tolerance:g}; the farthest such attention is "
        f"{bound}{distance.value:.2f} nats away on average, of at most {log(2):.2f}."
    )


def _drawn(rows: pd.DataFrame, exact: Float64[np.ndarray, " instance"]) -> dict[str, Any]:
    both = rows[rows["searched_jsd"].notna()].head(MOST_POINTS)
    return {
        "exact_jsd": histogram(exact, bins=28, low=0.0, high=0.7),
        "largest": log(2),
        "tolerance": float(rows["tolerance"].iloc[0]),
        "is_exact": bool(rows["is_exact"].all()),
        "exact": _column(both, "exact_jsd").round(4).tolist(),
        "searched": _column(both, "searched_jsd").round(4).tolist(),
    }


def _notes(rows: pd.DataFrame, every: int) -> tuple[str, ...]:
    measured = len(rows)
    bounds = int((~rows["is_exact"].astype(bool)).sum())
    tried = rows[rows["is_searched"].astype(bool)]
    failed = int(tried["searched_jsd"].isna().sum())
    almost = (
        f"Almost completely: at least {per_cent(ALMOST)} of the divergence that moving everything "
        "to the least attended unit would give."
    )
    notes: tuple[str, ...] = (almost,)
    notes += counted(every - measured, every, "have one unit (or no linear head) and are left out.")
    notes += counted(
        bounds,
        measured,
        f"have a lower bound only: more than two classes, or more than {MOST_UNITS} units.",
    )
    if len(tried):
        notes += (
            f"{len(tried)} of {measured} documents, chosen by key, were also searched by gradient.",
        )
    else:
        notes += (
            f"None of the {measured} documents was among the few that the gradient search is "
            "given, so it has no numbers here.",
        )
    notes += counted(failed, len(tried), "given to the search never came within the tolerance.")
    return notes


AUDIT = Audit(
    rows,
    summarise,
    name="adversary",
    title="Attention far away",
    question="Could the model have attended elsewhere and given the same output?",
    place=8,
    chart="adversary",
    tell=tell,
)
