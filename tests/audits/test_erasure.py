"""Removing down a ranking: against removal one by one, and on the cases where it goes wrong."""

import numpy as np
import pandas as pd
import pytest
import torch

from heedful.audits import erasure
from heedful.audits.rankings import area, greedy_order
from heedful.audits.tables import Wide
from heedful.importance import explain
from heedful.models import Reading
from tests.hand import logits_with, model_of, random_reading, reading_of, softmax

RANKINGS = ("random", "attention", "gradient", "product", "centred")


def rows_of(reading: Reading, classes: int, seed: int = 0) -> pd.DataFrame:
    model = model_of(classes)
    return erasure.rows(model, reading, explain(model, reading, RANKINGS, seed), seed)


def row(rows: pd.DataFrame, ranking: str, document: int = 0) -> pd.Series:
    chosen = (rows["ranking"] == ranking) & (rows["instance"] == f"document {document}")
    return rows[chosen].iloc[0]


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_first_flips_equal_removing_one_unit_after_the_other(classes: int, seed: int) -> None:
    reading = random_reading([1, 2, 3, 7, 12], classes, seed)
    model = model_of(classes)
    importance = explain(model, reading, RANKINGS, seed)
    rows = erasure.rows(model, reading, importance, seed)
    for document, n in enumerate(reading.units.tolist()):
        decision = int(logits_with(reading, document, range(n)).argmax())
        for ranking, scores in importance.items():
            order = sorted(range(n), key=lambda i, s=scores[document]: (-float(s[i]), i))
            removed = -1
            for k in range(1, n + 1):
                if int(logits_with(reading, document, order[k:]).argmax()) != decision:
                    removed = k
                    break
            found = row(rows, ranking, document)
            assert found["removed"] == removed
            assert found["at_end"] == (removed == n)
            if removed < 0:
                assert np.isnan(found["fraction"])
                assert np.isnan(found["mass"])
            else:
                mass = sum(reading.attention[document, i].item() for i in order[:removed])
                assert found["fraction"] == removed / n
                assert found["mass"] == pytest.approx(mass, abs=1e-12)
            ps = [softmax(logits_with(reading, document, order[k:])) for k in range(n + 1)]
            assert found["area"] == pytest.approx(
                float(np.trapezoid([p[decision] for p in ps], dx=1 / n)), abs=1e-12
            )


@pytest.mark.parametrize("classes", [2, 5])
def test_the_greedy_order_takes_the_unit_whose_loss_hurts_most(classes: int) -> None:
    reading = random_reading([1, 2, 6, 9], classes, seed=4, padding=3)
    order = greedy_order(reading)
    for document, n in enumerate(reading.units.tolist()):
        decision, left = int(reading.decision[document]), list(range(n))
        for step in range(n):
            hurt = {
                i: softmax(logits_with(reading, document, [j for j in left if j != i]))[decision]
                for i in left
            }
            chosen = int(order[document, step])
            assert hurt[chosen] == pytest.approx(min(hurt.values()), abs=1e-12)
            left.remove(chosen)
        assert sorted(order[document].tolist()) == list(range(order.shape[1]))
        assert not reading.mask[document, order[document, n:]].any()


def test_greedy_survives_one_weight_that_holds_everything() -> None:
    said = [[3.0, 0.0], [-1.0, 0.0], [-2.0, 0.0], [1.0, 0.0]]
    peaked = [1 - 1e-12, 4e-13, 3e-13, 3e-13]
    assert greedy_order(reading_of([peaked], [said])).tolist() == [[0, 3, 1, 2]]
    # Weights that underflow altogether: the scores still tell the units apart.
    scores = [[0.0, -900.0, -2000.0, -905.0]]
    far = reading_of([[1.0, 0.0, 0.0, 0.0]], [said], scores=scores)
    assert greedy_order(far)[0].tolist()[0] == 0
    assert sorted(greedy_order(far)[0].tolist()) == [0, 1, 2, 3]


def test_long_documents_go_without_greedy_and_are_counted() -> None:
    reading = random_reading([300, 4, 6], 2)
    rows = rows_of(reading, 2)
    assert set(rows.loc[rows["ranking"] == "greedy", "instance"]) == {"document 1", "document 2"}
    finding = erasure.summarise(rows)
    assert any("1 of 3 documents have more than 256 units" in note for note in finding.notes)


