"""Uniform and permuted attention: exact moments, scores per draw, what attention can change."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score

from heedful.audits import substitution
from heedful.audits.finding import Finding
from heedful.audits.substitution import flippable, permutation_moments
from heedful.models import Reading
from heedful.statistics.intervals import mean
from tests.hand import model_of, random_reading, reading_of


def rows_of(reading: Reading, classes: int, seed: int = 0, draws: int = 100) -> pd.DataFrame:
    return substitution.rows(model_of(classes), reading, {}, seed, draws)


def value(finding: Finding, name: str, method: str = "") -> float:
    estimate = finding.get(name, method)
    assert estimate is not None
    return estimate.value


@pytest.mark.parametrize("classes", [2, 5])
def test_moments_equal_those_over_all_permutations(classes: int) -> None:
    reading = random_reading([1, 2, 3, 4, 5], classes, seed=1, padding=2)
    assert reading.unit_logits is not None
    found = permutation_moments(reading.attention, reading.unit_logits, reading.mask)
    for document, n in enumerate(reading.units.tolist()):
        weights = reading.attention[document, :n].numpy()
        said = reading.unit_logits[document, :n].numpy()
        all_logits = np.array([weights[list(order)] @ said for order in permutations(range(n))])
        np.testing.assert_allclose(found.mean[document], all_logits.mean(0), atol=1e-12)
        np.testing.assert_allclose(found.variance[document], all_logits.var(0), atol=1e-12)


def test_exact_moments_stand_beside_the_sampled_ones() -> None:
    rows = rows_of(random_reading([4, 9, 15], 3, seed=2), 3, draws=2000)
    for quantity in ("margin", "logit"):
        exact = np.stack(list(rows[f"exact_{quantity}_mean"]))
        variance = np.stack(list(rows[f"exact_{quantity}_variance"]))
        sampled = np.stack(list(rows[f"sampled_{quantity}_mean"]))
        assert (np.abs(exact - sampled) < 4 * np.sqrt(variance / 2000)).all()
        np.testing.assert_allclose(
            np.stack(list(rows[f"sampled_{quantity}_variance"])), variance, rtol=0.2
        )
    np.testing.assert_allclose(rows["exact_margin_mean"], rows["uniform_margin"], atol=1e-12)


def test_the_margin_is_that_of_the_decision_over_its_runner_up() -> None:
    reading = reading_of([[0.5, 0.5]], [[[1.0, 4.0, 3.0], [1.0, 2.0, 1.0]]], offset=[0.0, 0.0, 0.5])
    found = rows_of(reading, 3).iloc[0]
    assert found["decision"] == 1
    assert found["margin"] == pytest.approx(3.0 - 2.5)


def test_one_unit_and_flat_attention_are_left_unchanged() -> None:
    reading = reading_of([[1.0], [0.25] * 4], [[[2.0, 0.0]], np.arange(8.0).reshape(4, 2)])
    rows = rows_of(reading, 2)
    assert (rows["uniform"] == rows["decision"]).all()
    assert (rows["permuted_changes"] == 0).all()
    np.testing.assert_allclose(rows["permuted_tvd"], 0, atol=1e-15)
    np.testing.assert_allclose(rows["exact_margin_variance"], 0, atol=1e-15)
    assert "1 of 2 documents have one unit: no attention can change them." in (
        substitution.summarise(rows).notes
    )


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_a_decision_is_flippable_exactly_when_some_attention_flips_it(classes: int) -> None:
    reading = random_reading([2, 3, 3, 4, 4, 5] * 8, classes, seed=3, bias=2.0)
    assert reading.unit_logits is not None
    assert reading.offset is not None
    said = flippable(model_of(classes), reading)
    assert said.any()
    assert not said.all()
    generator = np.random.default_rng(0)
    for document, n in enumerate(reading.units.tolist()):
        if said[document]:
            continue
        weights = generator.dirichlet(np.full(n, 0.4), size=500)
        logits = weights @ reading.unit_logits[document, :n].numpy() + reading.offset[0].numpy()
        assert (logits.argmax(-1) == int(reading.decision[document])).all()


def test_nothing_changes_more_often_than_is_flippable() -> None:
    rows = rows_of(random_reading([5] * 60, 2, seed=4), 2)
    assert not ((rows["permuted_changes"] > 0) & ~rows["flippable"]).any()
    assert not ((rows["uniform"] != rows["decision"]) & ~rows["flippable"]).any()


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_per_draw_equal_scikit_learn(classes: int) -> None:
    labels = np.random.default_rng(0).integers(0, classes, 50)
    reading = random_reading([6] * 50, classes, seed=5, labels=labels.tolist())
    rows = rows_of(reading, classes)
    finding = substitution.summarise(rows)
    draws = np.stack(list(rows["permuted"])).T
    assert draws.shape == (100, 50)
    assert draws.dtype == np.int16
    given = list(range(classes))

    def f1(predicted: np.ndarray, average: str | None) -> np.ndarray:
        return np.asarray(
            f1_score(labels, predicted, labels=given, average=average, zero_division=0)
        )

    macro = np.mean([f1(draw, "macro") for draw in draws])
    assert value(finding, "macro F1", "permuted") == pytest.approx(macro)
    assert value(finding, "macro F1", "permuted, one draw") == pytest.approx(
        float(f1(draws[0], "macro"))
    )
    trained = f1(rows["decision"].to_numpy(), None)
    for c in given:
        assert value(finding, f"F1 of class {c}", "trained") == pytest.approx(trained[c])
    assert value(finding, "macro F1", "permuted - trained") == pytest.approx(
        macro - float(trained.mean())
    )
    assert value(finding, "accuracy", "uniform") == np.mean(rows["uniform"] == labels)
    assert value(finding, "decisions changed", "permuted") == pytest.approx(
        np.mean(draws != rows["decision"].to_numpy())
    )


def test_without_labels_changes_are_reported_and_scores_are_not() -> None:
    rows = rows_of(random_reading([4, 5, 6], 2), 2)
    finding = substitution.summarise(rows)
    assert finding.get("accuracy", "trained") is None
    assert finding.get("decisions changed", "uniform") is not None
    assert any("3 of 3 documents have no label" in note for note in finding.notes)


def test_one_class_gold_and_a_class_never_predicted_give_numbers() -> None:
    said = [[[3.0, 0.0, 0.0], [2.0, 0.0, 0.0]]] * 4
    reading = reading_of([[0.7, 0.3]] * 4, said, labels=[0, 0, 0, 0])
    finding = substitution.summarise(rows_of(reading, 3))
    assert value(finding, "accuracy", "trained") == 1
    assert value(finding, "F1 of class 0", "trained") == 1
    # Class 2 is neither there nor predicted: it has no F1, and does not lower the mean.
    assert np.isnan(value(finding, "F1 of class 2", "trained"))
    assert value(finding, "macro F1", "trained") == 1
    assert value(finding, "decisions that some attention changes") == 0


def test_draws_depend_on_seed_and_instance_alone() -> None:
    reading = random_reading([7] * 5, 2, seed=6)
    wider = random_reading([7] * 5, 2, seed=6, padding=9)
    first, again = rows_of(reading, 2), rows_of(wider, 2)
    assert [d.tolist() for d in first["permuted"]] == [d.tolist() for d in again["permuted"]]
    np.testing.assert_allclose(first["permuted_tvd"], again["permuted_tvd"], atol=1e-14)
    assert not np.allclose(first["permuted_tvd"], rows_of(reading, 2, seed=1)["permuted_tvd"])
    # More draws begin with the same ones.
    more = rows_of(reading, 2, draws=140)
    assert [d[:100].tolist() for d in more["permuted"]] == [d.tolist() for d in first["permuted"]]


def test_nothing_to_say_is_said() -> None:
    finding = substitution.summarise(pd.DataFrame())
    assert finding.measures == ()
    assert finding.answer.startswith("Nothing could be measured")


def test_reliance_is_told_by_what_shuffling_changes_and_would_change() -> None:
    decision = np.array([0] * 30 + [1] * 10)  # of decisions drawn anew 1 - (9 + 1) / 16 differ
    names = [str(n) for n in range(len(decision))]
    chance = substitution.drawn_anew(decision, names)
    assert chance.value == pytest.approx(0.375)
    assert chance.low < 0.375 < chance.high
    changes = np.where(np.arange(40) < 6, 0.5, 0.0)
    reliance = substitution.against_chance(changes, decision, names)
    assert reliance.value == pytest.approx(0.075 / 0.375)
    said = substitution.in_words(mean(changes, names, least=0, most=1), chance)
    assert said.startswith("Shuffling attention changes 7.5\xa0% [")
    assert said.endswith("; if attention decided everything it would be about 38\xa0% [24, 48].")
