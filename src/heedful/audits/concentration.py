"""How concentrated attention is: there is little to explain with a flat row.

In a Transformer part of the row lies on special tokens, often most of it. What is called attention
in all audits is the rest, made to sum to one; how much was left out is said here.
"""

import numpy as np
import pandas as pd
import torch

from heedful.audits.finding import Audit, Finding, Measure, frame
from heedful.audits.tables import histogram, of_several_units, percent
from heedful.importance import Importance
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel
from heedful.statistics.divergence import entropy
from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import means

COLUMNS = ("entropy", "largest weight", "effective units", "effective share of units")
OUTSIDE, FIRST = "share on special tokens", "share on the first token"
SOME = 0.005
"""Below this share, special tokens are not worth a sentence."""


def rows(
    model: AttentiveModel, reading: Reading, importance: Importance, seed: int
) -> pd.DataFrame:
    """Entropy (as a share of its maximum), largest weight and effective number of units.

    The effective number is exp H: the n of a uniform row with the same entropy.
    """
    share, units = entropy(reading.attention, reading.mask), reading.units
    effective = torch.special.entr(reading.attention).sum(-1).exp()
    shares = {"outside": reading.outside, "first": reading.first}
    outside = {name: share.cpu().numpy() for name, share in shares.items() if share is not None}
    return frame(
        reading.names,
        units=units.cpu().numpy(),
        entropy=share.cpu().numpy(),
        largest_weight=reading.attention.amax(-1).cpu().numpy(),
        effective_units=effective.cpu().numpy(),
        **outside,
    )


def outside_in_words(share: Estimate, first: Estimate | None = None) -> str:
    """What special tokens hold, for people who expect all attention to be on words."""
    start = f" (the first token alone holds {percent(first)})" if first is not None else ""
    return (
        f"Of the audited attention {percent(share)} lies on what is no word of the text: special "
        f"tokens, or a prompt{start}. What is called attention here is the rest, made to sum to "
        "one."
    )


def summarise(rows: pd.DataFrame) -> Finding:
    """The finding over all rows; a document of one unit has nothing to concentrate on."""
    rows, notes = of_several_units(rows)
    if not len(rows):
        nothing = "Nothing could be measured: no document has more than one unit."
        return AUDIT.finding(nothing, notes=notes)
    table = rows[["entropy", "largest_weight", "effective_units"]].to_numpy(dtype=np.float64)
    share = table[:, 2] / rows["units"].to_numpy(dtype=np.float64)
    table = np.concatenate([table, share[:, None]], 1)
    columns: tuple[str, ...] = COLUMNS
    for column, name in (("outside", OUTSIDE), ("first", FIRST)):
        if column in rows:
            table = np.concatenate([table, rows[[column]].to_numpy(dtype=np.float64)], 1)
            columns += (name,)
    most = [np.inf if name == "effective units" else 1 for name in columns]
    estimates = means(table, list(rows["instance"]), least=0, most=most)
    found = dict(zip(columns, estimates, strict=True))
    return AUDIT.finding(
        measures=tuple(Measure(name, estimate) for name, estimate in found.items()),
        drawn={"entropy": histogram(table[:, 0]), "largest weight": histogram(table[:, 1])},
        notes=notes,
    )


def tell(finding: Finding) -> str:
    """Over how much of a text attention is spread, and what lies on no word."""
    found = {measure.name: measure.estimate for measure in finding.measures}
    answer = (
        f"On average attention is spread as if over {found['effective units'].value:.1f} units, "
        f"{percent(found['effective share of units'])} of a text; the largest weight is "
        f"{percent(found['largest weight'])} of all attention."
    )
    if OUTSIDE in found and found[OUTSIDE].value >= SOME:
        answer += f" {outside_in_words(found[OUTSIDE], found.get(FIRST))}"
    return answer


AUDIT = Audit(
    rows,
    summarise,
    name="concentration",
    title="Concentration",
    question="On how many units does attention really lie?",
    place=10,
    chart="concentration",
    tell=tell,
    is_of_readings=True,
)