def test_greedy_never_needs_more_units_than_the_other_rankings_on_average() -> None:
    rows = rows_of(random_reading([8] * 40, 2, seed=7, bias=0.0), 2)
    finding = erasure.summarise(rows)
    best = finding.get("fraction removed", "greedy")
    assert best is not None
    for ranking in RANKINGS:
        other = finding.get("fraction removed", ranking)
        assert other is not None
        assert best.value <= other.value


def test_a_hand_example_of_three_units() -> None:
    # Class 0 by .5·2 - .3·1 - .2·1 = .5; without unit 0 both others say class 1.
    reading = reading_of([[0.5, 0.3, 0.2]], [[[2.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]]])
    found = row(rows_of(reading, 2), "attention")
    assert (found["removed"], found["fraction"], found["mass"]) == (1, 1 / 3, 0.5)
    assert found["decision"] == 0
    assert found["empty_decision"] == 0  # equal offsets: the first class


def test_one_unit_is_left_out_and_counted() -> None:
    finding = erasure.summarise(rows_of(random_reading([1, 1, 3], 2), 2))
    assert "2 of 3 documents have one unit and are left out." in finding.notes
    assert finding.measures[0].estimate.n == 1
    empty = erasure.summarise(rows_of(random_reading([1], 2), 2))
    assert empty.measures == ()
    assert empty.answer.startswith("Nothing could be measured")


def test_two_units_give_a_half_or_a_whole() -> None:
    rows = rows_of(random_reading([2] * 30, 2, seed=1), 2)
    assert set(rows["fraction"].dropna()) <= {0.5, 1.0}


def test_equal_weights_are_removed_from_the_first_position_on() -> None:
    said = [[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.5, 0.0]]
    found = row(rows_of(reading_of([[0.25] * 4], [said]), 2), "attention")
    assert (found["removed"], found["mass"]) == (2, 0.5)


def test_one_weight_near_one_does_not_drown_the_rest() -> None:
    said = [[3.0, 0.0], [-1.0, 0.0], [2.0, 0.0], [2.0, 0.0]]
    peaked = [1 - 1e-12, 5e-13, 3e-13, 2e-13]
    found = row(rows_of(reading_of([peaked], [said]), 2), "attention")
    # Without the first: (-5 + 6 + 4) / 10 > 0, no flip, then (6 + 4) / 5: never; nothing left: 0.
    assert found["removed"] == -1
    assert not found["underflow"]


def test_a_weight_of_zero_is_removed_without_effect_and_flagged_when_only_it_is_left() -> None:
    said = [[2.0, 0.0], [1.0, 0.0], [-9.0, 0.0]]
    reading = reading_of([[0.6, 0.4, 0.0]], [said], offset=[0.1, 0.0])
    found = row(rows_of(reading, 2), "attention")
    assert found["removed"] == -1
    assert found["underflow"]
    # With finite scores the last unit is attended in full before nothing is left.
    reading = reading_of([[0.6, 0.4, 0.0]], [said], offset=[0.1, 0.0], scores=[[0.0, -0.4, -900.0]])
    found = row(rows_of(reading, 2), "attention")
    assert (found["removed"], found["underflow"]) == (2, True)


def test_a_decision_of_the_bias_never_flips_and_counts_as_a_whole() -> None:
    # y = argmax b, and the bias is stronger than any unit.
    reading = random_reading([3, 5, 8], 2, bias=0.0)
    said = [reading.unit_logits[i, :n].numpy() for i, n in enumerate((3, 5, 8))]  # type: ignore[index]
    attention = [reading.attention[i, :n].tolist() for i, n in enumerate((3, 5, 8))]
    dominated = reading_of(attention, said, offset=[100.0, 0.0])
    rows = rows_of(dominated, 2)
    assert (rows["removed"] == -1).all()
    finding = erasure.summarise(rows)
    assert finding.answer.startswith("No decision ever changed")
    headline = finding.get("fraction removed", "attention")
    never = finding.get("never flips", "attention")
    flipped = finding.get("fraction removed, flipped only", "attention")
    bias = finding.get("decides as with nothing left")
    assert headline is not None
    assert never is not None
    assert flipped is not None
    assert bias is not None
    assert (headline.value, never.value, bias.value) == (1.0, 1.0, 1.0)
    assert flipped.n == 0


def test_a_flip_when_nothing_is_left_is_flagged() -> None:
    said = [[3.0, 0.0], [2.0, 0.0]]
    rows = rows_of(reading_of([[0.5, 0.5]], [said], offset=[0.0, 1.0]), 2)
    assert rows["at_end"].all()
    assert (rows["fraction"] == 1).all()
    assert any("only when nothing was left" in note for note in erasure.summarise(rows).notes)


