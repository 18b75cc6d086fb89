"""What decides the polarity study's claims, on tables whose answer is known."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from heedful.reproduction.ledger import Parts, judge
from heedful.reproduction.measures import over_alike_seeds
from heedful.reproduction.results import Results
from heedful.reproduction.study import Plan
from heedful.reproduction.view import View, Views
from heedful.statistics import Estimate, over_seeds
from heedful.studies.polarity import appendix, claims, measures, steps
from heedful.studies.polarity import flow_measures as flows
from heedful.studies.polarity.claims import CLAIMS
from heedful.studies.polarity.study import STUDY

SEEDS = (0, 1, 2, 3)
PLAN = Plan(STUDY, "paper", SEEDS, ("sst",))
SIDES = {claim.id: claim.side for claim in CLAIMS}


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
    pooled = measures.pooled_alignment(View(given, PLAN, "sst"))
    assert pooled.value < -0.5
    made = appendix.gaps(Views(given, PLAN))
    assert made.table is not None
    each = made.table[made.table["λ"] != "all"]
    assert list(each["rank correlation"]) == pytest.approx([1.0] * len(steps.SCALES))
    assert made.table["rank correlation"].iloc[-1] == pooled.value
    assert (made.table["same sign"] == made.table["runs"]).all()
    assert "sst 20 of 20 runs" in made.sentence
    assert "pooled over all λ -" in made.sentence
    found = measures.follows_alignment(View(given, PLAN, "sst"))
    assert list(found) == [f"λ = {scale}" for scale in ("10", "20", "50", "100", "10000")]
    assert all(number(found, name).value == 1 for name in found)


def test_ten_seeds_whose_ranks_agree_decide_at_every_scale() -> None:
    rows = [
        {"setting": scale, "seed": seed, "V·W mean": seed - 4.5}
        | {"attention/positive": (seed - 4.5) / float(scale), "attention/negative": 0.0}
        for seed in range(10)
        for scale in steps.SCALES
    ]
    found = measures.follows_alignment(
        View(results(scores={"runs": pd.DataFrame(rows)}), PLAN, "sst")
    )
    claim = next(claim for claim in CLAIMS if claim.id == "POL-18")
    judged = judge(found, claim.side)
    assert judged.word == "confirmed"
    assert judged.reason.startswith("5 of 5 parts hold")


def test_a_difference_of_exactly_nothing_in_every_seed_is_an_estimate() -> None:
    def value(scale: float, seed: int) -> dict[str, float]:
        accuracy = 0.9 + 0.01 * seed
        variation = 1e-4 * (1 + 0.1 * seed)
        return {"accuracy": accuracy, "uniform accuracy": accuracy, "total variation": variation}

    found = measures.is_mean_pooling(View(results(scores=grid(value)), PLAN, "sst"))
    same = number(found, "uniform minus trained")
    assert (same.value, same.low, same.high, same.n) == (0.0, 0.0, 0.0, len(SEEDS))
    claim = next(claim for claim in CLAIMS if claim.id == "POL-6")
    assert judge(found, claim.side).word == "confirmed"
    assert number(found, "total variation").low >= 0


def test_one_number_in_every_seed_has_no_width_and_others_students() -> None:
    assert over_alike_seeds([0.5, 0.5, 0.5]).low == 0.5
    assert np.isnan(over_alike_seeds([0.5]).low)
    assert np.isnan(over_alike_seeds([float("nan")] * 3).value)
    assert over_alike_seeds([0.2, 0.8], 0, 1) == over_seeds([0.2, 0.8], 0, 1)
    assert (over_seeds([0.2, 0.8], 0, 1).low, over_seeds([0.2, 0.8], 0, 1).high) == (0, 1)


def test_a_checkpoint_weighs_the_epochs_it_stands_for() -> None:
    weights = flows.stood_for([1, 2, 5, 10, 20, 40, 75])
    assert weights.to_dict() == {1: 1.5, 2: 2, 5: 4, 10: 7.5, 20: 15, 40: 27.5, 75: 17.5}
    assert weights.sum() == 75
    assert flows.stood_for([3, 3]).to_dict() == {3: 3}
    rows = pd.DataFrame({"seed": [0, 0, 0], "epoch": [1, 2, 5], "n": 4})
    values = pd.Series([1.0, 0.0, 0.5])
    found = flows.over_training(values, rows)
    assert found[0] == pytest.approx((1.5 * 1 + 2 * 0 + 1.5 * 0.5) / 5)
    even = pd.DataFrame({"seed": [0] * 75, "epoch": range(1, 76)})
    straight = pd.Series(np.arange(1.0, 76))
    # Sampled coarsely, a straight line has nearly the mean it has at every epoch.
    few = even["epoch"].isin([1, 2, 5, 10, 20, 40, 75])
    coarse = flows.over_training(straight[few], even[few])
    assert coarse[0] == pytest.approx(flows.over_training(straight, even)[0], rel=0.02)
    assert straight[few].mean() < 0.6 * coarse[0]  # all alike, the start would weigh most


def test_words_unseen_in_training_are_equal_within_a_point() -> None:
    def value(scale: float, seed: int) -> dict[str, float]:
        return {"accuracy": 0.8 + 0.01 * seed}

    def apart(points: float) -> str:
        other = pd.DataFrame(
            {"seed": seed, "accuracy": 0.8 + 0.01 * seed + (points + 0.1 * seed) / 100}
            for seed in SEEDS[:3]  # fewer than the grid has
        )

        class Both(Given):
            def __getitem__(self, step: Any) -> object:
                return {"runs": other} if "train-words" in step.name else super().__getitem__(step)

        given = cast(Results, Both(scores=grid(value)))
        found = claims.unseen_words(View(given, PLAN, "sst"))
        assert (found.n, found.undefined) == (3, 0)
        assert found.value == pytest.approx(points + 0.1)
        return judge(found, next(c for c in CLAIMS if c.id == "POL-A3").side).word

    assert apart(0.2) == "confirmed"  # told from 0, and small
    assert apart(2.0) == "refuted"
    assert apart(0.9) == "undecided"


def test_the_strength_is_the_one_that_dev_prefers() -> None:
    class Strengths(Given):
        def __getitem__(self, step: Any) -> object:
            best = {"l2=1e-05": 0.7, "l2=0.0001": 0.9}
            part = next((part for part in best if part in step.name), "")
            rows = pd.DataFrame(
                {"setting": scale, "seed": seed, "dev": best.get(part, 0.8)}
                for seed in SEEDS
                for scale in ("1", "10")
            )
            return {"runs": rows}

    given = cast(Results, Strengths())
    assert appendix.preferred(View(given, PLAN, "sst"), "dp-l") == 1e-4


def split_runs(shift: float, spread: float) -> Results:
    """Ten redrawn splits that lie so far from the paper in every cell."""

    class Redrawn(Given):
        def __getitem__(self, step: Any) -> object:
            model = step.name.split("/")[1].split(",")[0]
            printed = dict(appendix._printed("20news-2", model))
            rows = [
                {"setting": scale, "seed": seed}
                | {"accuracy": (printed[scale] + shift + spread * (seed - 4.5)) / 100}
                for seed in range(10)
                for scale in steps.LARGE_SCALES
            ]
            return {"runs": pd.DataFrame(rows)}

    return cast(Results, Redrawn())


def test_a_printed_number_inside_what_one_more_split_gives_can_be_the_splits_doing() -> None:
    plan = Plan(STUDY, "paper", tuple(range(10)), ("20news-2",))
    away = appendix.from_the_paper(View(split_runs(-1.5, 0.5), plan, "20news-2"), ["DP", "AD"])
    assert away.mean() == pytest.approx(-1.5)
    wide, narrow = (
        appendix.splits(Views(split_runs(-1.5, spread), plan)) for spread in (0.5, 0.01)
    )
    assert wide.table is not None
    assert narrow.table is not None
    assert wide.table["paper is inside"].all()
    assert "can be the split's doing" in wide.sentence
    assert not narrow.table["paper is inside"].any()
    assert "is not the split's doing" in narrow.sentence
    assert len(wide.table) == 4 * 5


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
    assert judge(found, SIDES["POL-18"]).word == "confirmed"
    against = results(path=terms(lambda role, term, seed: float(role == "positive")))
    assert (
        judge(flows.alignment_term(View(against, PLAN, "sst")), SIDES["POL-18"]).word == "refuted"
    )


def test_signs_of_terms_are_those_of_the_derivation() -> None:
    def predicted(role: str, term: str, seed: int) -> float:
        right = 0.9 + 0.02 * seed
        return 1 - right if role == "negative" and term in "BC" else right

    found = flows.signs(View(results(path=terms(predicted)), PLAN, "sst"))
    assert number(found, "B of negative").value == pytest.approx(0.93)
    assert number(found, "E of negative").value == pytest.approx(0.93)
    assert number(found, "C of positive").n == len(SEEDS)
    turned = flows.signs(View(results(path=terms(lambda *key: 1 - predicted(*key))), PLAN, "sst"))
    assert judge(turned, SIDES["POL-16"]).word == "refuted"


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
