"""The tasks of the dynamics study: every figure and claim from steps of a few seconds."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
import pytest

from heedful.corpora.tasks import Copying, Keyword
from heedful.reproduction.ledger import Judgement, above, judge
from heedful.reproduction.results import Results, Skipped, Step
from heedful.reproduction.study import Plan, Study
from heedful.reproduction.view import View, Views
from heedful.studies.dynamics import claims, task_figures, task_steps, tasks
from heedful.studies.dynamics.heads import Search
from heedful.studies.dynamics.keyword import KeywordConfig
from heedful.studies.dynamics.seeds import SeedsConfig

TINY = replace(
    tasks.SIZES["smoke"],
    seeds=2, length=4, symbols=6, width=8,
    training=SeedsConfig(20, 8, 1e-2, 10, 8), stops=(60, 90), heads=3,
    uniform=SeedsConfig(10, 8, 1e-2, 10, 8),
    head_task=Copying(4, 4), head_width=8, head_training=SeedsConfig(10, 8, 1e-2, 10, 8, "fixed"),
    search={"code": Search(4, 5, 5, 0.95, is_at_once=True),
            "paper": Search(4, 5, 5, 0.95, is_at_once=True)},
    draws=3, keyword=KeywordConfig(Keyword(5, 6), 8, 12, 8, 1e-2, 2, 20), early=4, late=12,
    proxy_steps=60,
)  # fmt: skip

OF_TASKS = {source.name for source in tasks.SOURCES}
CLAIMS = [claim for claim in claims.CLAIMS if claim.corpora and set(claim.corpora) <= OF_TASKS]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Results, Plan]]:
    """All steps of the tasks, tiny."""
    before = tasks.SIZES
    tasks.SIZES = {"smoke": TINY, "paper": before["paper"]}
    study = Study(
        "tasks", "tasks", "none", tasks.SOURCES, task_figures.ARTIFACTS, tuple(CLAIMS),
        {"smoke": 1, "paper": 1},
    )  # fmt: skip
    plan = study.plan("smoke")
    results = Results(tmp_path_factory.mktemp("steps"))
    steps = [s for part in study.parts for c in part.corpora or () for s in part.needs(plan, c)]
    results.finish(steps)
    try:
        yield results, plan
    finally:
        tasks.SIZES = before


def judged(done: tuple[Results, Plan], id: str) -> Judgement:
    results, plan = done
    claim = next(claim for claim in CLAIMS if claim.id == id)
    assert claim.measure is not None
    assert claim.corpora is not None
    return judge(claim.measure(View(results, plan, claim.corpora[0])), claim.side)


@pytest.mark.slow
def test_every_step_could_be_computed(done: tuple[Results, Plan]) -> None:
    assert done[0].skipped == {}


@pytest.mark.slow
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_every_claim_is_judged(done: tuple[Results, Plan], claim: object) -> None:
    found = judged(done, claim.id)  # type: ignore[attr-defined]
    assert found.word in ("confirmed", "refuted", "undecided", "not measurable")
    assert found.reason


@pytest.mark.slow
def test_the_proxy_learns_nothing_of_one_fixed_set(done: tuple[Results, Plan]) -> None:
    assert judged(done, "DYN-13").word == "confirmed"


@pytest.mark.slow
@pytest.mark.parametrize("artifact", task_figures.ARTIFACTS, ids=lambda artifact: artifact.id)
def test_every_artifact_is_made_and_drawn(done: tuple[Results, Plan], artifact: object) -> None:
    results, plan = done
    made = artifact.make(Views(results, plan.only(artifact.corpora)))  # type: ignore[attr-defined]
    assert made.table is not None
    assert len(made.table)
    assert made.sentence
    if made.draw is not None:
        assert made.draw(made.table).axes


@pytest.mark.slow
def test_curves_hold_every_seed_at_every_evaluation(done: tuple[Results, Plan]) -> None:
    results, plan = done
    table = results[task_steps.curves(plan, "fixed set")]
    assert table.groupby("seed")["step"].apply(list).tolist() == [list(range(0, 91, 10))] * 2
    assert table["accuracy"].between(0, 1).all()


def test_runs_that_never_learn_are_inf() -> None:
    table = pd.DataFrame(
        {"seed": [0, 0, 1, 1], "step": [0, 10, 0, 10], "accuracy": [0.1, 0.97, 0.1, 0.5]}
    )
    found = task_steps.reached(table, "seed", 0.95)
    assert found.tolist() == [10, np.inf]
    assert task_steps.reached(table, "seed", 0.95, by=5).tolist() == [np.inf, np.inf]


@pytest.mark.slow
def test_a_search_that_finds_too_few_heads_leaves_their_kinds_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = SeedsConfig(10, 8, 1e-2, 10, 8, "fixed")
    tiny = replace(
        TINY, head_task=Copying(4, 4), head_width=6, head_training=training,
        search={"code": Search(2, 2, 2, 0.0)}, heads=2, draws=2,
    )  # fmt: skip
    monkeypatch.setattr(tasks, "SIZES", {"smoke": tiny})
    plan = Study("t", "t", "none", tasks.SOURCES, (), (), {"smoke": 1, "paper": 1}).plan("smoke")
    table = Results(tmp_path)[task_steps.headed(plan, "code", 0)]
    assert set(table["kind"]) == {"random"}


def test_the_published_scale_has_twenty_seeds_of_forty_words() -> None:
    paper = tasks.SIZES["paper"]
    assert (paper.seeds, paper.length, paper.symbols, paper.width) == (20, 40, 60, 256)
    assert paper.stops == (200, 300, 600, 2_000)
    assert (paper.heads, paper.draws, len(paper.bases), len(paper.search)) == (8, 20, 3, 2)


@pytest.mark.parametrize(("learn", "word"), [(0, "confirmed"), (20, "undecided")])
def test_a_form_without_the_order_of_heads_is_not_hidden_by_the_other(
    learn: int, word: str
) -> None:
    """Whether eight bad heads learn in the paper's form decides; in the code's form none does."""
    study = Study("t", "t", "none", tasks.SOURCES, (), (), {"smoke": 1, "paper": 1})
    plan = study.plan("paper")
    found = {}
    for name, base in claims._combinations(plan):
        bad = {"code": 0, "paper": learn}[name]
        learnt = dict.fromkeys(task_steps.KINDS, 20) | {"all bad": bad}
        rows = [(k, d, 190, float(d < n)) for k, n in learnt.items() for d in range(20)]
        table = pd.DataFrame(rows, columns=["kind", "draw", "step", "accuracy"])
        found[task_steps.headed(plan, name, base).name] = table

    class Given:
        def __getitem__(self, step: Step[pd.DataFrame]) -> pd.DataFrame:
            if step.name not in found:
                raise Skipped("not computed yet")
            return found[step.name]

    parts = claims._every_base(View(cast("Results", Given()), plan, "heads"))
    assert judge(parts, above(0)).word == word
    del found[task_steps.headed(plan, "paper", 1).name]  # a form of which a base is missing waits
    waiting = judge(claims._every_base(View(cast("Results", Given()), plan, "heads")), above(0))
    assert waiting.word == "not measurable"
    assert "base 1: not computed yet" in waiting.reason


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ([0.0, 1.0, 2.0, 3.0], "From step 6 on"),
        ([0.0, 2.0, 1.0, 3.0], "From step 6 on"),  # the lead of step 2 was lost again
        ([2.0, 2.0, 2.0, 2.0], "From step 0 on"),
        ([2.0, 2.0, 2.0, 1.0], "At the end the last state says no more"),
    ],
)
def test_the_last_state_overtakes_the_keyword_when_it_stays_ahead(
    last: list[float], said: str
) -> None:
    keyword = [1.0, 1.0, 2.0, 2.0] if last[0] < 1 else [1.0] * 4
    means = pd.DataFrame({"last": last, "keyword": keyword}, index=[0, 2, 4, 6])
    assert task_figures.overtaken(means).startswith(said)
