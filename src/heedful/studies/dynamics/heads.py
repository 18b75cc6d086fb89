"""Heads by rejection sampling: which random starts of attention learn a task, and which never do.

A head is its query map, and its projection where each head has its own. Heads are judged on one
base, the start of all other weights: good or bad is relative to it (docs/studies/dynamics.md,
"Several heads").
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.corpora.tasks import Copying
from heedful.models.translator import Translator, TranslatorConfig, build_translator
from heedful.models.translator_stack import TranslatorStack
from heedful.runs.randomness import key, numpy_generator
from heedful.studies.dynamics.seeds import FAILED, LEARNT, SeedCurves, SeedsConfig, fit_seeds

Stop = Callable[[Float[np.ndarray, " model"]], bool]
"""Sees the accuracies of an evaluation; True ends training."""
Judged = Int[np.ndarray, "seed head"]
"""1 where a head learnt the task, -1 where it failed, 0 in between."""

DATA_SEEDS = (0, 1, 2)
"""A head is judged by three trainings that differ in their data alone."""
UNTIL = SeedsConfig(steps=190, samples=400, evaluated_on="fixed")
"""The published training of heads: the last of 200 steps that is evaluated is 190."""


@dataclass(frozen=True)
class HeadSearch:
    """What a search found; heads are named by the numbers they are drawn by."""

    good: tuple[int, ...]
    bad: tuple[int, ...]
    tried: int
    """Heads that were judged."""
    reached: tuple[bool, ...]
    """Whether each head tried learnt the task on the first data: 1 - q is the mean."""
    seconds: float
    """What the search itself took, apart from all that uses its heads."""


def head_of(config: TranslatorConfig, base: int, number: int) -> dict[str, Tensor]:
    """The weights of a random head."""
    drawn = build_translator(replace(config, heads=1), key(base, "head", number) % 2**63)
    names = ("query.", "project.") if config.has_own_projections else ("query.",)
    return {n: w for n, w in drawn.state_dict().items() if n.startswith(names)}


def with_heads(config: TranslatorConfig, base: int, heads: Sequence[int]) -> Translator:
    """The base with these heads in place of its own, as a model of so many heads."""
    model = build_translator(replace(config, heads=len(heads)))
    own = build_translator(replace(config, heads=1), base).state_dict()
    drawn = [head_of(config, base, number) for number in heads]
    own |= {name: torch.cat([head[name] for head in drawn]) for name in drawn[0]}
    model.load_state_dict(own)
    return model


def train_heads(
    config: TranslatorConfig,
    base: int,
    sets: Sequence[Sequence[int]],
    task: Copying,
    training: SeedsConfig = UNTIL,
    *,
    data_seeds: Sequence[int] | int = 0,
    device: torch.device | str = "cpu",
    stop: Stop | None = None,
) -> SeedCurves:
    """The curves of models with these sets of heads (all of one size) on the base."""
    models = [with_heads(config, base, heads) for heads in sets]
    seeds = [data_seeds] * len(sets) if isinstance(data_seeds, int) else data_seeds
    stack = TranslatorStack(models, device)
    return fit_seeds(stack, task, training, seeds=seeds, stop=stop)


@dataclass(frozen=True)
class Search:
    """How heads are searched for."""

    wanted: int = 20
    """Of each kind."""
    most: int = 640
    """Heads to try before giving up."""
    block: int = 64
    """Heads trained side by side."""
    failed_below: float = FAILED
    """A bad head's accuracy at the end."""
    is_at_once: bool = False
    """Whether the three trainings of a block run side by side: quicker where a step costs the same
    whatever the number of models, but nothing is saved on heads that contradict themselves."""


def search_heads(
    config: TranslatorConfig,
    base: int,
    task: Copying,
    training: SeedsConfig = UNTIL,
    search: Search = Search(),
    *,
    device: torch.device | str = "cpu",
) -> HeadSearch:
    """Draws heads until `wanted` are good and `wanted` bad, or `most` were tried.

    Good: accuracy above .95 at some evaluation in all three trainings. Bad: never, and below
    `failed_below` at the end, in all three. Others are discarded. A head whose trainings contradict
    each other is not trained again, nor one of a kind that is complete.
    """
    started = time.perf_counter()
    found: dict[bool, list[int]] = {True: [], False: []}
    reached: list[bool] = []
    tried = 0

    def judged(heads: Sequence[int], seeds: Sequence[int], stop: Stop | None = None) -> Judged:
        sets = [[head] for _ in seeds for head in heads]
        data = [seed for seed in seeds for _ in heads]
        curves = train_heads(
            config, base, sets, task, training, data_seeds=data, device=device, stop=stop
        )
        is_good = np.isfinite(curves.reached(LEARNT))
        is_bad = ~is_good & (curves.last() < search.failed_below)
        return np.where(is_good, 1, np.where(is_bad, -1, 0)).reshape(len(seeds), len(heads))

    while tried < search.most and min(map(len, found.values())) < search.wanted:
        heads = list(range(tried, min(tried + search.block, search.most)))
        tried += len(heads)
        first = judged(heads, DATA_SEEDS if search.is_at_once else DATA_SEEDS[:1])
        reached += (first[0] == 1).tolist()
        for kind, sign in ((True, 1), (False, -1)):
            is_kind = (first == sign).all(0)
            alive = [head for head, is_it in zip(heads, is_kind, strict=True) if is_it]
            for seed in DATA_SEEDS[len(first) :]:
                if not alive or len(found[kind]) >= search.wanted:
                    break
                again = judged(alive, [seed], _all_reached() if kind else None)[0]
                alive = [head for head, word in zip(alive, again, strict=True) if word == sign]
            else:
                found[kind] += alive
    good, bad = (tuple(found[kind][: search.wanted]) for kind in (True, False))
    return HeadSearch(good, bad, tried, tuple(reached), time.perf_counter() - started)


def _all_reached() -> Stop:
    """Ends training when every model has been above .95 once."""
    best: list[Float[np.ndarray, " model"]] = []

    def stop(accuracy: Float[np.ndarray, " model"]) -> bool:
        best[:] = [accuracy if not best else np.maximum(best[0], accuracy)]
        return bool((best[0] > LEARNT).all())

    return stop


def drawn_sets(
    pools: Sequence[tuple[Sequence[int], int]], draws: int, name: str
) -> list[tuple[int, ...]]:
    """So many sets of heads: from each pool a number of different ones, by a keyed draw."""
    found = []
    for draw in range(draws):
        rng = numpy_generator(draw, "heads", name)
        heads: list[int] = []
        for pool, count in pools:
            heads += [pool[i] for i in rng.choice(len(pool), count, replace=False)]
        found.append(tuple(heads))
    return found
