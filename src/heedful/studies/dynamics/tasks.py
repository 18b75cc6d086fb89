"""The tasks of the dynamics study that need no corpus: copying, heads, keywords, and their sizes.

Smoke scale has shorter sequences and narrower models; the contrasts are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from heedful.corpora.tasks import Copying, Keyword
from heedful.models.translator import TranslatorConfig, code_copying_config, copying_config
from heedful.reproduction.study import Plan, Scale
from heedful.studies.dynamics.heads import Search
from heedful.studies.dynamics.keyword import KeywordConfig
from heedful.studies.dynamics.printed import PAPER
from heedful.studies.dynamics.seeds import FAILED, LEARNT, SeedsConfig

COPYING, HEADS, KEYWORD = "copying", "heads", "keyword"
SOURCES = tuple(map(PAPER.source, (COPYING, HEADS, KEYWORD)))


@dataclass(frozen=True)
class TaskSizes:
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
    """The step of its asymptote: the last ones of a short training drift."""
    proxy_steps: int


SIZES: Mapping[Scale, TaskSizes] = {
    "smoke": TaskSizes(
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
    "paper": TaskSizes(
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


def sizes(plan: Plan) -> TaskSizes:
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


def form(plan: Plan, name: str) -> TranslatorConfig:
    """The one-head model of a form."""
    make = code_copying_config if name == "code" else copying_config
    return make(sizes(plan).head_task.symbols, sizes(plan).head_width)
