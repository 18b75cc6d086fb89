"""The claims of the dynamics paper, on corpora and on generated tasks.

See docs/studies/dynamics.md, "Claims".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from heedful.reproduction.ledger import NotMeasurable, Parts, each_unchanged
from heedful.reproduction.measures import exact
from heedful.reproduction.results import Skipped, Step
from heedful.reproduction.study import Plan
from heedful.reproduction.view import View
from heedful.statistics import Estimate, over_seeds, quantile
from heedful.statistics.estimates import per_cent
from heedful.statistics.seeds import extent
from heedful.statistics.shares import apart, exact_share, to_the_power
from heedful.studies.dynamics import (
    corpora,
    examples,
    measures,
    steps,
    task_figures,
    task_steps,
    tasks,
    translation,
)
from heedful.studies.dynamics.printed import PAPER
from heedful.studies.dynamics.seeds import LEARNT
from heedful.studies.dynamics.tables import ROWS, needs
from heedful.studies.dynamics.tasks import COPYING, HEADS, KEYWORD

DEV, BOTH = needs(), needs("train")
SEVEN = (*corpora.SIX, "sms")


def _with_vectors(plan: Plan, corpus: str) -> list[Any]:
    step = steps.with_vectors(plan, corpus)
    return [steps.compared(plan, corpus)] + ([] if step is None else [step])


def _tables_agree(view: View) -> Parts | NotMeasurable:
    if view.corpus == examples.TOY:
        return Parts(examples.worked_example())
    found = view.of(steps.tables)
    return {"largest difference": exact(found["largest difference"], found["entries"])}


def _optimal(view: View) -> Parts:
    if view.corpus != examples.TOY:
        return translation.sits_on_the_largest(view)
    found = examples.counterexample()
    wanted = {"α1": 0.0, "α2": 0.5, "α3": 0.5}
    distance = max(abs(found[name] - value) for name, value in wanted.items())
    return {"distance from (0, .5, .5)": exact(distance, 3)}


def _pairs(plan: Plan, corpus: str) -> int:
    """Pairs of trainings that share none."""
    return len(steps.runs(plan, corpus).uniforms)


def _share(table: pd.DataFrame, by: float, threshold: float = LEARNT, key: str = "seed") -> Any:
    return task_figures.share_learnt(table, key, threshold, by)


def _later(slow: pd.DataFrame, fast: pd.DataFrame, by: float) -> Estimate:
    """How many steps later a seed reaches .95 on one task than on another, in the median.

    Never counts as one step too late.
    """
    one, two = (
        task_steps.reached(table, "seed", LEARNT, by).replace(np.inf, by + 1).to_numpy()
        for table in (slow, fast)
    )
    return quantile(one - two, 0.5)


def _fails_and_is_slower(slow: str, fast: str) -> Any:
    def measure(view: View) -> Parts:
        by = tasks.sizes(view.plan).training.steps
        one, two = (view.on(role).of(task_steps.curves) for role in (slow, fast))
        return {
            "learnt": _share(one, by),
            "control learnt": _share(two, by),
            "median step, minus control": _later(one, two, by),
        }

    return measure


def _proxy_needs(plan: Plan, corpus: str) -> list[Step[Any]]:
    return [task_steps.proxy(plan, role) for role in ("fixed set", "control", "mixture")]


def _proxy(view: View) -> Parts:
    fixed, control, mixture = (view[step] for step in _proxy_needs(view.plan, view.corpus))

    return {
        "spread over positions": extent(fixed["spread"]),
        "the control's spread": extent(control["spread"]),
        "loss above log n": extent(fixed["loss"] - fixed["bound"]),
        "mixture: spread": extent(mixture["spread"]),
        "mixture: other block": extent(mixture["across"]),
    }


def _heads(view: View, name: str, base: int) -> Parts | NotMeasurable:
    table = view.on(name).of(task_steps.headed, base)
    for kind in task_steps.KINDS:
        if kind not in set(table["kind"]):
            return NotMeasurable(f"the search found too few heads for {kind!r}")
    shares = _shares(table)
    return _order(shares) | {kind: shares[kind] for kind in ("one good", "random")}


def _eight_heads(view: View) -> Parts | NotMeasurable:
    return _heads(view, "code", tasks.sizes(view.plan).bases[0])


def _few_needs(plan: Plan, corpus: str) -> list[Step[Any]]:
    base = tasks.sizes(plan).bases[0]
    few = [task_steps.headed(plan, "code", base, heads) for heads in tasks.sizes(plan).few_heads]
    return [*task_steps.needs_heads(plan, corpus), *few]


def _more_heads(view: View) -> Parts:
    base = tasks.sizes(view.plan).bases[0]
    tried = view.on("code").of(task_steps.search, base)["reached"]
    alone = exact_share(len(tried) - sum(tried), len(tried))
    here = tasks.sizes(view.plan)
    found = Parts()
    for heads in (*here.few_heads, here.heads):
        asked = None if heads == here.heads else heads
        table = view.on("code").of(task_steps.headed, base, asked)
        runs = task_steps.reached(table[table["kind"] == "random"], "draw", LEARNT)
        failed = exact_share(int(np.isinf(runs).sum()), len(runs))
        found[f"failures of {heads} minus q^{heads}"] = apart(failed, to_the_power(alone, heads))
    found["failures of 1 minus of most"] = apart(alone, failed)
    return found


def _locality(view: View) -> Parts:
    table, here = view[task_steps.gamma(view.plan)], tasks.sizes(view.plan)
    early = table[table["step"] == here.early]
    late = table[table["step"] == here.late]

    def gap(part: pd.DataFrame, one: str, two: str) -> Estimate:
        return over_seeds(part[one] - part[two])

    def ratio(part: pd.DataFrame, one: str, two: str, scale: str) -> Estimate:
        return over_seeds((part[one] - part[two]) / part[scale])

    return {
        "early: keyword minus next": gap(early, "keyword", "next"),
        "early: next minus mean": gap(early, "next", "mean"),
        "early: (mean minus last) / keyword": ratio(early, "mean", "last", "keyword"),
        "late: last minus next": gap(late, "last", "next"),
        "late: next minus mean": gap(late, "next", "mean"),
        "late: (keyword minus mean) / last": ratio(late, "keyword", "mean", "last"),
    }


def _reordering(view: View) -> Parts:
    by = tasks.sizes(view.plan).training.steps
    copy, reorder = (view.on(role).of(task_steps.curves) for role in ("control", "reordered"))
    flat, turned = (view.on(role).of(task_steps.uniform) for role in ("control", "reordered"))
    return {
        "copying above .99": _share(copy, by, 0.99),
        "reordering above .95": _share(reorder, by),
        "uniform probe, reordering minus copying": over_seeds(
            turned["agreement"] - flat["agreement"]
        ),
        "uniform loss, reordering minus copying": over_seeds(turned["loss"] - flat["loss"]),
    }


def _stopping(view: View) -> Parts:
    stops = tasks.sizes(view.plan).stops
    fixed, control = (view.on(role).of(task_steps.curves) for role in ("fixed set", "control"))
    shares = {stop: _share(fixed, stop) for stop in stops}
    told = ", ".join(f"{per_cent(share.value)} by {stop:,}" for stop, share in shares.items())
    return {
        f"learnt by the last stop minus by the first ({told})": apart(
            shares[stops[-1]], shares[stops[0]]
        ),
        "median step, minus control": _later(fixed, control, stops[-1]),
    }


def _combinations(plan: Plan) -> Iterator[tuple[str, int]]:
    for name in tasks.sizes(plan).search:
        for base in tasks.sizes(plan).bases:
            yield name, base


def _every_needs(plan: Plan, corpus: str) -> list[Step[Any]]:
    return [
        step(plan, name, base)
        for name, base in _combinations(plan)
        for step in (task_steps.search, task_steps.headed)
    ]


def _every_base(view: View) -> Parts | NotMeasurable:
    """The order of the three kinds on the first base, and over all bases of either form.

    The forms stand apart: together, one that has the order would hide one that has none.
    """
    whole: dict[tuple[str, int], pd.DataFrame] = {}
    lacking: dict[tuple[str, int], str] = {}
    for form, base in _combinations(view.plan):
        try:
            table = view.on(form).of(task_steps.headed, base)
        except Skipped as skipped:
            lacking[form, base] = skipped.reason
            continue
        if set(table["kind"]) == set(task_steps.KINDS):
            whole[form, base] = table
        else:
            lacking[form, base] = "the search found no good or no bad head"
    first = ("code", tasks.sizes(view.plan).bases[0])
    if first not in whole or len(whole) + len(lacking) < 2:
        wanted = "needs several bases or forms with both good and bad heads"
        return NotMeasurable("; ".join([wanted, *dict.fromkeys(lacking.values())]))
    parts = Parts()
    for form in dict.fromkeys(name for name, _ in (*whole, *lacking)):
        where = f" in the {form}'s form"
        missing = {base: why for (name, base), why in lacking.items() if name == form}
        if missing:
            told = "; ".join(f"base {base}: {why}" for base, why in missing.items())
            parts[f"all bases{where}"] = NotMeasurable(told)
            continue
        tables = [table for (name, _), table in whole.items() if name == form]
        pooled = pd.concat([t.assign(draw=t["draw"] + 1000 * i) for i, t in enumerate(tables)])
        parts |= each_unchanged(_order(_shares(whole[first])), _order(_shares(pooled)), where)
    return parts


def _shares(table: pd.DataFrame) -> dict[str, Estimate]:
    """The share of models that learn, of each kind of heads."""
    return {
        kind: _share(table[table["kind"] == kind], np.inf, key="draw") for kind in task_steps.KINDS
    }


def _order(shares: dict[str, Estimate]) -> Parts:
    return Parts(
        {
            "one good minus all bad": apart(shares["one good"], shares["all bad"]),
            "random minus all bad": apart(shares["random"], shares["all bad"]),
        }
    )


def _seeds(plan: Plan, corpus: str) -> int:
    """Trainings of a task."""
    return len(tasks.seeds(plan))


def _draws(plan: Plan, corpus: str) -> int:
    """Models of one kind of heads."""
    return tasks.sizes(plan).draws


_claim = partial(PAPER.claim, seeds=_pairs)
CLAIMS = (
    _claim("DYN-1", measures.above_chance("attention~uniform"), DEV, ROWS),
    _claim("DYN-2", measures.above_chance("attention~probe"), DEV, ROWS),
    _claim("DYN-3", measures.above_chance("proxy~uniform"), DEV, ROWS),
    _claim("DYN-4", measures.above_chance("saliency~uniform", "attention~saliency"), DEV, ROWS),
    _claim(
        "DYN-5",
        measures.well_into_training,
        DEV,
        ROWS,
        seeds=lambda plan, corpus: len(steps.runs(plan, corpus).comparisons),
    ),
    _claim("DYN-6", measures.ranks_agree, DEV, ROWS),
    _claim("DYN-7", measures.on_training_data, BOTH, ROWS),
    _claim("DYN-8", measures.frozen_differs, DEV, corpora.SIX),
    _claim("DYN-9", measures.rises_and_falls, DEV, ROWS),
    _claim(
        "DYN-10",
        measures.proxy_is_regression,
        lambda plan, corpus: [*DEV(plan, corpus), steps.words(plan, corpus)],
        corpora.SIX,
    ),
    PAPER.claim(
        "DYN-11",
        _fails_and_is_slower("fixed set", "control"),
        task_steps.needs_roles("fixed set", "control"),
        (COPYING,),
        seeds=_seeds,
    ),
    PAPER.claim(
        "DYN-12",
        _fails_and_is_slower("mixture", "mixture control"),
        task_steps.needs_roles("mixture", "mixture control"),
        (COPYING,),
        seeds=_seeds,
    ),
    PAPER.claim("DYN-13", _proxy, _proxy_needs, (COPYING,)),
    PAPER.claim(
        "DYN-14", examples.derivative, lambda plan, corpus: [examples.rates(plan)], examples.ONLY
    ),
    PAPER.claim(
        "DYN-15",
        _tables_agree,
        lambda plan, corpus: [] if corpus == examples.TOY else [steps.tables(plan, corpus)],
        (examples.TOY, *ROWS),
    ),
    PAPER.claim("DYN-16", _eight_heads, task_steps.needs_heads, (HEADS,), seeds=_draws),
    PAPER.claim("DYN-17", _more_heads, _few_needs, (HEADS,), seeds=_draws),
    PAPER.claim("DYN-18", _locality, task_steps.needs_gamma, (KEYWORD,), seeds=_seeds),
    PAPER.claim("DYN-19", _reordering, task_steps.needs_reordered, (COPYING,), seeds=_seeds),
    _claim(
        "DYN-20",
        _optimal,
        lambda plan, corpus: [] if corpus == examples.TOY else [translation.optimal(plan, corpus)],
        (examples.TOY, *translation.LINEAR_ON),
    ),
    _claim("DYN-21", translation.as_good, translation.needs_linear, translation.LINEAR_ON),
    PAPER.claim("DYN-22", None, DEV, SEVEN, measure_all=measures.seeds_disagree),
    _claim("DYN-A1", measures.chosen_elsewhere, DEV, ROWS),
    _claim("DYN-A2", measures.as_literally_written, DEV, ROWS),
    _claim("DYN-A3", measures.without_ties_and_marks, DEV, ROWS),
    _claim("DYN-A4", measures.vectors_and_sign, _with_vectors, corpora.SIX),
    PAPER.claim(
        "DYN-A5",
        _stopping,
        task_steps.needs_roles("fixed set", "control"),
        (COPYING,),
        seeds=_seeds,
    ),
    PAPER.claim("DYN-A6", _every_base, _every_needs, (HEADS,), seeds=_draws),
    PAPER.claim(
        "DYN-A7", measures.seeds_move, DEV, corpora.SIX, measure_all=measures.seeds_move_anywhere
    ),
)