def test_who_flips_first_counts_a_flip_before_none_and_leaves_out_neither() -> None:
    table = pd.DataFrame(
        {"gradient": [1, 3, 2, -1, -1, 1], "attention": [2, 1, 2, 4, -1, -1]},
        index=[f"document {i}" for i in range(6)],
    )
    sign = erasure.flips_first(Wide(table.astype(float)), "gradient", "attention")
    np.testing.assert_equal(sign, [1, -1, 0, -1, np.nan, 1])


def test_both_denominators_of_who_flips_first() -> None:
    rows = rows_of(random_reading([1, 4, 5, 6, 7, 8, 9], 2, seed=3), 2)
    finding = erasure.summarise(rows)
    compared = finding.get("flips before attention", "gradient")
    of_all = finding.get("flips before attention, of all documents", "gradient")
    assert compared is not None
    assert of_all is not None
    assert of_all.n == 7
    assert compared.value * compared.n == pytest.approx(of_all.value * of_all.n)


def test_box_numbers_by_hand() -> None:
    values = np.array([0.0, 0.5, 0.6, 0.7, 1.0, np.nan])
    box = erasure.five_numbers(values)
    # Quartiles 0.5, 0.6, 0.7: whiskers reach 0.3 further, so 0 and 1 are outliers.
    assert box == pytest.approx(
        {"low": 0.5, "q1": 0.5, "median": 0.6, "q3": 0.7, "high": 0.7, "n": 5}
    )
    assert erasure.five_numbers(np.array([np.nan]))["median"] is None


@pytest.mark.slow
def test_area_of_a_straight_line_and_of_a_padded_document() -> None:
    probability = torch.tensor([[[1.0, 0.5, 0.0, 9.0]], [[1.0, 1.0, 1.0, 0.0]]], dtype=torch.double)
    found = area(probability, torch.tensor([2, 3]))
    torch.testing.assert_close(found, torch.tensor([[0.5], [2.5 / 3]], dtype=torch.double))


def test_permuting_the_units_leaves_the_first_flips_unchanged() -> None:
    reading = random_reading([9] * 6, 3, seed=5)
    assert reading.unit_logits is not None
    assert reading.offset is not None
    shuffle = np.random.default_rng(0).permutation(9)
    moved = reading_of(
        reading.attention[:, shuffle].tolist(),
        list(reading.unit_logits[:, shuffle].numpy()),
        reading.offset[0].tolist(),
    )
    before, after = rows_of(reading, 3), rows_of(moved, 3)
    fixed = before["ranking"] != "random"
    assert before.loc[fixed, "removed"].tolist() == after.loc[fixed, "removed"].tolist()


def test_never_flips_count_as_one_so_that_rankings_share_their_instances() -> None:
    rows = pd.DataFrame(
        {
            "instance": ["a", "a", "b", "b"],
            "ranking": ["random", "attention"] * 2,
            "units": 4,
            "decision": 0,
            "empty_decision": 0,
            "removed": [2, 1, -1, 3],
            "fraction": [0.5, 0.25, np.nan, 0.75],
            "mass": [0.5, 0.6, np.nan, 0.9],
            "area": 0.5,
            "at_end": False,
            "underflow": False,
        }
    )
    finding = erasure.summarise(rows)
    values = {
        (m.name, m.method): (m.estimate.value, m.estimate.n)
        for m in finding.measures
        if m.name.startswith("fraction removed")
    }
    assert values["fraction removed", "random"] == (0.75, 2)
    assert values["fraction removed", "attention"] == (0.5, 2)
    assert values["fraction removed", "attention - random"] == (-0.25, 2)
    assert values["fraction removed, flipped only", "random"] == (0.5, 1)
    assert values["fraction removed, both flipped", "attention - random"] == (-0.25, 1)


def test_efficiency_is_the_way_from_a_random_order_to_the_best_one() -> None:
    table = pd.DataFrame(
        {"random": [0.8, 0.6, 0.4], "attention": [0.4, 0.6, 0.9], "greedy": [0.2, 0.2, np.nan]},
        index=["a", "b", "long"],
    )
    found = erasure.efficiency(Wide(table))
    assert found["attention"].value == pytest.approx((0.7 - 0.5) / (0.7 - 0.2))
    assert (found["random"].value, found["greedy"].value) == (0, 1)
    assert found["attention"].n == 2
    # Where no order beats chance there is no way to go.
    stuck = erasure.efficiency(Wide(table.assign(greedy=table["random"])))
    assert np.isnan(stuck["attention"].value)
