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

from heedful.audits.finding import Finding, Measure, frame
from heedful.audits.input_erasure import read_again
from heedful.audits.tables import counted, histogram, percent
from heedful.importance import Importance
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel
from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import bootstrap, means

QUESTION = "Do the units that attention shows say the decision by themselves?"
UNITS_AT_ONCE = 64
"""Sentences of a document taken out at once; words are read from a list without repeats."""


def rows(
    model: AttentiveModel, reading: Reading, importance: Importance, seed: int
) -> pd.DataFrame:
    """How much attention lies on units that, read alone, give the document's decision.

    `attended` is the attention on them, `units_alike` their share of the units, `top` whether the
    most attended unit is one of them.
    """
    alike = read_units(model, reading).argmax(-1) == reading.decision[:, None]
    alike = (alike & reading.mask).double()
    top = reading.attention.argmax(-1, keepdim=True)
    return frame(
        reading.names,
        units=reading.units.cpu().numpy(),
        attended=(alike * reading.attention).sum(-1).cpu().numpy(),
        units_alike=(alike.sum(-1) / reading.units).cpu().numpy(),
        top=alike.gather(1, top)[:, 0].cpu().numpy(),
    )


def read_units(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit class"]:
    """Logits of every unit as a text of its own; at padding those of whatever stands there."""
    batch, units = reading.batch, reading.mask.shape[1]
    if reading.mask.shape == batch.mask.shape and _is_identity(reading.unit_of_token):
        words, place = batch.ids.unique(return_inverse=True)
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
    every = len(rows)
    rows = rows[rows["units"] > 1] if every else rows
    notes = counted(every - len(rows), every, "have one unit and are left out.")
    if not len(rows):
        nothing = "Nothing could be measured: no document has more than one unit."
        return Finding("read-alone", QUESTION, nothing, (), "measures", {}, notes)
    names = [str(name) for name in rows["instance"]]
    table = rows[["attended", "units_alike", "top"]].to_numpy(dtype=np.float64)
    attended, alike, top = means(table, names)
    told = beyond_chance(table[:, 0], table[:, 1], names)
    answer = (
        f"{percent(attended)} of the attention lies on units that, read alone, give the same "
        f"decision; of all units {percent(alike)} do."
    )
    return Finding(
        audit="read-alone",
        question=QUESTION,
        answer=answer,
        measures=(
            Measure("told by attended units", told),
            Measure("attention on units that say the decision", attended),
            Measure("units that say the decision", alike),
            Measure("top unit says the decision", top),
        ),
        chart="measures",
        drawn={"attended": histogram(table[:, 0])},
        notes=notes,
    )


def beyond_chance(
    attended: Float64[np.ndarray, "instance"],
    alike: Float64[np.ndarray, "instance"],
    names: list[str],
) -> Estimate:
    """(attended - alike) / (1 - alike), each a mean: 1 all that attention could, 0 as any unit.

    Below 0 where attention avoids the units that say the decision; undefined where all say it.
    """

    def share(
        weights: Float64[np.ndarray, "replicate instance"],
    ) -> Float64[np.ndarray, "replicate"]:
        room = weights @ (1 - alike)
        found = np.full(len(weights), np.nan)
        np.divide(weights @ (attended - alike), room, out=found, where=room > 1e-9)
        return found

    return bootstrap(share, names, method="bca")
