"""What one deleted unit costs the decision: drawn as attention has it, against drawn at random.

Erasing attention leaves a unit's traces in the states of the others; here the unit's words are
deleted and the text is read again. If attention lies where the decision comes from, a unit drawn by
attention costs more than any unit; where it costs less, the decision comes from elsewhere.
"""

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.audits.finding import Audit, Border, Finding, Measure, frame
from heedful.audits.tables import histogram, of_several_units
from heedful.importance import Importance
from heedful.models.reading import Reading
from heedful.models.rereading import probability, read_again
from heedful.models.verbs import AttentiveModel
from heedful.runs.randomness import keys, uniform_noise
from heedful.statistics.intervals import means, paired

DRAWS = 8
"""Units drawn of each document and in each way, with replacement."""


def rows(
    model: AttentiveModel, reading: Reading, importance: Importance, seed: int, draws: int = DRAWS
) -> pd.DataFrame:
    """The mean loss of the decision's probability when one unit is deleted.

    `attention` is over units drawn with their attention as probability, `random` over units drawn
    evenly; both draws use the same noise, keyed by (seed, instance).
    """
    noise = uniform_noise(keys(seed, reading.names, "deletion"), draws).to(reading.attention)
    even = reading.mask / reading.units[:, None]
    unit = torch.cat([_drawn(row, noise) for row in (reading.attention, even)], 1)
    kept = reading.unit_of_token[:, None] != unit[..., None]
    logits = read_again(model, reading.batch, kept, "removed")
    before = probability(reading.logits[:, None], reading.decision)
    lost = (
        (before - probability(logits, reading.decision))
        .view(len(unit), 2, draws)
        .mean(-1)
        .cpu()
        .numpy()
    )
    units = reading.units.cpu().numpy()
    return frame(reading.names, units=units, attention=lost[:, 0], random=lost[:, 1])


def _drawn(
    row: Float[Tensor, "batch unit"], noise: Float[Tensor, "batch draw"]
) -> Int[Tensor, "batch draw"]:
    """Units drawn with the row as probabilities, by inversion."""
    reached = row.cumsum(-1)
    last = (row > 0).long().cumsum(-1).argmax(-1, keepdim=True)  # rounding must not reach padding
    return torch.minimum(torch.searchsorted(reached, noise, right=True), last)


def summarise(rows: pd.DataFrame) -> Finding:
    """The finding over all rows; deleting a document's only unit says nothing."""
    rows, notes = of_several_units(rows)
    if not len(rows):
        nothing = "Nothing could be measured: no document has more than one unit."
        return AUDIT.finding(nothing, notes=notes)
    names = [str(name) for name in rows["instance"]]
    table = rows[["attention", "random"]].to_numpy(dtype=np.float64)
    attention, random = means(table, names, least=-1, most=1)
    more = paired(table[:, 0], table[:, 1], names, most=2)
    words = {"above": "more than", "below": "less than", "straddles": "no more or less than"}
    answer = (
        f"Deleting one unit drawn by attention costs the decision {100 * attention.value:.1f} "
        f"points of probability, {words[more.side(0)]} one drawn at random "
        f"({100 * random.value:.1f})."
    )
    return AUDIT.finding(
        answer=answer,
        measures=(
            Measure("cost of one deletion", attention, "attention"),
            Measure("cost of one deletion", random, "random"),
            Measure("cost of one deletion", more, "attention - random"),
        ),
        drawn={"attention": histogram(table[:, 0], low=-1.0)},
        notes=notes,
    )


AUDIT = Audit(
    rows,
    summarise,
    name="deletion",
    title="Deleting one unit",
    question="Does deleting a unit that attention shows cost the decision more than deleting any?",
    place=5,
    border=Border(
        "deletion",
        "deletion",
        "cost of one deletion",
        "attention - random",
        "Deleting an attended unit hurts at least as much as deleting any",
        contradicts=0.0,
        supports=0.0,
        sentence="Deleting one unit drawn by attention takes {value} of probability from the "
        "decision beyond what deleting one drawn at random takes.",
        is_veto=True,
    ),
)
