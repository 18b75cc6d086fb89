"""What decides the polarity study's claims, on tables whose answer is known."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from heedful.reproduction.ledger import Parts, judge
from heedful.reproduction.results import Results
from heedful.reproduction.study import Plan
from heedful.reproduction.view import View, Views
from heedful.statistics import Estimate
from heedful.studies.polarity import checks, measures, steps
from heedful.studies.polarity import flow_measures as flows
from heedful.studies.polarity.claims import CLAIMS
from heedful.studies.polarity.study import STUDY

SEEDS = (0, 1, 2, 3)
PLAN = Plan(STUDY, "paper", SEEDS, ("sst",))


class Given:
    """Finished steps by the end of their names."""

    def __init__(self, **tables: object) -> None:
        self.tables = tables

    def __getitem__(self, step: Any) -> object:
        return self.tables[step.name.split("/")[-1]]

    def each(self, corpora: tuple[str, ...], make: Callable[[str], Any]) -> dict[str, Any]:
        """Every corpus is at hand."""
        return {corpus: make(corpus) for corpus in corpora}


def results(**tables: object) -> Results:
    """Steps that need no computation."""
    facts: Mapping[str, object] = {"classes": ["negative", "positive"]}
    return cast(Results, Given(sizes=facts, **tables))


def grid(value: Callable[[float, int], dict[str, float]]) -> dict[str, pd.DataFrame]:
    """The runs of a grid, from λ and seed."""
    rows = [
        {"setting": scale, "seed": seed} | value(float(scale), seed)
        for seed in SEEDS
        for scale in steps.SCALES
    ]
    return {"runs": pd.DataFrame(rows)}


def number(parts: Parts, name: str) -> Estimate:
    found = parts[name]
    assert isinstance(found, Estimate)
    return found


def test_a_smallest_scale_that_is_best_on_dev_is_still_compared_with_another() -> None:
    def value(scale: float, seed: int) -> dict[str, float]:
        best, second = scale == 0.001, scale == 20
        return {
            "dev": 0.9 * best + 0.8 * second,
            "accuracy": 0.7 + 0.1 * best + 0.01 * seed * second,
        }

    found = measures.scale_is_crucial(View(results(scores=grid(value)), PLAN, "sst"))
    assert set(found) == {"DP-L", "DP-A", "AD"}
    assert number(found, "DP-L").value == pytest.approx(-10 + 1.5)
    claim = next(claim for claim in CLAIMS if claim.id == "POL-7")
    assert judge(found, claim.side).word == "refuted"


def test_within_a_scale_the_gap_can_follow_the_product_where_pooled_ranks_do_not() -> None:
    def value(scale: float, seed: int) -> dict[str, float]:
        product = -1.0 - seed
        # Scores shrink with λ²: the pooled order of the gaps is that of λ, turned round.
        return {"V·W mean": product, "attention/positive": product / scale**2} | {
            "attention/negative": 0.0
        }

    given = results(scores=grid(value))
    pooled = measures.follows_alignment(View(given, PLAN, "sst"))
    assert pooled.value < -0.5
    made = checks.gaps(Views(given, PLAN))
    assert made.table is not None
    assert list(made.table["rank correlation"]) == pytest.approx([1.0] * len(steps.SCALES))
    assert (made.table["same sign"] == made.table["runs"]).all()
    assert "sst 20 of 20 runs" in made.sentence


def terms(share: Callable[[str, str, int], float]) -> dict[str, pd.DataFrame]:
    """A watched run with the share of words whose term is positive; V·W is negative throughout."""
    rows = []
    for seed in SEEDS:
        for epoch in (0, 5):
            for role in ("positive", "negative", "neutral"):
                for term in "ABCDEF":
                    up = round(50 * share(role, term, seed))
                    rows.append(
                        {"setting": "plain", "seed": seed, "epoch": epoch, "class": role}
                        | {"term": term, "n": 50, "positive": up, "negative": 50 - up}
                        | {"mean": 1.0, "size": 0.01 if role == "neutral" else 1.0}
                    )
    product = [
        {"setting": "plain", "seed": seed, "epoch": epoch, "quantity": "V·W", "value": -2.0}
        for seed in SEEDS
        for epoch in (0, 5)
    ]
    return {"terms": pd.DataFrame(rows), "path": pd.DataFrame(product)}


def test_seeds_that_all_agree_have_the_interval_over_words() -> None:
    watched = results(path=terms(lambda role, term, seed: float(role == "negative")))
    found = flows.alignment_term(View(watched, PLAN, "sst"))
    for role in ("positive", "negative"):
        assert number(found, f"D of {role}").value == 1  # below zero for positive words
        assert 0.9 < number(found, f"D of {role}").low < 1
    assert judge(found, flows.D_SIDES).word == "confirmed"
    against = results(path=terms(lambda role, term, seed: float(role == "positive")))
    assert judge(flows.alignment_term(View(against, PLAN, "sst")), flows.D_SIDES).word == "refuted"


def test_signs_of_terms_are_those_of_the_derivation() -> None:
    def predicted(role: str, term: str, seed: int) -> float:
        right = 0.9 + 0.02 * seed
        return 1 - right if role == "negative" and term in "BC" else right

    found = flows.signs(View(results(path=terms(predicted)), PLAN, "sst"))
    assert number(found, "B of negative").value == pytest.approx(0.93)
    assert number(found, "E of negative").value == pytest.approx(0.93)
    assert number(found, "C of positive").n == len(SEEDS)
    turned = flows.signs(View(results(path=terms(lambda *key: 1 - predicted(*key))), PLAN, "sst"))
    assert judge(turned, flows.SIGN_SIDES).word == "refuted"


def test_the_penalty_is_judged_by_every_word_of_the_made_set() -> None:
    draw = np.random.default_rng(0)
    kinds = np.repeat(["positive", "negative", "neutral"], 20)
    words = pd.concat(
        [
            pd.DataFrame(
                {"setting": setting, "seed": seed, "id": np.arange(60)}
                | {"attention": np.where(kinds == "neutral", 0.0, 1.0) + draw.uniform(0, 0.1, 60)}
            )
            for setting in ("plain", "penalty")
            for seed in SEEDS
        ]
    )
    classes = pd.DataFrame({"id": np.arange(60), "word": [f"w{i}" for i in range(60)]})
    classes = classes.assign(kind=kinds, **{"count negative": 9, "count positive": 9})
    path = pd.DataFrame(
        {"setting": setting, "seed": seed, "epoch": 75, "quantity": f"attention/{name}"}
        | {"value": 0.6 + 0.01 * seed - (setting == "plain") * (name == "negative") * 0.2}
        for setting in ("plain", "penalty")
        for seed in SEEDS
        for name in ("positive", "negative", "neutral")
    )
    given = results(path={"path": path, "words": words}, words=classes)
    found = measures.penalty_closes_made(View(given, PLAN, "sst"))
    assert number(found, "AUC of positive").value == 1
    assert number(found, "AUC of negative").low > 0.5
    assert number(found, "gap, with minus without").value == pytest.approx(-0.2)
