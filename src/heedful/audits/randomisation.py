"""Whether an explanation reads the model at all: its order before and after weights are drawn anew.

An explanation that ranks the units of a text alike when the weights it explains are gone speaks of
the text, not of the model (Adebayo et al. 2018, §3). Parts are scrambled from the top down, each
step including those above; the class explained stays the decision of the model as it was.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from heedful.audits.effort import is_known
from heedful.audits.finding import Audit, Finding, Measure, frame
from heedful.audits.tables import Wide, counted, of_several_units
from heedful.importance import METHODS, Importance, explain
from heedful.models.reading import Reading
from heedful.models.scrambled import parts_from_top, scrambled
from heedful.models.verbs import AttentiveModel, read
from heedful.statistics.agreement import kendall_tau_b
from heedful.statistics.estimates import Estimate

STEPS = 4
"""Cuts between scrambling the head alone and scrambling everything."""
MOST = 50
"""Documents asked about: with so many a mean τ over texts of twenty words is known to 0.05."""
KEPT = "order kept"
"""Kendall's τ between a method's importances on the model and on one without any of its weights."""
KEPT_WIDTH = 0.1
"""Half of an interval of τ that is as short as anyone needs."""
MUCH = 0.5
"""From here on an order counts as kept in the answer's words."""


def rows(
    model: AttentiveModel, reading: Reading, importance: Importance, seed: int, steps: int = STEPS
) -> pd.DataFrame:
    """Kendall's τ of each method's importances with those of the scrambled model, step by step.

    `random` is compared with another random order: what no relation at all gives. A model that is
    not a torch module has no weights to scramble, and no rows.
    """
    names = [name for name in importance if name in METHODS]
    if not names or not isinstance(model, nn.Module):
        return pd.DataFrame()
    parts = parts_from_top(model)
    cuts = sorted({round(cut) for cut in np.linspace(1, len(parts), min(steps, len(parts)))})
    found = []
    for step, cut in enumerate(cuts):
        with scrambled(parts[:cut], seed):
            # The class stays: what another class rests on is another question.
            other = replace(read(model, reading.batch), explained=reading.decision)
            again = explain(model, other, names, seed + 1)
        for name in names:
            tau = kendall_tau_b(importance[name].double(), again[name].double(), reading.mask)
            found.append(_tidy(reading, name, step, parts[cut - 1].name, tau))
    return pd.concat(found, ignore_index=True)


def _tidy(
    reading: Reading, ranking: str, step: int, down_to: str, tau: torch.Tensor
) -> pd.DataFrame:
    count = len(reading.names)
    return frame(
        reading.names,
        ranking=np.full(count, ranking, dtype=object),
        step=np.full(count, step),
        down_to=np.full(count, down_to, dtype=object),
        units=reading.units.cpu().numpy(),
        tau=tau.cpu().numpy(),
    )


def summarise(rows: pd.DataFrame) -> Finding:
    """The finding over all rows; documents with one unit have one order."""
    every = int(rows["instance"].nunique()) if len(rows) else 0
    rows, notes = of_several_units(rows)
    if not len(rows):
        nothing = "Nothing could be measured: it takes weights to draw anew and two units."
        return AUDIT.finding(nothing, notes=notes)
    last = int(rows["step"].max())
    measures, lines = [], {}
    for step in range(last + 1):
        here = rows[rows["step"] == step]
        down_to = str(here["down_to"].iloc[0])
        order = list(dict.fromkeys(here["ranking"]))
        by_ranking = here.pivot(index="instance", columns="ranking", values="tau")[order]
        table = Wide(by_ranking, -1, 1)
        lines[down_to] = table.means()
        if step == last:
            beside = table.minus("random")
            measures += [Measure(KEPT, e, m) for m, e in (lines[down_to] | beside).items()]
        else:
            name = f"{KEPT}, down to {down_to}"
            measures += [Measure(name, e, m) for m, e in lines[down_to].items()]
    undefined = rows["tau"].isna().groupby(rows["instance"]).any().sum()
    notes += counted(int(undefined), every, "have units that a method puts all level; no τ there.")
    return AUDIT.finding(
        answer=_answer(lines[list(lines)[-1]]),
        measures=tuple(measures),
        drawn=_drawn(lines),
        notes=(
            "The entries of each weight are put in random order, from the head down to the inputs; "
            "the class explained stays.",
            *notes,
        ),
    )


def settled(found: Finding) -> bool:
    """Whether each method's order is known to be kept for the most part, or not to be."""
    return all(is_known(e, MUCH, KEPT_WIDTH) for e in found.by_method(KEPT).values())


def _answer(kept: dict[str, Estimate]) -> str:
    known = {m: e for m, e in kept.items() if m != "random" and not np.isnan(e.value)}
    if not known:
        return "Nothing could be told: no method puts the units of a document in an order."
    first = "attention" if "attention" in known else next(iter(known))
    answer = f"With all weights drawn anew, {first} keeps its order with a Kendall τ of "
    answer += f"{known[first]} (1: it never looked at the weights, 0: nothing is left)"
    blind = [m for m, e in known.items() if e.side(MUCH) == "above"]
    if blind:
        return f"{answer}; {', '.join(blind)} would say much the same of any model."
    most = max(known, key=lambda method: known[method].value)
    return f"{answer}." if most == first else f"{answer}; most is kept by {most}, {known[most]}."


def _drawn(lines: dict[str, dict[str, Estimate]]) -> dict[str, Any]:
    """For each method one estimate per step."""
    methods = list(next(iter(lines.values())))
    return {
        "methods": methods,
        "down to": list(lines),
        "τ": {m: [found[m].to_json() for found in lines.values()] for m in methods},
    }


AUDIT = Audit(
    rows,
    summarise,
    name="randomisation",
    title="Weights drawn anew",
    question="Does an explanation change when the weights of the model are drawn anew?",
    place=7,
    chart="randomisation",
    most=MOST,
    of_named=True,
    settled=settled,
)
