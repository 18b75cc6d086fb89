"""Whether the unit a method names speaks for the decision as it claims (Liu et al. 2022, §3).

An importance has a sign: above 0 the unit is said to speak for the decision, below 0 against it;
attention claims that every unit speaks for it. The unit with the largest importance, whatever its
sign, is deleted and the text is read again:

    effect = p(y | text) - p(y | text without it)

with y the decision on the whole text; the claim is violated where the signs differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from heedful.audits.finding import Audit, Finding, Measure
from heedful.audits.tables import Wide, of_several_units, per_ranking, percent, wide
from heedful.importance import Importance
from heedful.models.reading import Reading
from heedful.models.rereading import probability, read_again
from heedful.models.verbs import AttentiveModel
from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import bootstraps
from heedful.statistics.sums import OfSums

NOTHING = 1e-6
"""A change of probability below this is rounding: the unit speaks neither for nor against."""


def rows(
    model: AttentiveModel, reading: Reading, importance: Importance, seed: int
) -> pd.DataFrame:
    """What each method claims of its first unit (1 for, -1 against), and what deleting it does.

    `violated` is nan where the method claims nothing or deleting changes nothing.
    """
    if not importance:
        return pd.DataFrame()
    scores = torch.stack([score.double() for score in importance.values()], 1)
    unit = _strongest(scores, reading)
    claim = scores.gather(2, unit[..., None])[..., 0].sign()
    kept = reading.unit_of_token[:, None] != unit[..., None]
    logits = read_again(model, reading.batch, kept, "removed")
    before = probability(reading.logits[:, None], reading.decision)
    effect = before - probability(logits, reading.decision)
    is_open = (claim == 0) | (effect.abs() < NOTHING)
    violated = (claim * effect < 0).double().masked_fill(is_open, torch.nan)
    return per_ranking(
        reading.names,
        list(importance),
        units=reading.units[:, None],
        claim=claim,
        effect=effect,
        violated=violated,
    )


def _strongest(
    scores: Float[Tensor, "batch method unit"], reading: Reading
) -> Int[Tensor, "batch method"]:
    """The unit with the largest importance of either sign; the first of them on ties.

    Importances that add up to 0 tie a text's only two units up to rounding, hence the margin.
    """
    size = scores.abs().nan_to_num(nan=0.0).masked_fill(~reading.mask[:, None], -1.0)
    return (size >= (1 - 1e-9) * size.amax(-1, keepdim=True)).int().argmax(-1)


def summarise(rows: pd.DataFrame) -> Finding:
    """The finding over all rows; deleting a document's only unit says nothing."""
    rows, notes = of_several_units(rows)
    if not len(rows):
        nothing = "Nothing could be measured: no document has more than one unit."
        return AUDIT.finding(nothing, notes=notes)
    violated, claim, effect = (
        wide(rows, column, least, 1)
        for column, least in (("violated", 0), ("claim", -1), ("effect", -1))
    )
    as_claimed = Wide(claim.table * effect.table, -1, 1)
    found = violated.means()
    chance = by_chance(claim, violated)
    beside = violated.minus("random")
    told = as_claimed.means()
    measures = [Measure("violations", e, m) for m, e in (found | beside).items()]
    measures += [Measure("violations by chance", e, m) for m, e in chance.items()]
    measures += [
        Measure("effect as claimed", e, m) for m, e in (told | as_claimed.minus("random")).items()
    ]
    return AUDIT.finding(
        measures=tuple(measures),
        drawn={"methods": violated.rankings}
        | {"violations": _bars(found), "effect as claimed": _bars(told)}
        | {"chance": [e.to_json()["value"] for e in chance.values()]},
        notes=notes,
    )


def by_chance(claim: Wide, violated: Wide) -> dict[str, Estimate]:
    """Violations that claims and effects would have if they knew nothing of each other.

    With q the share of units claimed to speak for the decision and r the share that do,
    q (1 - r) + (1 - q) r. A method that claims the same of every unit cannot do better.
    """
    is_known = ~np.isnan(violated.table.to_numpy(dtype=np.float64))
    claims_for = claim.table.to_numpy(dtype=np.float64) > 0
    is_violated = np.nan_to_num(violated.table.to_numpy(dtype=np.float64)) > 0
    speaks_for = claims_for != is_violated

    def finish(
        sums: Float64[np.ndarray, "replicate column"],
    ) -> Float64[np.ndarray, "replicate method"]:
        total, *parts = np.split(sums, 3, axis=1)
        undefined = np.full(total.shape, np.nan)
        q, r = (np.divide(one, total, out=undefined.copy(), where=total > 0) for one in parts)
        return np.asarray(q * (1 - r) + (1 - q) * r)

    values = np.concatenate([is_known, claims_for & is_known, speaks_for & is_known], 1)
    found = bootstraps(OfSums(values.astype(np.float64), finish), violated.names)
    return dict(zip(violated.rankings, found, strict=True))


def tell(found: Finding) -> str:
    """How often the first unit belies its claim, beside a random unit's and the best method's."""
    known = {m: e for m, e in found.by_method("violations").items() if not np.isnan(e.value)}
    if not known:
        return "Nothing could be told: deleting one unit never changes the decision's probability."
    first = "attention" if "attention" in known else next(iter(known))
    answer = f"The unit that {first} puts first speaks against its claim in {percent(known[first])}"
    answer += " of the documents"
    if "random" in known and first != "random":
        words = {"above": "more often than", "below": "less often than"}
        beside = found.get("violations", f"{first} - random")
        side = "straddles" if beside is None else beside.side(0)
        often = words.get(side, "not clearly more or less often than")
        answer += f", {often} a random unit does ({percent(known['random'])})"
    best = min(known, key=lambda method: known[method].value)
    if best not in (first, "random"):
        answer += f"; least often by {best}, {percent(known[best])}"
    return f"{answer}."


def _bars(estimates: dict[str, Estimate]) -> Sequence[dict[str, Any]]:
    return [estimate.to_json() for estimate in estimates.values()]


AUDIT = Audit(
    rows,
    summarise,
    name="violation",
    title="Claims belied",
    question="Does the unit that an explanation puts first speak for the decision as it claims?",
    place=6,
    chart="violation",
    tell=tell,
)
