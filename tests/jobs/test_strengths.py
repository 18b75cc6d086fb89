"""What a strength costs and buys, its intervals over dev documents, and the rule that keeps one."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heedful.errors import InputError
from heedful.jobs.strengths import (
    LIMIT,
    Chosen,
    Decisions,
    Price,
    Remedy,
    Strength,
    choose,
    prices,
    refuse_limit,
)
from heedful.statistics import Estimate, resampling_weights
from heedful.statistics.intervals import from_replicates

TRIED = (
    Strength(1, 0.840, -0.02, -0.03),
    Strength(10, 0.830, -0.07, -0.11),
    Strength(30, 0.780, -0.20, -0.30),
)


def decisions(
    right: float, flat: float, shuffled: float, documents: int = 60, classes: int = 2, seed: int = 0
) -> Decisions:
    """Decisions of which such shares are right under each attention."""
    gold = np.arange(documents) % classes
    noise = np.random.default_rng(seed)

    def decided(share: float, draws: int) -> np.ndarray:
        is_right = noise.random((draws, documents)) < share
        return np.where(is_right, gold, (gold + 1) % classes)

    names = tuple(f"d{i}" for i in range(documents))
    return Decisions(
        names, gold, decided(right, 1), decided(flat, 1), decided(shuffled, 3), classes
    )


def test_the_rule_takes_the_most_reliance_within_the_limit() -> None:
    assert choose(0.842, TRIED) == choose(0.842, TRIED[::-1]) == Chosen(10, True)
    assert choose(0.842, TRIED, limit=0.3) == Chosen(1, True)
    assert choose(0.842, TRIED, limit=10) == Chosen(30, True)
    assert choose(0.95, TRIED) == Chosen(1, False)


def test_ties_go_to_the_weaker_strength() -> None:
    tried = [Strength(3, 0.8, -0.1, -0.1), Strength(1, 0.8, -0.1, -0.1)]
    assert choose(0.8, tried, limit=0).strength == 1


def test_nothing_to_choose_from_is_refused() -> None:
    with pytest.raises(InputError, match="at least one"):
        choose(0.8, [])


def test_a_limit_is_a_number_of_points() -> None:
    for limit in (0, LIMIT, 3, 100):
        refuse_limit(limit)
    for limit in (-1, 100.5, float("nan")):
        with pytest.raises(InputError, match="from 0 to 100"):
            refuse_limit(limit)


@pytest.mark.parametrize("classes", [2, 3])
def test_intervals_are_those_of_documents_drawn_by_hand(classes: int) -> None:
    base = decisions(0.9, 0.85, 0.8, classes=classes)
    tried = [decisions(0.85, 0.6, 0.5, classes=classes, seed=s) for s in (1, 2)]
    gold = base.gold

    def f1(decided: np.ndarray, drawn: np.ndarray) -> float:
        scores = []
        for one in decided:
            pairs = list(zip(gold[drawn].tolist(), one[drawn].tolist(), strict=True))
            for c in range(classes):
                named = sum((is_c == c) + (said == c) for is_c, said in pairs)
                scores.append(2 * sum(is_c == said == c for is_c, said in pairs) / named)
        return sum(scores) / len(scores)

    def by_hand(one: Decisions, drawn: np.ndarray) -> tuple[float, float]:
        trained, flat, shuffled = (f1(d, drawn) for d in (one.trained, one.uniform, one.permuted))
        return trained, 2 * trained - flat - shuffled

    def differences(drawn: np.ndarray) -> list[float]:
        (first, relied), *others = (by_hand(one, drawn) for one in (base, *tried))
        kept = others[1][1]
        return [
            number
            for trained, reliance in others
            for number in (first - trained, reliance - relied, kept - reliance)
        ]

    everyone, n = np.arange(len(gold)), len(gold)
    replicates = 60
    weights = resampling_weights(base.names)[:replicates]
    drawn = np.array([differences(np.repeat(everyone, row)) for row in weights])
    without = np.array([differences(np.delete(everyone, i)) for i in everyone])
    value = differences(everyone)
    expected = [from_replicates(value[i], drawn[:, i], n, without[:, i]) for i in range(6)]
    found = [e for price in prices(base, tried, 1, replicates) for e in vars(price).values()]
    for one, other in zip(found, expected, strict=True):
        assert (one.value, one.low, one.high) == pytest.approx(
            (other.value, other.low, other.high), abs=1e-12
        )
        assert one.n == n


def test_equal_decisions_cost_exactly_nothing() -> None:
    base = decisions(0.9, 0.8, 0.7)
    flatter = replace(base, uniform=1 - base.gold[None])
    same, other = prices(base, [base, flatter], 1)
    for estimate in (same.cost, same.buys, other.cost, other.behind):
        assert (estimate.value, estimate.low, estimate.high) == (0, 0, 0)
    # Flattened, the other decides everything wrongly: it buys the base's F1 with flat attention.
    assert other.buys.value == pytest.approx(base.f1()[0, 1])
    assert same.behind == other.buys
    assert same.behind.low > 0


def test_pairs_are_narrower_than_models_drawn_apart() -> None:
    base = decisions(0.8, 0.8, 0.8, documents=400)
    changed = base.trained.copy()
    changed[0, :8] = 1 - changed[0, :8]
    cost = prices(base, [replace(base, trained=changed)], 0)[0].cost
    spread = np.std([base.f1(w[None].astype(float))[0, 0] for w in resampling_weights(base.names)])
    assert cost.high - cost.low < 0.5 * 2 * 1.96 * np.sqrt(2) * spread


def test_f1_and_reliance_of_four_documents_worked_out_by_hand() -> None:
    gold = np.array([1, 1, 0, 0])
    one = Decisions(
        ("a", "b", "c", "d"),
        gold,
        gold[None],  # F1 1
        np.array([[1, 0, 0, 0]]),  # one of two found, nothing wrong: 2/3; of the other class 4/5
        np.array([[1, 1, 1, 1], [0, 0, 0, 0]]),  # 2/3 and 0, and the other way round
        2,
    )
    found = one.at(3.0)
    assert (found.strength, found.f1) == (3.0, 1.0)
    assert (found.uniform, found.permuted) == pytest.approx((11 / 15 - 1, 1 / 3 - 1))
    assert found.reliance == pytest.approx(4 / 15 + 2 / 3)
    of_one = replace(one, of_class=1).at(3.0)
    assert (of_one.uniform, of_one.permuted) == pytest.approx((-1 / 3, -2 / 3))


def price(
    cost: tuple[float, float, float],
    buys: tuple[float, float, float] = (0.2, 0.1, 0.3),
    behind: tuple[float, float, float] = (0.2, 0.1, 0.3),
) -> Price:
    return Price(*(Estimate(*ends, 96, "bca") for ends in (cost, buys, behind)))


def searched(*found: Price, limit: float = LIMIT) -> Remedy:
    """A search that kept 10 of 1, 10 and 30."""
    base = Strength(0, 0.842, -0.01, -0.01)
    return Remedy("tying", base, TRIED, Chosen(10, True), Path("kept"), (), limit, found)


CLEAR = price((0.002, 0.0, 0.004))
DEAR = price((0.06, 0.03, 0.09), behind=(-0.3, -0.4, -0.2))


def test_a_search_round_trips_with_its_intervals_and_its_limit() -> None:
    found = searched(CLEAR, CLEAR, DEAR, limit=3.0)
    assert Remedy.from_json(found.to_json(), Path("kept")) == found
    bare = searched()
    assert Remedy.from_json(bare.to_json(), Path("kept")) == bare
    assert "cost" not in bare.to_json()["tried"][0]


def test_a_choice_that_dev_settles_is_not_doubted() -> None:
    *table, legend, said, following = searched(CLEAR, CLEAR, DEAR).lines()
    assert legend.startswith("All in points of dev F1 (mean over classes).")
    assert said.endswith("No other one that costs at most 1.5 points buys more.")
    assert re.search(r" \[-?[\d.]+, -?[\d.]+; \d+ documents\] points of dev F1", said)
    assert table[3].endswith(" 0.2 [0.0, 0.4]    20.0 [10.0, 30.0]   kept")
    assert "[" not in table[1]
    assert following == "Next: heedful audit kept"


def test_what_dev_is_too_small_to_tell_is_said_in_one_sentence() -> None:
    wide = price((0.012, -0.01, 0.042))
    said = searched(CLEAR, wide, DEAR).lines()[-2]
    assert said == (
        "With 96 dev documents its cost may be anything from -1.0 to 4.2 points; more dev "
        "documents would tell strengths apart."
    )
    dearer = replace(DEAR, cost=Estimate(0.09, 0.06, 0.12, 96, "bca"))
    assert "more dev documents" not in searched(CLEAR, wide, dearer, limit=5.0).lines()[-2]
    near = price((0.0, -0.01, 0.01), behind=(0.01, -0.02, 0.04))
    said = searched(near, CLEAR, price((0.06, 0.01, 0.09), behind=(-0.3, -0.4, -0.2))).lines()[-2]
    assert "With 96 dev documents 1 and 30 may do as well; more" in said
    unsure = price((0.012, -0.01, 0.042), buys=(0.02, -0.01, 0.04))
    said = searched(near, unsure, DEAR).lines()[-2]
    assert "4.2 points, it may buy no reliance and 1 may do as well; more" in said
    for high, is_told in ((0.01, True), (-0.01, False)):
        loses = price((0.002, 0.0, 0.004), buys=(-0.02, -0.05, high))
        said = searched(CLEAR, loses, DEAR).lines()[-2]
        assert ("With 96 dev documents it may buy reliance after all; more" in said) == is_told
    none = price((0.0, float("nan"), float("nan")))
    *table, said, _ = searched(CLEAR, none, DEAR).lines()
    assert "its cost has no interval; more" in said
    assert " 0.0 [-] " in table[3]


def test_the_limit_in_force_is_the_one_that_is_said() -> None:
    base, gains = Strength(0, 0.8, -0.1, -0.1), Strength(1, 0.81, -0.05, -0.05)
    kept = Remedy("tying", base, (gains,), Chosen(1, True), Path("kept"), limit=2.5)
    said = kept.lines()[-3]
    assert said == (
        "No strength that costs at most 2.5 points makes decisions rely more on attention; 1 was "
        "kept, which gains 1.0 points of dev F1, but is no remedy."
    )
    dear = replace(kept, tried=(replace(gains, f1=0.7),), chosen=Chosen(1, False))
    assert dear.lines()[-3] == (
        "No strength is cheap enough: tying at 1 costs 10.0 points of dev F1, more than the limit "
        "of 2.5 points, and loses 10.0 points of reliance on attention (flattening and shuffling "
        "together); it is kept as the cheapest, not as a remedy."
    )


@pytest.mark.parametrize(
    ("chosen", "limit", "advised"),
    [
        (Chosen(1, False), LIMIT, "tying:0.33"),  # weaker than all
        (Chosen(1, False), 0.1, "tying:0.33 --limit 0.1"),
        (Chosen(1, True), LIMIT, "tying:3.2"),  # it buys nothing, and 10 costs too much
    ],
)
def test_a_model_that_is_no_remedy_is_followed_by_a_strength_not_yet_tried(
    chosen: Chosen, limit: float, advised: str
) -> None:
    base = Strength(0, 0.86, -0.1, -0.1)
    found = Remedy("tying", base, TRIED, chosen, Path("my kept"), limit=limit)
    command = f"heedful train --from 'my kept' --objective {advised}"
    assert not found.is_remedy
    following = f"Next: {command} (not tried yet)"
    assert found.lines()[-2:] == ["What was kept lies in my kept.", following]
    stored = found.to_json()
    assert (stored["is_remedy"], stored["next"]) == (False, command)
    assert stored["said"] == found.lines()[-3:-2]
    assert Remedy.from_json(stored, Path("my kept")) == found
    assert searched().is_remedy
    assert searched().to_json()["next"] == "heedful audit kept"


def test_a_model_that_calls_all_by_one_class_is_seen_to_lose_its_attention() -> None:
    gold = np.array([0, 1] * 20)
    names = tuple(f"d{i}" for i in range(40))
    right, one = gold[None], np.ones((1, 40), dtype=np.int64)
    found = Decisions(names, gold, right, one, one, 2).at(3.0)
    assert (found.f1, found.uniform) == (1.0, pytest.approx(1 / 3 - 1))  # F1 0 and 2/3
    of_one = Decisions(names, gold, right, one, one, 2, of_class=1).at(3.0)
    assert of_one.uniform == pytest.approx(2 / 3 - 1)


def test_a_change_of_nothing_is_no_loss() -> None:
    base = Strength(0.0, 0.458, -1e-6, -4e-4)
    (line,) = (one for one in replace(searched(), base=base).lines() if one.split()[0] == "0")
    assert line.split() == ["0", "45.8", "+0.0", "+0.0"]
