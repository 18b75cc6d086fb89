"""Steps of tasks that make their own data: copying, heads, keywords, and the proxy on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from heedful.corpora.tasks import Copying
from heedful.errors import InputError
from heedful.models.translator import TranslatorConfig, build_translator, copying_config
from heedful.models.translator_stack import TranslatorStack
from heedful.reproduction.results import Results, Step, named
from heedful.reproduction.study import Plan
from heedful.runs import TABLE
from heedful.runs.randomness import seeded
from heedful.studies.dynamics.heads import drawn_sets, search_heads, train_heads
from heedful.studies.dynamics.keyword import PLACES, fit_keyword, keyword_classifier
from heedful.studies.dynamics.seeds import SeedCurves, SeedsConfig, fit_seeds
from heedful.studies.dynamics.tasks import COPYING, HEADS, KEYWORD, form, seeds, sizes, tasks
from heedful.training.optimisers import descend
from heedful.training.precision import reduced_precision

SURE = 0.99
"""A run in which every seed is above this three times in a row has nothing more to show."""
KINDS = ("all bad", "one good", "random")
"""Which heads a model is given."""
HEADS_AT_ONCE = 192
"""Heads of all models trained side by side: about 20 GB at the published size."""
POOL = 30
"""Fresh heads that random sets are drawn from."""
PROXY_DIM = 256
"""Of the proxy's word vectors."""


def curves(plan: Plan, role: str) -> Step[pd.DataFrame]:
    """Accuracy over training of every seed on a copying task: one row per seed and evaluation.

    Training ends once every seed is perfect; later evaluations are left out.
    """
    here, task, numbers = sizes(plan), tasks(plan)[role], seeds(plan)
    is_long = role == "fixed set"  # DYN-A5 asks what becomes of it
    training = replace(here.training, steps=here.stops[-1]) if is_long else here.training
    config = copying_config(task.symbols, here.width)

    def compute(results: Results) -> pd.DataFrame:
        stack = TranslatorStack([build_translator(config, s) for s in numbers], results.device)
        sure = [0]

        def stop(accuracy: np.ndarray) -> bool:
            sure[0] = sure[0] + 1 if (accuracy > SURE).all() else 0
            return sure[0] >= 3

        return _table(fit_seeds(stack, task, training, seeds=numbers, stop=stop), "seed", numbers)

    inputs = {"task": asdict(task), "training": asdict(training), "width": here.width}
    inputs |= {"seeds": list(numbers), "may_stop": True}
    return Step(named(COPYING, task.name, "curves"), compute, inputs, TABLE)


def search(plan: Plan, name: str, base: int) -> Step[dict[str, Any]]:
    """Good and bad heads of a form on a base; `HeadSearch` as a dict, with the seconds it took."""
    config, here = form(plan, name), sizes(plan)
    task, training, asked = here.head_task, here.head_training, here.search[name]

    def compute(results: Results) -> dict[str, Any]:
        return asdict(search_heads(config, base, task, training, asked, device=results.device))

    inputs = _described(config, base, task, training) | {"search": asdict(asked)}
    return Step(named(HEADS, config.cell, base, "search"), compute, inputs)


