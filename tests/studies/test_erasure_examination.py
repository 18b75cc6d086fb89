"""Rows of a model whose attention is erased: small, aligned, and honest about what is left out."""

import numpy as np
import pytest

from heedful.audits import erasure, single_erasure
from heedful.importance import explain
from heedful.studies.erasure.examination import (
    METHODS,
    NOT_MEASURED,
    OURS,
    RANDOM_ORDERS,
    RANKINGS,
    Erased,
    coarsened,
    erase,
)
from tests.hand import model_of, random_reading, reading_of


def erased_of(reading, classes: int = 3) -> Erased:
    model = model_of(classes)
    return Erased(erase(model, reading, explain(model, reading, METHODS), 0))


def test_the_rows_are_those_of_the_audits() -> None:
    reading = random_reading([5, 9, 2, 1, 30], 3, seed=4)
    model, found = model_of(3), erased_of(reading)
    importance = explain(model, reading, [*RANKINGS, "centred"], 0)
    long = erasure.rows(model, reading, importance, 0)
    single = single_erasure.rows(model, reading, importance, 0)
    several = reading.units.numpy() > 1
    for ranking in (*RANKINGS, *OURS):
        part = long[long["ranking"] == ranking]
        expected = np.where(several, part["fraction"], np.nan)
        np.testing.assert_allclose(found.fraction(ranking, never=np.nan), expected)
        np.testing.assert_allclose(
            found.mass(ranking, never=np.nan), np.where(several, part["mass"], np.nan), atol=1e-6
        )
    for ranking in RANKINGS:
        for legacy in (False, True):
            ours = found.contingency(ranking, legacy)
            assert ours == single_erasure.contingency(single, ranking, legacy)
    attention = single[single["ranking"] == "attention"]
    np.testing.assert_allclose(found.delta_js(), attention["delta_js"], atol=1e-6)
    np.testing.assert_allclose(found.delta_attention(), attention["delta_attention"], atol=1e-6)


def test_documents_of_one_item_count_for_accuracy_alone() -> None:
    reading = random_reading([1, 4, 1], 2, seed=1, labels=[0, 1, 1])
    found = erased_of(reading, 2)
    assert found.several.tolist() == [False, True, False]
    assert not np.isnan(found.right).any()
    answers = [found.fraction("attention"), found.delta_js(), found.top_flips("gradient")]
    answers += [found.earlier("gradient", "attention"), found.as_empty, found.units]
    assert np.isnan(np.array(answers)[:, [0, 2]]).all()
    assert found.contingency("attention").n == 1


def test_a_corpus_of_single_items_measures_nothing_and_says_so() -> None:
    found = erased_of(random_reading([1, 1], 2))
    assert found.contingency("attention").n == 0
    assert np.isnan(found.fraction("attention")).all()
    assert not found.thinned(10).any()


def test_a_model_that_never_flips_needs_everything_and_is_counted() -> None:
    said = [np.tile([2.0, 0.0], (4, 1))] * 2
    found = erased_of(reading_of([[0.25] * 4] * 2, said, offset=[1.0, 0.0]), 2)
    for ranking in RANKINGS:
        assert np.isnan(found.fraction(ranking, never=np.nan)).all()
        assert (found.fraction(ranking) == 1).all()
        assert (found.mass(ranking) == 1).all()
        assert (found.never(ranking) == 1).all()
        assert (found.at_end(ranking) == 0).all()
    assert (found.earlier("gradient", "attention") == 0).all()
    assert (found.as_empty == 1).all()


def test_one_ranking_that_flips_is_earlier_than_one_that_never_does() -> None:
    table = erased_of(random_reading([4, 4, 4], 2)).table
    table = table.assign(**{"removed gradient": [2, -1, 3], "removed attention": [-1, -1, 2]})
    sign = Erased(table).earlier("gradient", "attention")
    np.testing.assert_array_equal(sign, [1, 0, -1])


def test_a_flip_with_nothing_left_is_the_bias_speaking() -> None:
    said = [np.tile([1.0, 0.0], (3, 1))]
    found = erased_of(reading_of([[0.5, 0.3, 0.2]], said, offset=[0.0, 0.5]), 2)
    assert found.fraction("attention").tolist() == [1.0]
    assert found.at_end("attention").tolist() == [1.0]
    assert found.as_empty.tolist() == [0.0]


def test_long_documents_have_no_greedy_order_and_are_counted() -> None:
    found = erased_of(random_reading([300, 5], 2, seed=2), 2)
    assert found.table["removed greedy"].iloc[0] == NOT_MEASURED
    assert np.isnan(found.fraction("greedy")[0])
    assert not np.isnan(found.fraction("attention")[0])


def test_the_random_orders_differ() -> None:
    found = erased_of(random_reading([40] * 30, 3, seed=5))
    names = ["random", *(f"random {k}" for k in range(2, RANDOM_ORDERS + 1))]
    assert len({tuple(found.removed(name)) for name in names}) == RANDOM_ORDERS


def test_a_thinned_scatter_keeps_few_points_per_bin_and_the_largest() -> None:
    found = erased_of(random_reading([6] * 400, 3, seed=7))
    chosen = found.thinned(2, bins=20)
    place = (found.delta_attention() * 20).astype(int).clip(0, 19)
    assert max(np.bincount(place[chosen])) == 2
    assert set(place[chosen]) == set(place)
    assert chosen[np.argmax(found.delta_js())]
    np.testing.assert_array_equal(chosen, found.thinned(2, bins=20))


@pytest.mark.parametrize(
    ("fraction", "units", "expected"),
    [(0.5, 2, 0.5), (0.51, 2, 1.0), (0.01, 4, 0.25), (1.0, 7, 1.0)],
)
def test_fractions_are_rounded_up_to_the_steps_of_few_items(fraction, units, expected) -> None:
    assert coarsened(np.array([fraction]), np.array([float(units)])).tolist() == [expected]
