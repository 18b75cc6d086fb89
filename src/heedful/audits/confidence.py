"""How sure the model would be on one unit alone (docs/studies/faithful.md, "Words alone").

Where every unit alone already says what the whole text says, it no longer matters where attention
lies: the encoder has spread the answer over all of them.
"""

from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64

from heedful.audits.finding import Audit, Finding, Measure, frame
from heedful.audits.tables import counted, histogram, percent
from heedful.importance import Importance
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel, alone
from heedful.statistics.estimates import Estimate, per_cent
from heedful.statistics.intervals import bootstrap, means
from heedful.statistics.sums import OfSums

BINS = 20
NEAR = 0.1
"""A unit within this of the document's probability says what the document says."""
COLUMNS = ("confidence", "agreeing", "near")


def rows(
    model: AttentiveModel, reading: Reading, importance: Importance, seed: int
) -> pd.DataFrame:
    """What the units of each document say of its decision when attended alone.

    `confidence` is the mean probability of the decided class, `agreeing` the share of units that
    would decide alike (the leakage index), `near` the share within 0.1 of the document's own
    probability, `bins` the number of units in each twentieth of [0, 1].
    """
    logits = alone(model, reading)
    mask, units = reading.mask, reading.units
    decided = reading.decision[:, None]
    index = decided[..., None].expand(-1, mask.shape[1], 1)
    said = logits.softmax(-1).gather(2, index)[..., 0].masked_fill(~mask, 0)
    document = reading.logits.softmax(-1).gather(1, decided)
    agreeing = (logits.argmax(-1) == decided) & mask
    near = ((said - document).abs() <= NEAR) & mask
    bins = torch.zeros(len(mask), BINS, dtype=torch.long, device=mask.device)
    bins.scatter_add_(1, (said * BINS).long().clamp_max(BINS - 1), mask.long())
    return frame(
        reading.names,
        label=reading.labels.cpu().numpy(),
        decision=reading.decision.cpu().numpy(),
        units=units.cpu().numpy(),
        probability=document[:, 0].cpu().numpy(),
        confidence=(said.sum(-1) / units).cpu().numpy(),
        agreeing=(agreeing.sum(-1).double() / units).cpu().numpy(),
        near=(near.sum(-1).double() / units).cpu().numpy(),
        bins=bins.to(torch.int32).cpu().numpy(),
    )


def summarise(rows: pd.DataFrame) -> Finding:
    """The finding over all rows, and over those decided correctly where labels are known.

    A document of one unit agrees with that unit by necessity: it is left out of the shares of units
    that decide alike (the leakage index) or nearly so, and counted.
    """
    if not len(rows):
        nothing = "Nothing could be measured: there are no documents."
        return AUDIT.finding(nothing)
    overall = _estimates(rows)
    measures = [Measure(name, estimate) for name, estimate in overall.items()]
    notes: tuple[str, ...] = ()
    correct = rows[rows["label"] == rows["decision"]]
    unknown = int((rows["label"] < 0).sum())
    if len(correct):
        measures += [Measure(name, e, "correct") for name, e in _estimates(correct).items()]
    if unknown:
        notes += (f"{unknown} of {len(rows)} documents have no label and do not count as correct.",)
    elif not len(correct):
        notes += ("No document was decided correctly.",)
    notes += counted(
        int((rows["units"] == 1).sum()),
        len(rows),
        "have one unit, which decides alike by necessity: left out of the units that do.",
    )
    return AUDIT.finding(
        measures=tuple(measures),
        drawn=_drawn(rows),
        notes=notes,
    )


def _estimates(rows: pd.DataFrame) -> dict[str, Estimate]:
    names = list(rows["instance"])
    table = rows[list(COLUMNS)].to_numpy(dtype=np.float64)
    units = rows["units"].to_numpy(dtype=np.float64)
    is_shared = np.array([False, True, True])  # agreeing and near: nothing to share with one unit
    table = np.where((units == 1)[:, None] & is_shared, np.nan, table)
    confidence, agreeing, near = means(table, names, least=0, most=1)
    summed = table[:, 0] * units

    def mean(sums: Float64[np.ndarray, "replicate 2"]) -> Float64[np.ndarray, " replicate"]:
        found = np.full(len(sums), np.nan)
        np.divide(sums[:, 0], sums[:, 1], out=found, where=sums[:, 1] > 0)
        return found

    pooled = OfSums(np.stack([summed, units], 1), mean)
    return {
        "single-unit confidence": confidence,
        "single-unit confidence, pooled units": bootstrap(pooled, names, method="bca"),
        "units that decide alike": agreeing,
        "units within 0.1 of the document": near,
    }


def _drawn(rows: pd.DataFrame) -> dict[str, Any]:
    counts = np.stack(list(rows["bins"])).sum(0)
    edges = np.linspace(0, 1, BINS + 1).round(6).tolist()
    return {
        "units": {"edges": edges, "counts": counts.tolist()},
        "documents": histogram(rows["confidence"].to_numpy(dtype=np.float64), BINS),
    }


def tell(found: Finding) -> str:
    """How sure single units are, and how many decide alike."""
    confidence, alike = (
        found.by_method(name)[""] for name in ("single-unit confidence", "units that decide alike")
    )
    return (
        f"Attended alone, a unit gives the decision a probability of {percent(confidence)} on "
        f"average, and {percent(alike)} of a text's units would decide alike: "
        f"the nearer to {per_cent(1)}, the less it matters where attention lies."
    )


AUDIT = Audit(
    rows,
    summarise,
    name="confidence",
    title="One unit alone",
    question="How sure would the model be of its decision if it attended to one unit alone?",
    place=9,
    chart="confidence",
    tell=tell,
    is_of_readings=True,
)
