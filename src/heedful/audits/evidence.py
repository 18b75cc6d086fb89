"""Whether importance points at the evidence, where the corpus knows it."""

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.audits.finding import Audit, Finding, Measure
from heedful.audits.tables import Wide, counted, per_ranking, wide
from heedful.importance import Importance
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel
from heedful.statistics.agreement import average_precision, mass_on, token_f1
from heedful.statistics.estimates import Estimate

MEASURES = {"auprc": "AUPRC", "f1": "token F1", "mass": "mass on evidence"}


def rows(
    model: AttentiveModel, reading: Reading, importance: Importance, seed: int
) -> pd.DataFrame:
    """Agreement of each method with the known evidence of each document.

    AUPRC; F1 of as many top units as there are evidence units; the share of the importance that
    lies on evidence. A document without evidence has nan; a corpus without it has no rows.
    """
    known = reading.evidence
    if known is None or not importance:
        return pd.DataFrame()
    mask, found = reading.mask, known & reading.mask
    scores = list(importance.values())
    return per_ranking(
        reading.names,
        list(importance),
        units=reading.units[:, None],
        evidence_units=found.sum(-1, keepdim=True),
        auprc=torch.stack([average_precision(score, found, mask) for score in scores], 1),
        f1=torch.stack([token_f1(score, found, mask) for score in scores], 1),
        mass=torch.stack([share_on(score, found, mask) for score in scores], 1),
    )


def share_on(
    importance: Float[Tensor, "batch unit"],
    evidence: Bool[Tensor, "batch unit"],
    mask: Bool[Tensor, "batch unit"],
) -> Float[Tensor, " batch"]:
    """Share of the positive importance that lies on evidence; for attention, its mass there.

    Negative importance speaks against the decision and is left out; nan where none is positive.
    """
    positive = importance.double().clamp_min(0).masked_fill(~mask, 0)
    return mass_on(positive / positive.sum(-1, keepdim=True), evidence, mask)


def summarise(rows: pd.DataFrame) -> Finding:
    """The finding over all rows with evidence, beside a random order."""
    of = int(rows["instance"].nunique()) if len(rows) else 0
    rows = rows[rows["evidence_units"] > 0] if of else rows
    kept = int(rows["instance"].nunique()) if len(rows) else 0
    notes = counted(of - kept, of, "have no known evidence and are left out.")
    if not kept:
        nothing = "Nothing could be measured: no document has known evidence."
        return AUDIT.finding(nothing, notes=notes)
    everything = rows[rows["evidence_units"] == rows["units"]]["instance"].nunique()
    notes += counted(
        int(everything), of, "are evidence from the first unit to the last: any order finds it."
    )
    tables: dict[str, Wide] = {name: wide(rows, column, 0, 1) for column, name in MEASURES.items()}
    found = {name: table.means() for name, table in tables.items()}
    measures = [
        Measure(name, estimate, method)
        for name, table in tables.items()
        for method, estimate in (found[name] | table.minus("random")).items()
    ]
    return AUDIT.finding(
        measures=tuple(measures),
        drawn={"methods": tables["AUPRC"].rankings}
        | {name: _bars(estimates) for name, estimates in found.items()},
        notes=notes,
    )


def tell(finding: Finding) -> str:
    """How well attention finds the evidence, beside a random order and the best method."""
    auprc = finding.by_method("AUPRC")
    first = "attention" if "attention" in auprc else next(iter(auprc))
    answer = f"Ranked by {first}, the evidence is found with a precision (AUPRC) of {auprc[first]}"
    if "random" in auprc and first != "random":
        beyond = finding.get("AUPRC", f"{first} - random")
        side = beyond.side(0) if beyond is not None else "straddles"
        words = {"above": "better than", "below": "worse than", "straddles": "no better than"}
        answer += f", {words[side]} a random order ({auprc['random']})"
    best = max(auprc, key=lambda name: np.nan_to_num(auprc[name].value, nan=-1.0))
    if best != first:
        answer += f"; best is {best} ({auprc[best]})"
    return f"{answer}."


def _bars(estimates: dict[str, Estimate]) -> list[dict[str, float | None]]:
    stored = [estimate.to_json() for estimate in estimates.values()]
    return [{end: bar[end] for end in ("value", "low", "high")} for bar in stored]


AUDIT = Audit(
    rows,
    summarise,
    name="evidence",
    title="Agreement with known evidence",
    question="Does attention lie on the units that carry the label?",
    place=13,
    chart="evidence",
    needs=("evidence",),
    tell=tell,
)
