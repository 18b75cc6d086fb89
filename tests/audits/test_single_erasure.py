"""Erasing one unit: against removing it by hand, the draw of the other unit, the 2×2 table."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.spatial.distance import jensenshannon
from scipy.stats import binomtest, chisquare

from heedful.audits import single_erasure
from heedful.audits.single_erasure import Contingency, contingency, random_others
from heedful.importance import explain
from heedful.models import Reading
from heedful.runs.randomness import keys, uniform_noise
from tests.hand import logits_with, model_of, random_reading, reading_of, softmax

RANKINGS = ("random", "attention", "gradient", "product")


def rows_of(reading: Reading, classes: int, seed: int = 0) -> pd.DataFrame:
    model = model_of(classes)
    return single_erasure.rows(model, reading, explain(model, reading, RANKINGS, seed), seed)


@pytest.mark.parametrize("classes", [2, 5])
def test_changes_and_flips_equal_removing_the_unit(classes: int) -> None:
    reading = random_reading([1, 2, 3, 7, 12], classes, seed=2)
    importance = explain(model_of(classes), reading, RANKINGS, 0)
    for found in rows_of(reading, classes).to_dict("records"):
        document, n = int(found["instance"].split()[1]), found["units"]
        if n == 1:
            assert np.isnan(found["delta_js"])
            assert (found["other"], found["top_flips"]) == (-1, False)
            continue
        scores = importance[found["ranking"]][document, :n].tolist()
        assert found["top"] == max(range(n), key=lambda i: (scores[i], -i))
        whole = softmax(logits_with(reading, document, range(n)))
        for prefix in ("", "legacy_"):
            other = found[f"{prefix}other"]
            js, flips = {}, {}
            for unit in {found["top"], other}:
                rest = softmax(logits_with(reading, document, set(range(n)) - {unit}))
                js[unit] = jensenshannon(whole, rest) ** 2
                flips[unit] = bool(rest.argmax() != whole.argmax())
            assert found[f"{prefix}delta_js"] == pytest.approx(
                js[found["top"]] - js[other], abs=1e-12
            )
            weights = reading.attention[document]
            assert found[f"{prefix}delta_attention"] == pytest.approx(
                float(weights[found["top"]] - weights[other])
            )
            assert found["top_flips"] == flips[found["top"]]
            assert found[f"{prefix}other_flips"] == flips[other]


def test_the_other_unit_is_uniform_over_all_but_the_top_one() -> None:
    draws, n, top = 6000, 6, 2
    names = [f"document {i}" for i in range(draws)]
    noise = uniform_noise(keys(0, names, "test"), 1)
    others = random_others(torch.full((draws, 1), top), torch.full((draws,), n), noise)
    counts = np.bincount(others.random[:, 0].numpy(), minlength=n)
    assert counts[top] == 0
    assert chisquare(np.delete(counts, top)).pvalue > 1e-3
    legacy = np.bincount(others.legacy[:, 0].numpy(), minlength=n)
    assert legacy[0] == 0  # the published rule never erases the first unit …
    assert legacy[top] > 0  # … and may erase the top one
    assert chisquare(legacy[1:]).pvalue > 1e-3


def test_the_other_of_two_units_is_the_other_one() -> None:
    top = torch.tensor([[0, 1], [0, 1]])
    noise = torch.tensor([[0.0, 0.0], [1 - 1e-16, 1 - 1e-16]], dtype=torch.double)
    assert random_others(top, torch.tensor([2, 2]), noise).random.tolist() == [[1, 0], [1, 0]]
    assert random_others(top[:, :1], torch.tensor([1, 1]), noise[:, :1]).random.tolist() == [
        [-1],
        [-1],
    ]


def test_each_ranking_and_seed_draws_anew() -> None:
    reading = random_reading([30] * 40, 2)
    rows = rows_of(reading, 2)
    others = {name: part["other"].tolist() for name, part in rows.groupby("ranking")}
    assert len({tuple(other) for other in others.values()}) == len(RANKINGS)
    again = rows_of(reading, 2, seed=1)
    assert rows["other"].tolist() != again["other"].tolist()


def test_equal_weights_take_the_first_unit() -> None:
    reading = reading_of([[0.25] * 4], [[[1.0, 0.0]] * 4])
    rows = rows_of(reading, 2)
    assert rows.loc[rows["ranking"] == "attention", "top"].item() == 0
    assert rows.loc[rows["ranking"] == "attention", "delta_js"].item() == pytest.approx(0)


@pytest.mark.parametrize("largest", [1 - 1e-12, 1.0])
def test_erasing_nearly_all_attention_leaves_what_the_rest_says(largest: float) -> None:
    said = [[[5.0, 0.0], [-1.0, 0.0], [-2.0, 0.0]]]
    rest = (1 - largest) / 2
    reading = reading_of([[largest, rest, rest]], said, scores=[[0.0, -800.0, -800.0]])
    rows = rows_of(reading, 2).set_index("ranking")
    assert bool(rows.loc["attention", "top_flips"])
    whole, left = softmax(np.array([5.0, 0.0])), softmax(np.array([-1.5, 0.0]))
    js = jensenshannon(whole, left) ** 2
    assert rows.loc["attention", "delta_js"] == pytest.approx(js, abs=1e-9)


def test_a_dominant_bias_lets_nothing_flip() -> None:
    reading = random_reading([4, 6], 2, bias=0.0)
    assert reading.unit_logits is not None
    said = [reading.unit_logits[i, :n].numpy() for i, n in enumerate((4, 6))]
    attention = [reading.attention[i, :n].tolist() for i, n in enumerate((4, 6))]
    rows = rows_of(reading_of(attention, said, offset=[0.0, 100.0]), 2)
    assert not rows[["top_flips", "other_flips"]].to_numpy().any()
    finding = single_erasure.summarise(rows)
    share = finding.get("neither", "attention")
    assert share is not None
    assert share.value == 1


def by_hand(top: list[int], other: list[int], legacy: list[int]) -> pd.DataFrame:
    n = len(top)
    return pd.DataFrame(
        {
            "instance": [f"document {i}" for i in range(n)],
            "ranking": "attention",
            "units": [1] + [5] * (n - 1),
            "top_flips": np.array(top, bool),
            "other_flips": np.array(other, bool),
            "legacy_other_flips": np.array(legacy, bool),
            "delta_js": np.linspace(-0.1, 0.3, n),
            "legacy_delta_js": np.linspace(0.1, 0.3, n),
            "delta_attention": np.linspace(0, 1, n),
            "legacy_delta_attention": np.linspace(0, 1, n),
        }
    )


def test_contingency_by_hand_under_both_rules() -> None:
    # The first document has one unit and does not count.
    rows = by_hand([1, 1, 1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 1, 0, 0], [1, 1, 1, 1, 0, 0, 0, 0])
    assert contingency(rows, "attention") == Contingency(1, 3, 1, 2)
    assert contingency(rows, "attention", legacy_random=True) == Contingency(3, 1, 0, 3)
    finding = single_erasure.summarise(rows)
    assert "1 of 8 documents have one unit and are left out." in finding.notes
    values = {m.name: m.estimate.value for m in finding.measures}
    assert values["only top"] == 3 / 7
    assert values["top flips"] == 4 / 7
    assert values["random flips"] == 2 / 7
    assert values["only top - only random"] == pytest.approx(2 / 7)
    assert values["p, exact paired test"] == pytest.approx(binomtest(3, 4).pvalue)
    assert values["ΔJS below 0"] == 1 / 7
    assert sum(values[cell] for cell in single_erasure.CELLS) == pytest.approx(1)
    legacy = single_erasure.summarise(rows, legacy_random=True)
    assert {m.name: m.estimate.value for m in legacy.measures}["both"] == 3 / 7


def test_the_scatter_is_thinned_without_replacement() -> None:
    n = 1500
    rows = by_hand([0] * n, [0] * n, [0] * n)
    drawn = single_erasure.summarise(rows).drawn
    assert len(drawn["delta_js"]) == len(drawn["delta_attention"]) == single_erasure.POINTS
    assert len(set(drawn["delta_attention"])) == single_erasure.POINTS
    assert drawn["of"] == n - 1
    assert drawn == single_erasure.summarise(rows).drawn
    negative = drawn["delta_attention where ΔJS < 0"]
    assert len(negative["edges"]) == 51
    assert sum(negative["counts"]) == int((rows["delta_js"][1:] < 0).sum())


def test_nothing_to_say_is_said() -> None:
    for rows in (pd.DataFrame(), rows_of(random_reading([1], 2), 2)):
        finding = single_erasure.summarise(rows)
        assert finding.measures == ()
        assert finding.answer.startswith("Nothing could be measured")
