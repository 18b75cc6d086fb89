"""Figures of the dynamics study's tasks, and the table of E2.

Copying permutations (F3, E2), heads found by rejection sampling (F6), keywords (F7).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from heedful.report.panels import lines
from heedful.reproduction.study import Made
from heedful.reproduction.tables import row
from heedful.reproduction.view import View, Views
from heedful.statistics import over_seeds
from heedful.statistics.estimates import per_cent
from heedful.statistics.shares import exact_share
from heedful.studies.dynamics import task_steps
from heedful.studies.dynamics.keyword import PLACES
from heedful.studies.dynamics.printed import PAPER
from heedful.studies.dynamics.seeds import LEARNT
from heedful.studies.dynamics.task_steps import (
    curves,
    gamma,
    headed,
    needs_gamma,
    needs_heads,
    needs_reordered,
    needs_roles,
    search,
    uniform,
)
from heedful.studies.dynamics.tasks import COPYING, HEADS, KEYWORD, sizes, tasks


def share_learnt(table: pd.DataFrame, key: str, threshold: float, by: float) -> Any:
    """The share of runs above a threshold by a step, with its exact interval."""
    found = task_steps.reached(table, key, threshold, by)
    return exact_share(int(np.isfinite(found).sum()), len(found))


def _figure_3(views: Views) -> Made:
    panels = {
        "fixed set": ("one fixed set", "permutations"),
        "control": ("one fixed set", "surplus words"),
        "mixture": ("mixture of two sets", "permutations"),
        "mixture control": ("mixture of two sets", "surplus words"),
    }
    last = sizes(views.plan).training.steps

    def of(view: View) -> pd.DataFrame:
        parts = []
        for role, (panel, task) in panels.items():
            run = view.on(role).of(curves)
            parts.append(run[run["step"] <= last].assign(panel=panel, task=task))
        found = pd.concat(parts, ignore_index=True).rename(columns={"step": "training step"})
        return found[["panel", "task", "seed", "training step", "accuracy"]]

    table = pd.concat(views.each(of).values(), ignore_index=True)
    said = []
    for role in panels:
        run = views.on(role).of(curves)
        learnt = share_learnt(run, "seed", LEARNT, last)
        when = task_steps.reached(run, "seed", LEARNT).median()
        step = f"{when:.0f}" if np.isfinite(when) else "never"
        task = tasks(views.plan)[role].name
        said.append(f"{task}: {per_cent(learnt.value)} of seeds learnt, median step {step}")
    draw = partial(lines, x="training step", y="accuracy", hue="task", each="seed", panel="panel")
    return Made(table, draw, f"By step {last}: " + "; ".join(said) + ".")


def _figure_6(views: Views) -> Made:
    base = sizes(views.plan).bases[0]

    def of(view: View) -> pd.DataFrame:
        run = view.on("code").of(headed, base)
        found = run.rename(columns={"step": "training step", "kind": "heads"})
        return found[["heads", "draw", "training step", "accuracy"]]

    table = pd.concat(views.each(of).values(), ignore_index=True)
    searched = views.on("code").of(search, base)
    shares = [
        f"{kind} {per_cent(share_learnt(part, 'draw', LEARNT, np.inf).value)}"
        for kind, part in views.on("code").of(headed, base).groupby("kind", sort=False)
    ]
    said = (
        f"Models of {sizes(views.plan).heads} heads that learn: {', '.join(shares)}. The search "
        f"tried {searched['tried']} heads in {searched['seconds']:.0f} s (counted apart) and kept "
        f"{len(searched['good'])} good and {len(searched['bad'])} bad ones."
    )
    draw = partial(lines, x="training step", y="accuracy", hue="heads", each="draw")
    return Made(table, draw, said)


def _figure_7(views: Views) -> Made:
    def of(view: View) -> Iterator[dict[str, Any]]:
        for step, part in view[gamma(view.plan)].groupby("step"):
            for place in PLACES:
                keys = {"training step": step, "state": place}
                yield row(keys, **{"log-odds": over_seeds(part[place])})

    table = views.table(of)
    draw = partial(lines, x="training step", y="log-odds", hue="state")
    means = table.pivot(index="training step", columns="state", values="log-odds")
    said = f"{_orders(means, (sizes(views.plan).early, sizes(views.plan).late))} {overtaken(means)}"
    return Made(table, draw, f"{said} Log-odds are means over positive sequences and seeds.")


def _orders(means: pd.DataFrame, steps: Iterable[int]) -> str:
    """Which states say most at those steps: `at step 10 keyword 2.2, next 1.5, …`."""
    told = []
    at = means.to_dict("index")
    for step in steps:
        ranked = sorted(at[step].items(), key=lambda one: -one[1])
        states = ", ".join(f"{name} {value:.1f}" for name, value in ranked)
        told.append(f"at step {step} {states}")
    return f"What single states say, the most first: {'; '.join(told)}."


def overtaken(means: pd.DataFrame) -> str:
    """Since when the last state says more than the keyword's, in a sentence."""
    behind = means.index[means["last"] <= means["keyword"]]
    ahead = means.index[means.index > behind.max()] if len(behind) else means.index
    if not len(ahead):
        return "At the end the last state says no more than the keyword's."
    return f"From step {ahead[0]} on the last state says more than the keyword's."


def _table_e2(views: Views) -> Made:
    last = sizes(views.plan).training.steps

    def of(view: View) -> Iterator[dict[str, Any]]:
        for role in ("control", "reordered"):
            run, flat = view.on(role).of(curves), view.on(role).of(uniform)
            final = run.groupby("seed")["accuracy"].last()
            measured = {
                "learnt": share_learnt(run, "seed", LEARNT, last),
                "accuracy at the end": over_seeds(final, 0, 1),
                "uniform: probe agrees": over_seeds(flat["agreement"], 0, 1),
                "uniform: loss": over_seeds(flat["loss"], 0),
            }
            keys = {"task": tasks(view.plan)[role].name, "seeds": len(final)}
            yield row(keys, **measured)

    table = views.table(of)
    said = [
        f"{one['task']}: {per_cent(one['learnt'])} of seeds learnt" for _, one in table.iterrows()
    ]
    return Made(table, sentence=f"By step {last}: " + "; ".join(said) + ".")


ARTIFACTS = (
    PAPER.artifact(
        "F3",
        _figure_3,
        needs_roles("fixed set", "control", "mixture", "mixture control"),
        (COPYING,),
    ),
    PAPER.artifact("F6", _figure_6, needs_heads, (HEADS,)),
    PAPER.artifact("F7", _figure_7, needs_gamma, (KEYWORD,)),
    PAPER.artifact("E2", _table_e2, needs_reordered, (COPYING,)),
)
