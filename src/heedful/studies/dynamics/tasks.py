"""The tasks of the dynamics study that need no corpus: steps, figures and the table of E2.

Copying permutations (F3, E2), heads found by rejection sampling (F6), keywords (F7). Smoke scale
has shorter sequences and narrower models; the contrasts are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from heedful.corpora.tasks import Copying, Keyword
from heedful.models.translator import TranslatorConfig, code_copying_config, copying_config
from heedful.reproduction.results import Step
from heedful.reproduction.study import Artifact, Made, Plan, Scale, Source
from heedful.reproduction.tables import row
from heedful.reproduction.view import View, Views
from heedful.statistics import over_seeds
from heedful.statistics.shares import exact_share
from heedful.studies.dynamics import task_steps
from heedful.studies.dynamics.heads import Search
from heedful.studies.dynamics.keyword import PLACES, KeywordConfig
from heedful.studies.dynamics.seeds import FAILED, LEARNT, SeedsConfig

COPYING, HEADS, KEYWORD = "copying", "heads", "keyword"
SOURCES = (
    Source(COPYING, "copying permutations, generated"),
    Source(HEADS, "copying with good and bad heads, generated"),
    Source(KEYWORD, "finding a keyword, generated"),
)


@dataclass(frozen=True)
class Sizes:
    """How large the tasks are at a scale."""

    seeds: int
    length: int
    symbols: int
    """Of the control with surplus words."""
    width: int
    training: SeedsConfig
    stops: tuple[int, ...]
    """Where DYN-A5 stops the fixed set; training goes on to the last."""
    uniform: SeedsConfig
    """Of models with uniform attention."""
    head_task: Copying
    head_width: int
    head_training: SeedsConfig
    search: Mapping[str, Search]
    """By form: heads as the released code has them (GRU, projected, averaged), and as the paper
    (a sum of contexts)."""
    bases: tuple[int, ...]
    heads: int
    """Of the models of F6."""
    few_heads: tuple[int, ...]
    """Numbers of random heads between one and that (DYN-17)."""
    draws: int
    keyword: KeywordConfig
    early: int
    """The step at which DYN-18 expects the keyword's own state to say most."""
    late: int
    """The step of its asymptote: the last ones of a short training drift (§2.9)."""
    proxy_steps: int


SIZES: Mapping[Scale, Sizes] = {
    "smoke": Sizes(
        seeds=5, length=12, symbols=18, width=48,
        training=SeedsConfig(120, 32, 6e-3, 10, 50), stops=(60, 90, 120, 160),
        uniform=SeedsConfig(60, 32, 6e-3, 20, 50),
        head_task=Copying(8, 8), head_width=32,
        head_training=SeedsConfig(80, 32, 1e-2, 10, 60, "fixed"),
        search={"code": Search(5, 14, 14, LEARNT, is_at_once=True)},
        bases=(0,), heads=3, few_heads=(2,), draws=6,
        keyword=KeywordConfig(Keyword(20, 20), 48, 40, 48, 4e-3, 2, 200), early=10, late=30,
        proxy_steps=100,
    ),
    "paper": Sizes(
        seeds=20, length=40, symbols=60, width=256,
        training=SeedsConfig(300), stops=(200, 300, 600, 2_000), uniform=SeedsConfig(300),
        head_task=Copying(40, 40), head_width=256,
        head_training=SeedsConfig(190, samples=400, evaluated_on="fixed"),
        # Almost no start of the paper's form ends below .6: bad is what never learns (ours).
        search={"code": Search(failed_below=FAILED),
                "paper": Search(most=256, failed_below=LEARNT)},
        bases=(0, 1, 2), heads=8, few_heads=(2, 4), draws=20,
        keyword=KeywordConfig(), early=10, late=24,
        proxy_steps=600,
    ),
}  # fmt: skip


def sizes(plan: Plan) -> Sizes:
    """The sizes of the plan's scale."""
    return SIZES[plan.scale]


def seeds(plan: Plan) -> range:
    """Seeds of the tasks: twenty at paper scale, whatever the corpora train."""
    return range(sizes(plan).seeds)


def tasks(plan: Plan) -> dict[str, Copying]:
    """The copying tasks by the role they play."""
    n, more = sizes(plan).length, sizes(plan).symbols
    return {
        "fixed set": Copying(n, n),
        "control": Copying(more, n),
        "mixture": Copying(2 * n, n, 2),
        # The paper does not name the control of its right panel; at smoke scale one serves both.
        "mixture control": plan.pick(Copying(more, n), Copying(2 * n, n)),
        "reordered": Copying(more, n, is_reordered=True),
    }


def curves(plan: Plan, role: str) -> Step[pd.DataFrame]:
    """Training of every seed on one of the copying tasks."""
    here = sizes(plan)
    is_long = role == "fixed set"  # DYN-A5 asks what becomes of it
    training = replace(here.training, steps=here.stops[-1]) if is_long else here.training
    return task_steps.copied(COPYING, tasks(plan)[role], training, seeds(plan), here.width)


def uniform(plan: Plan, role: str) -> Step[pd.DataFrame]:
    """What uniform attention learns of a task."""
    here = sizes(plan)
    return task_steps.probed_uniform(
        COPYING, tasks(plan)[role], here.uniform, seeds(plan), here.width
    )