def headed(plan: Plan, name: str, base: int, heads: int | None = None) -> Step[pd.DataFrame]:
    """Accuracy over training of models with so many heads of each kind, on the first data.

    `all bad` draws bad heads, `one good` one good and the rest bad, `random` from fresh ones. A
    kind that the search found too few heads for is left out. With another number of `heads` than
    that of F6, random ones only.
    """
    config, here, found = form(plan, name), sizes(plan), search(plan, name, base)
    kinds = KINDS if heads is None else ("random",)
    count, draws = here.heads if heads is None else heads, here.draws
    task, training = here.head_task, here.head_training

    def compute(results: Results) -> pd.DataFrame:
        searched_for = results[found]
        good, bad = searched_for["good"], searched_for["bad"]
        # Fresh heads have numbers that the search cannot have tried.
        fresh = range(10**6, 10**6 + POOL)
        pools = {
            "all bad": [(bad, count)],
            "one good": [(bad, count - 1), (good, 1)],
            "random": [(fresh, count)],
        }
        sets, owners = [], []
        for kind in kinds:
            if all(len(pool) >= least for pool, least in pools[kind]):
                sets += drawn_sets(pools[kind], draws, kind)
                owners += [(kind, draw) for draw in range(draws)]
        if not sets:
            raise InputError(
                f"the search found {len(good)} good and {len(bad)} bad heads among "
                f"{searched_for['tried']}: too few for models of {count}."
            )
        per_stack = max(HEADS_AT_ONCE // count, 1)
        parts = []
        for start in range(0, len(sets), per_stack):
            some = sets[start : start + per_stack]
            curves = train_heads(config, base, some, task, training, device=results.device)
            parts.append(_table(curves, "model", range(start, start + len(some))))
        table = pd.concat(parts, ignore_index=True)
        owner = pd.DataFrame(owners, columns=["kind", "draw"])
        return owner.loc[table.pop("model")].reset_index(drop=True).join(table)

    inputs = _described(config, base, task, training)
    inputs |= {"heads": count, "draws": draws, "kinds": list(kinds)}
    name = named(HEADS, config.cell, base, count, "heads")
    return Step(name, compute, inputs, TABLE, (found,))


def gamma(plan: Plan) -> Step[pd.DataFrame]:
    """γ at each of `PLACES` over training: one row per seed and evaluation."""
    config, numbers = sizes(plan).keyword, seeds(plan)

    def compute(results: Results) -> pd.DataFrame:
        models = [keyword_classifier(config, seed) for seed in numbers]
        curves = fit_keyword(models, config, seeds=numbers, device=results.device)
        parts = []
        for row, seed in enumerate(numbers):
            columns = dict(zip(PLACES, curves.gamma[row].T, strict=True))
            rows = {"seed": seed, "step": curves.steps, "accuracy": curves.accuracy[row]}
            parts.append(pd.DataFrame(rows | columns))
        return pd.concat(parts, ignore_index=True)

    inputs = {"config": asdict(config), "seeds": list(numbers)}
    return Step(named(KEYWORD, "keyword", "gamma"), compute, inputs, TABLE)


def uniform(plan: Plan, role: str) -> Step[pd.DataFrame]:
    """What a model with uniform attention learns of a task: one row per seed.

    `agreement` is the share of target symbols whose own source position is among the top 5 % of the
    probe, `chance` what a random order would give, `loss` that of fresh samples.
    """
    task, training, width = tasks(plan)[role], sizes(plan).uniform, sizes(plan).width
    numbers = seeds(plan)
    config = replace(copying_config(task.symbols, width), attention="uniform")

    def compute(results: Results) -> pd.DataFrame:
        device = results.device
        stack = TranslatorStack([build_translator(config, s) for s in numbers], device)
        curves = fit_seeds(stack, task, training, seeds=numbers)
        orders = task.orders(numbers, device)
        keys = task.keys(numbers, training.steps + 1, "evaluate", device)
        drawn = task.sample(keys, training.samples, orders)
        with torch.no_grad(), reduced_precision(torch.device(device)):
            probe = stack.probe(drawn)[:, :, :-1]  # the end has no symbol of its own
        own = orders[:, None, :, None].expand(*probe.shape[:3], 1)
        above = (probe > probe.gather(-1, own)).sum(-1)
        units = probe.shape[-1]
        admitted = -(-units // 20)
        agreed = (above < admitted).double().mean((1, 2)).cpu().numpy()
        found = {"seed": list(numbers), "agreement": agreed, "chance": admitted / units}
        return pd.DataFrame(found | {"loss": curves.loss[:, -1], "accuracy": curves.last()})

    inputs = {"task": asdict(task), "training": asdict(training), "width": width}
    inputs |= {"seeds": list(numbers)}
    return Step(named(COPYING, task.name, "uniform"), compute, inputs, TABLE)


def proxy(plan: Plan, role: str) -> Step[pd.DataFrame]:
    """What the bag-of-words proxy learns of a task: one row per seed.

    All word vectors start equal, so that whatever tells words apart afterwards was learnt.
    `spread` is the largest difference of log β between positions of a sequence, `loss` nats per
    target word with the ends left out, `across` the probability of words of the other blocks.
    """

    task, few, steps = tasks(plan)[role], seeds(plan)[:5], sizes(plan).proxy_steps

    def compute(results: Results) -> pd.DataFrame:
        rows = [_proxied(task, seed, steps, PROXY_DIM, results.device) for seed in few]
        return pd.DataFrame(rows)

    inputs = {"task": asdict(task), "seeds": list(few), "steps": steps, "dim": PROXY_DIM}
    return Step(named(COPYING, task.name, "proxy"), compute, inputs, TABLE)


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


def _proxied(task: Copying, seed: int, steps: int, dim: int, device: str) -> dict[str, float]:
    with seeded(seed):
        start = torch.randn(task.symbols, dim) / dim**0.5
    vectors = torch.zeros(task.symbols, dim, device=device, requires_grad=True)
    weight = start.to(device).requires_grad_()
    bias = torch.zeros(task.symbols, device=device, requires_grad=True)
    optimiser = torch.optim.Adam([vectors, weight, bias], 1e-2)
    orders = task.orders([seed], device)

    def bags(step: int, batch: int) -> tuple[torch.Tensor, torch.Tensor]:
        drawn = task.sample(task.keys([seed], step, device=device), batch, orders)
        ids = drawn.source[0, :, :-1]
        counts = torch.zeros(batch, task.symbols, device=device)
        return ids, counts.scatter_(1, ids, 1.0) / task.length

    for step in range(steps):
        _, shares = bags(step, 128)
        said = (shares @ vectors @ weight.T + bias).log_softmax(-1)
        descend(optimiser, -(shares * said).sum(-1).mean())
    with torch.no_grad():
        ids, shares = bags(steps, 400)
        said = (shares @ vectors @ weight.T + bias).log_softmax(-1).double()
        probe = (vectors @ weight.T).log_softmax(-1)  # [word answer], without the bias
        told = probe[ids]  # [sequence position answer]
        spread = (told.amax(1) - told.amin(1)).gather(1, ids).amax()
        block = task.symbols // task.blocks
        place = torch.arange(task.symbols, device=device)
        is_other = place // block != ids[:, :1] // block
        across = (said.exp() * is_other).sum(-1).mean()
        loss = -(shares * said).sum(-1).mean()
    return {
        "seed": seed, "spread": float(spread), "loss": float(loss), "across": float(across),
        "bound": float(np.log(task.length)),
    }  # fmt: skip


def _described(
    config: TranslatorConfig, base: int, task: Copying, training: SeedsConfig
) -> dict[str, Any]:
    described = {"model": asdict(config), "base": base, "task": asdict(task)}
    return described | {"training": asdict(training)}


def _table(curves: SeedCurves, key: str, names: Sequence[int]) -> pd.DataFrame:
    """Curves as one row per model and evaluation."""
    count = len(curves.steps)
    columns: dict[str, Any] = {key: np.repeat(list(names), count)}
    columns |= {"step": np.tile(curves.steps, len(names)), "accuracy": curves.accuracy.ravel()}
    columns["loss"] = curves.loss.ravel()
    for number, name in enumerate(("one before", "on time", "one after")):
        columns[name] = curves.on_time[..., number].ravel()
    return pd.DataFrame(columns)


def reached(
    table: pd.DataFrame, key: str, threshold: float, by: float = np.inf
) -> pd.Series[float]:
    """The first step at which each model is above a threshold, at most `by`; inf if never."""
    above = table[(table["accuracy"] > threshold) & (table["step"] <= by)]
    first = above.groupby(key)["step"].min().astype(float)
    return first.reindex(table[key].drop_duplicates(), fill_value=np.inf)
