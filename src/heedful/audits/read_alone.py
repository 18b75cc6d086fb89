"""Whether the attended units, read without the rest of the text, say what was decided.

Attending to one unit alone asks its state, which an encoder may have told of the others; reading it
alone asks the unit itself. A model that attends to a full stop where its encoder left the answer
passes every test on its attention and fails this one.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from heedful.audits.finding import Audit, Border, Finding, Measure, frame
from heedful.audits.tables import histogram, of_several_units, percent
from heedful.importance import Importance
from heedful.models.huggingface.pieces import FIRST
from heedful.models.reading import Reading
from heedful.models.rereading import read_again
from heedful.models.verbs import AttentiveModel
from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import bootstrap, means

UNITS_AT_ONCE = 64
"""Sentences of a document taken out at once; words are read from a list without repeats."""


def rows(
    model: AttentiveModel, reading: Reading, importance: Importance, seed: int
) -> pd.DataFrame:
    """What units, read alone, say of the document's decision.

    The probability of the decision: `attended` weighs units by attention, `any_unit` evenly, `top`
    is the most attended unit's, `text` that of the whole text.
    """
    decided = reading.decision[:, None]
    index = decided[..., None].expand(-1, reading.mask.shape[1], 1)
    said = read_units(model, reading).softmax(-1).gather(2, index)[..., 0]
    said = said.masked_fill(~reading.mask, 0)
    top = reading.attention.argmax(-1, keepdim=True)
    return frame(
        reading.names,
        units=reading.units.cpu().numpy(),
        attended=(said * reading.attention).sum(-1).cpu().numpy(),
        any_unit=(said.sum(-1) / reading.units).cpu().numpy(),
        top=said.gather(1, top)[:, 0].cpu().numpy(),
        text=reading.logits.softmax(-1).gather(1, decided)[:, 0].cpu().numpy(),
    )


def read_units(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit class"]:
    """Logits of every unit as a text of its own; at padding those of whatever stands there."""
    batch, units = reading.batch, reading.mask.shape[1]
    is_pair = bool((batch.sentence >= FIRST).any())
    is_flat = reading.mask.shape == batch.mask.shape and _is_identity(reading.unit_of_token)
    if is_flat and not is_pair:  # a word of a pair is read as part of one
        words, place = torch.unique(batch.ids, return_inverse=True)
        one = torch.ones_like(words, dtype=torch.bool)[:, None]
        listed = replace(
            batch,
            ids=words[:, None],
            mask=one,
            labels=torch.full_like(words, -1),
            sentence=torch.zeros_like(words)[:, None],
            names=tuple(map(str, words.tolist())),
            evidence=None,
            documents=None,
        )
        return read_again(model, listed, one[:, None], "replaced")[place, 0]
    parts = []
    for start in range(0, units, UNITS_AT_ONCE):
        unit = torch.arange(start, min(start + UNITS_AT_ONCE, units), device=batch.mask.device)
        kept = reading.unit_of_token[:, None] == unit[:, None]
        parts.append(read_again(model, batch, kept, "removed"))
    return torch.cat(parts, 1)


def _is_identity(unit_of_token: Int[Tensor, "batch token"]) -> bool:
    position = torch.arange(unit_of_token.shape[1], device=unit_of_token.device)
    return bool((unit_of_token == position).all())


def summarise(rows: pd.DataFrame) -> Finding:
    """The finding over all rows; a document of one unit has nothing to choose."""
    rows, notes = of_several_units(rows)
    if not len(rows):
        nothing = "Nothing could be measured: no document has more than one unit."
        return AUDIT.finding(nothing, notes=notes)
    names = [str(name) for name in rows["instance"]]
    table = rows[["attended", "any_unit", "top", "text"]].to_numpy(dtype=np.float64)
    attended, any_unit, top, text = means(table, names, least=0, most=1)
    told = beyond_any(table[:, 0], table[:, 1], table[:, 3], names)
    answer = (
        f"Read alone, an attended unit gives the decision a probability of {percent(attended)}, "
        f"any unit {percent(any_unit)}, and the whole text {percent(text)}."
    )
    name = "probability of the decision, read alone"
    return AUDIT.finding(
        answer=answer,
        measures=(
            Measure("told by attended units", told),
            Measure(name, attended, "attended units"),
            Measure(name, any_unit, "any unit"),
            Measure(name, top, "top unit"),
            Measure(name, text, "whole text"),
        ),
        drawn={"attended": histogram(table[:, 0])},
        notes=notes,
    )


def beyond_any(
    attended: Float64[np.ndarray, "instance"],
    any_unit: Float64[np.ndarray, "instance"],
    text: Float64[np.ndarray, "instance"],
    names: list[str],
) -> Estimate:
    """(attended - any unit) / (text - any unit), each a mean: 1 as the whole text, 0 as any unit.

    Below 0 where attention avoids the units that say the decision; undefined where the whole text
    says no more than any unit does.
    """

    def share(
        weights: Float64[np.ndarray, "replicate instance"],
    ) -> Float64[np.ndarray, "replicate"]:
        room = weights @ (text - any_unit)
        found = np.full(len(weights), np.nan)
        enough = room > 1e-6 * weights.sum(1)
        np.divide(weights @ (attended - any_unit), room, out=found, where=enough)
        return found

    return bootstrap(share, names, method="bca")


AUDIT = Audit(
    rows,
    summarise,
    name="read-alone",
    title="Units read alone",
    question="Do the units that attention shows say the decision by themselves?",
    place=8,
    border=Border(
        "told",
        "read-alone",
        "told by attended units",
        "",
        "The attended units say the decision themselves",
        contradicts=0.2,
        supports=0.25,
        sentence="Read alone, attended units go {value} of the way from what any unit says of the "
        "decision to what the whole text says.",
    ),
)