def proxy(plan: Plan, role: str) -> Step[pd.DataFrame]:
    """What the bag-of-words proxy learns of a task."""
    few = seeds(plan)[:5]
    return task_steps.proxied(COPYING, tasks(plan)[role], few, sizes(plan).proxy_steps)


def form(plan: Plan, name: str) -> TranslatorConfig:
    """The one-head model of a form."""
    make = code_copying_config if name == "code" else copying_config
    return make(sizes(plan).head_task.symbols, sizes(plan).head_width)


def search(plan: Plan, name: str, base: int) -> Step[dict[str, Any]]:
    """Good and bad heads of a form on a base."""
    here = sizes(plan)
    return task_steps.searched(
        HEADS, form(plan, name), base, here.head_task, here.head_training, here.search[name]
    )


def headed(plan: Plan, name: str, base: int, heads: int | None = None) -> Step[pd.DataFrame]:
    """The models of F6; with another number of heads, random ones only."""
    here = sizes(plan)
    return task_steps.headed(
        HEADS, form(plan, name), base, here.head_task, here.head_training,
        search(plan, name, base), here.heads if heads is None else heads, here.draws,
        task_steps.KINDS if heads is None else ("random",),
    )  # fmt: skip


def gamma(plan: Plan) -> Step[pd.DataFrame]:
    """Keyword classifiers."""
    return task_steps.keywords(KEYWORD, sizes(plan).keyword, seeds(plan))


def needs_roles(*roles: str) -> Any:
    """The trainings of some copying tasks."""
    return lambda plan, corpus: [curves(plan, role) for role in roles]


def needs_heads(plan: Plan, corpus: str) -> list[Step[Any]]:
    """The models of F6: the code's form on the first base."""
    return [search(plan, "code", sizes(plan).bases[0]), headed(plan, "code", sizes(plan).bases[0])]


def needs_gamma(plan: Plan, corpus: str) -> list[Step[Any]]:
    """The keyword classifiers."""
    return [gamma(plan)]


def needs_reordered(plan: Plan, corpus: str) -> list[Step[Any]]:
    """Copying and reordering, trained and with uniform attention."""
    roles = ("control", "reordered")
    return [step(plan, role) for step in (curves, uniform) for role in roles]


def share_learnt(table: pd.DataFrame, key: str, threshold: float, by: float) -> Any:
    """The share of runs above a threshold by a step, with its exact interval."""
    found = task_steps.reached(table, key, threshold, by)
    return exact_share(int(np.isfinite(found).sum()), len(found))


def _figure_3(views: Views) -> Made:
    from heedful.report.panels import lines

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
        said.append(f"{task}: {learnt.value:.0%} of seeds learnt, median step {step}")
    draw = partial(lines, x="training step", y="accuracy", hue="task", each="seed", panel="panel")
    return Made(table, draw, f"By step {last}: " + "; ".join(said) + ".")


def _figure_6(views: Views) -> Made:
    from heedful.report.panels import lines

    base = sizes(views.plan).bases[0]

    def of(view: View) -> pd.DataFrame:
        run = view.on("code").of(headed, base)
        found = run.rename(columns={"step": "training step", "kind": "heads"})
        return found[["heads", "draw", "training step", "accuracy"]]

    table = pd.concat(views.each(of).values(), ignore_index=True)
    searched = views.on("code").of(search, base)
    shares = [
        f"{kind} {share_learnt(part, 'draw', LEARNT, np.inf).value:.0%}"
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
    from heedful.report.panels import lines

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
                "accuracy at the end": over_seeds(final),
                "uniform: probe agrees": over_seeds(flat["agreement"]),
                "uniform: loss": over_seeds(flat["loss"]),
            }
            keys = {"task": tasks(view.plan)[role].name, "seeds": len(final)}
            yield row(keys, **measured)

    table = views.table(of)
    said = [f"{one['task']}: {one['learnt']:.0%} of seeds learnt" for _, one in table.iterrows()]
    return Made(table, sentence=f"By step {last}: " + "; ".join(said) + ".")


ARTIFACTS = (
    Artifact(
        "F3", "Copying permutations, one line per seed", "3.3, Fig. 3", "figure", _figure_3,
        needs_roles("fixed set", "control", "mixture", "mixture control"), (COPYING,),
        "Permutations of one fixed set, or of one of two, sometimes fail; the controls never do.",
    ),
    Artifact(
        "F6", "Eight heads: all bad, one good, random", "5.2, Fig. 6", "figure", _figure_6,
        needs_heads, (HEADS,), "All bad fails, one good head rescues, random heads learn.",
    ),
    Artifact(
        "F7", "What single states say of the keyword", "6.1, Fig. 7", "figure", _figure_7,
        needs_gamma, (KEYWORD,),
        "First the keyword's state, then its neighbour, in the end the last state.",
    ),
    Artifact(
        "E2", "A fixed reordering of the output is not learnt", "6.2", "table", _table_e2,
        needs_reordered, (COPYING,), "Copying always perfect within 300 steps; reordering never.",
    ),
)  # fmt: skip
